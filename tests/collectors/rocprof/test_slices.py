"""ROCTX ranges round lines of the program give the kernels of an AMD recording their addresses."""

from __future__ import annotations

from pathlib import Path

from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.contract.line_names import Line, line_name
from profrun.traces.trace import Trace
from tests.collectors.rocprof.kit import Rocpd, trace_of

A = Line("/me/model.py", 12, "forward")
B = Line("/me/train.py", 30, "<module>")


def told(trace: Trace) -> list[tuple[int, Line | None]]:
    """Start of each kernel, and its line."""
    found, source = addresses(trace), frame(trace)
    assert found is not None
    lines = [found.table[at].lines[0] if at >= 0 else None for at in found.of.tolist()]
    return list(zip(source.ts[found.gpu].tolist(), lines, strict=True))


def test_ranges_of_rocpd(tmp_path: Path) -> None:
    """The innermost line round the launch; a graph's kernels and a launch outside of all lines have none."""
    db = Rocpd(tmp_path / "7_results.db")
    db.basics()
    db.region("MARKER_CORE_RANGE_API", "roctxRangePushA", 100, 900, 1, message=line_name(B))
    db.region("MARKER_CORE_RANGE_API", "roctxThreadRangeA", 200, 600, 2, message=line_name(A))
    db.region("HIP_RUNTIME_API_EXT", "hipLaunchKernel", 300, 400, 3)
    db.region("HIP_RUNTIME_API_EXT", "hipLaunchKernel", 650, 700, 4)
    db.region("HIP_RUNTIME_API_EXT", "hipGraphLaunch", 750, 800, 5)
    db.region("HIP_RUNTIME_API_EXT", "hipLaunchKernel", 950, 960, 6)
    for number, start in enumerate((1000, 1600, 1700, 1800)):
        db.kernel(start, start + 50, 3 + number, dispatch=1 + number)
    db.done()
    trace = trace_of(tmp_path / "7_results.db", tmp_path / "t")
    assert told(trace) == [(1000, A), (1600, B), (1700, None), (1800, None)]


def test_ranges_of_csv(tmp_path: Path) -> None:
    api = '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    (tmp_path / "7_marker_api_trace.csv").write_text(
        f'{api}"MARKER_CORE_API","{line_name(B)}",7,7,1,100,900\n'
        f'"MARKER_CORE_API","{line_name(A)}",7,7,2,200,600\n'
    )
    (tmp_path / "7_hip_api_trace.csv").write_text(
        f'{api}"HIP_RUNTIME_API","hipLaunchKernel",7,7,3,300,400\n'
        '"HIP_RUNTIME_API","hipLaunchKernel",7,7,4,650,700\n'
    )
    (tmp_path / "7_kernel_trace.csv").write_text(
        '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Name","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z",'
        '"Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
        '"KERNEL_DISPATCH","GPU 0",1,1,7,1,"gemm",3,1000,1050,64,1,1,64,1,1\n'
        '"KERNEL_DISPATCH","GPU 0",1,1,7,2,"gemm",4,1600,1650,64,1,1,64,1,1\n'
    )
    assert told(trace_of(tmp_path, tmp_path / "t")) == [(1000, A), (1600, B)]
