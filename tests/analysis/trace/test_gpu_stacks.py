"""Stacks of GPU work: which frames each has, how time is shared, and that all of it adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.gpu_stacks import GpuStacks, StackFrame, StackProcess, gpu_stacks
from profrun.analysis.trace.line_table import place_table
from profrun.contract.denominator import RECORDING, STEP
from profrun.contract.line_names import Line, line_name
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace
from tests.analysis.trace.test_addresses import NODES, A, B, behind, graph_rows
from tests.analysis.trace.test_line_table import ROWS
from tests.conftest import examples

Folded = dict[str, tuple[int, int]]


def told(one: StackFrame) -> str:
    return (
        f"{one.line.file}:{one.line.line} {one.line.function}"
        if one.kind == "line" and one.line
        else one.name
    )


def folded(found: GpuStacks) -> Folded:
    """Frames with ';' between them -> (ns, launches)."""
    rows: Folded = {}
    for one in found.stacks:
        text = ";".join(told(found.frames[at]) for at in one.frames)
        assert text not in rows
        rows[text] = (one.gpu_ns, one.launches)
    return rows


def mapped(trace: Trace) -> GpuStacks:
    return gpu_stacks(trace, addresses(trace))


SIDE = {"generated": behind("triton_poi_fused_gelu_0:4", [A], [B])}


def test_module_line_op_and_kernel_and_a_fused_kernel_below_each_of_its_lines() -> None:
    """A third launch of the fused kernel of 3 ns: 203 ns of 3 launches are 102 and 101 ns of 2 and 1."""
    rows = [
        *ROWS,
        ("op", "aten::mm", 45, 20, "main"),
        ("kernel", "triton_poi_fused_gelu_0", 960, 2, "stream 7", {"launch": 6}),
        ("kernel", "triton_poi_fused_gelu_0", 970, 1, "stream 7", {"launch": 6}),
    ]
    found = mapped(memory_trace(rows, side=SIDE))
    assert folded(found) == {
        "mlp;/me/model.py:3 forward;aten::mm;gemm": (500, 1),
        "mlp;/me/model.py:3 forward;triton_poi_fused_gelu_0": (102, 2),
        "mlp;/me/train.py:9 <module>;triton_poi_fused_gelu_0": (101, 1),
        "/me/train.py:9 <module>;adam": (100, 1),
    }
    assert (found.gpu_ns, found.resolved_ns, found.steps, found.of) == (803, 803, 1, STEP)
    assert found.processes == (StackProcess(0, "rank 0", 1),)
    assert [one.line for one in found.frames if one.kind == "line"] == [A, B]


def test_a_module_has_a_frame_for_each_part_of_its_name() -> None:
    rows = [("range", "nn.Module: layers.0.mlp (MLP)", *row[2:]) if "mlp" in row[1] else row for row in ROWS]
    (first, *_) = folded(mapped(memory_trace(rows, side=SIDE)))
    assert first == "layers;layers.0;layers.0.mlp;/me/model.py:3 forward;gemm"


def test_work_without_an_address_is_below_the_reason_and_has_the_frames_of_its_launch() -> None:
    """ROWS without what the compiler tells, and without steps: the lost kernel counts, too."""
    found = mapped(memory_trace([("range", "step", *row[2:]) if row[0] == "step" else row for row in ROWS]))
    rows = folded(found)
    lost = {text: of for text, of in rows.items() if text.startswith(("torch.compile", "the call"))}
    assert lost == {
        "torch.compile does not tell what its kernel stands for;step;/me/train.py:9 <module>;mlp;"
        "/tmp/torchinductor_me/ab/cab.py:20 call;triton_poi_fused_gelu_0": (200, 1),
        "the call that launched them is not recorded;lost": (50, 1),
    }
    assert (found.gpu_ns, found.resolved_ns, found.steps, found.of) == (850, 600, 0, RECORDING)
    assert {one.kind for one in found.frames} == {"reason", "range", "line", "module", "kernel"}


def test_without_a_mapping_a_stack_has_ranges_python_frames_and_ops() -> None:
    """Names that differ in a number after # or in the address of an object are one; steps are no frames."""
    rows: list[tuple[Any, ...]] = [("step", "ProfilerStep#0", 0, 1000, "main")]
    for number, ts in ((3, 100), (4, 500)):
        rows += [
            ("range", f"batch#{number}", ts, 300, "main"),
            ("python", "model.py(12): forward", ts + 10, 200, "main"),
            ("python", f"<built-in method linear of type object at 0x7f{number}>", ts + 20, 180, "main"),
            ("range", "nn.Module: head (Linear)", ts + 30, 150, "main"),
            ("op", "aten::linear", ts + 40, 100, "main"),
            ("op", "aten::addmm", ts + 50, 80, "main"),
            ("api", "cudaLaunchKernel", ts + 60, 5, "main"),
            ("kernel", "gemm", ts + 70, 20 + number, "stream 7", {"launch": len(rows) + 6}),
        ]
    rows += [
        ("api", "cudaMemcpyAsync", 900, 5, "main"),
        ("memcpy", "Memcpy HtoD", 910, 7, "stream 7", {"launch": len(rows)}),
    ]
    found = gpu_stacks(memory_trace(rows), None)
    assert folded(found) == {
        "batch#*;model.py(12): forward;<built-in method linear of type object>;head;aten::linear;aten::addmm;"
        "gemm": (47, 2),
        "Memcpy HtoD": (7, 1),
    }
    assert [(one.kind, one.line) for one in found.frames if one.kind == "python"] == [
        ("python", Line("model.py", 12, "forward")),
        ("python", None),
    ]
    assert (found.resolved_ns, {one.kind for one in found.stacks}) == (None, {"kernel", "memcpy"})


def test_backward_and_replayed_work_is_told_where_it_is_known() -> None:
    backward = [
        ("step", "ProfilerStep#0", 0, 1000, "main"),
        ("op", "autograd::engine::evaluate_function: MmBackward0", 120, 80, "autograd"),
        ("api", "cudaLaunchKernel", 140, 5, "autograd"),
        ("api", "cudaLaunchKernel", 240, 5, "main"),
        ("kernel", "gemm", 300, 50, "stream 7", {"launch": 2}),
        ("kernel", "add", 400, 50, "stream 7", {"launch": 3}),
    ]
    plain = gpu_stacks(memory_trace(backward), None)
    assert [(one.gpu_ns, one.backward, one.replayed) for one in plain.stacks] == [
        (50, True, False), (50, None, False),
    ]  # fmt: skip
    graph = mapped(memory_trace(graph_rows(*NODES)))
    assert folded(graph) == {
        "/me/model.py:3 forward;gemm": (50, 1),
        "/me/train.py:9 <module>;Memset": (5, 1),
        "/me/train.py:9 <module>;add": (50, 1),
    }
    assert {(one.backward, one.replayed) for one in graph.stacks} == {(False, True)}
    assert {one.replayed for one in gpu_stacks(memory_trace(graph_rows(*NODES)), None).stacks} == {True}


def test_processes_are_apart_and_have_names_of_their_own() -> None:
    """Rank 1 launches 30 ns in one step, rank 0 10 ns in two."""
    rows = [
        ("step", "ProfilerStep#0", 0, 100, "main"),
        ("step", "ProfilerStep#1", 100, 100, "main"),
        ("step", "ProfilerStep#0", 0, 100, "r1:main"),
        ("api", "cudaLaunchKernel", 20, 5, "main"),
        ("api", "cudaLaunchKernel", 20, 5, "r1:main"),
        ("kernel", "gemm", 30, 10, "stream 7", {"launch": 3}),
        ("kernel", "gemm", 30, 30, "r1:stream 7", {"launch": 4}),
    ]
    found = gpu_stacks(memory_trace(rows, ranks=2), None)
    assert found.processes == (StackProcess(0, "rank 0", 2), StackProcess(1, "rank 1", 1))
    assert [(one.process, one.gpu_ns) for one in found.stacks] == [(0, 10), (1, 30)]
    same = memory_trace(rows, ranks=2)
    same.con.execute("UPDATE processes SET rank = 0")
    assert [one.name for one in gpu_stacks(same, None).processes] == ["rank 0 (pid 100)", "rank 0 (pid 101)"]


def test_a_trace_without_gpu_work_has_no_stacks() -> None:
    found = gpu_stacks(memory_trace([("op", "aten::mm", 0, 10, "main")]), None)
    assert (found.stacks, found.frames, found.processes, found.gpu_ns) == ((), (), (), 0)


DURATIONS = st.lists(st.tuples(st.sampled_from([4, 6, 7, None]), st.integers(0, 10**6)), max_size=12)


@examples(30, 1000)
@given(kernels=DURATIONS, lines=st.integers(0, 5), steps=st.booleans())
def test_the_stacks_add_up_to_the_time_of_the_lines(
    kernels: Sequence[tuple[int | None, int]], lines: int, steps: bool
) -> None:
    """Whatever is launched, by whichever call: shared by lines, without an address, without a launch."""
    rows = [*(ROWS if steps else [("range", "r", *ROWS[0][2:]), *ROWS[1:]])]
    rows += [
        (
            "kernel",
            f"k{launch}",
            2000 + 10**7 * at,
            dur,
            "stream 7",
            {} if launch is None else {"launch": launch},
        )
        for at, (launch, dur) in enumerate(kernels)
    ]
    stacks = [[Line("/me/model.py", 10 + number, "f")] for number in range(lines)]
    side: Mapping[str, Any] = {"generated": behind("k:1", *stacks)} if lines else {}
    trace = memory_trace(rows, side=side)
    known = addresses(trace)
    assert known is not None
    table = place_table(frame(trace), known, "line")
    for found in (gpu_stacks(trace, known), gpu_stacks(trace, None)):
        assert found.gpu_ns == table.gpu_ns == sum(one.gpu_ns for one in found.stacks)
        counted = sum(one.launches for one in found.stacks)
        assert counted == 3 + (not steps) + sum(launch is not None or not steps for launch, _ in kernels)
    assert gpu_stacks(trace, known).resolved_ns == table.gpu_ns - sum(table.unresolved.values())


@pytest.mark.parametrize("place", ["line", "module"])
def test_the_time_below_a_line_or_module_is_that_of_its_row(place: Any) -> None:
    trace = memory_trace(ROWS, side=SIDE)
    known = addresses(trace)
    assert known is not None
    found = gpu_stacks(trace, known)
    sums: dict[Line | str, int] = {}
    for one in found.stacks:
        for at in one.frames:
            if found.frames[at].kind == place:
                key = found.frames[at].line or found.frames[at].name
                sums[key] = sums.get(key, 0) + one.gpu_ns
    rows = {row.place: row.gpu_ns for row in place_table(frame(trace), known, place).rows}
    assert sums == {key: rows[key] for key in sums}
    assert len(sums) == (2 if place == "line" else 1)


def test_names_of_lines_stay_whatever_their_files_are_called() -> None:
    odd = Line("/me/run#1/model_2.py", 3, "forward")
    rows = [
        ("range", line_name(odd), 0, 100, "main"),
        ("api", "cudaGraphLaunch", 20, 5, "main"),
        ("kernel", "gemm", 30, 10, "stream 7", {"launch": 1}),
    ]
    assert [one.line for one in mapped(memory_trace(rows)).frames if one.kind == "line"] == [odd]
