"""Findings about the quality of a recording: when each appears, and what it affects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.analysis.trace.summary import summarize
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step

LAUNCH = "cudaLaunchKernel"


def codes(trace: Trace) -> dict[str, str]:
    return {one.code: one.severity for one in data_quality(trace)}


def test_launches_without_any_gpu_record() -> None:
    trace = memory_trace([step(0, 0, 99), ("api", LAUNCH, 5, 5, "main")])
    assert codes(trace)["no_gpu_records"] == "critical"
    assert summarize(trace).steps[0].kernels is None


def test_unattributed_gpu_time_is_a_share_of_gpu_time() -> None:
    def stray(ns: int) -> Trace:
        return memory_trace(
            [
                ("api", LAUNCH, 0, 5, "main"), ("kernel", "a", 10, 100, "stream 7", {"launch": 0}),
                ("kernel", "b", 200, ns, "stream 7"),
            ]
        )  # fmt: skip

    assert [codes(stray(ns))["unattributed_gpu_time"] for ns in (1, 20, 200)] == [
        "info",
        "warning",
        "critical",
    ]
    (finding,) = [one for one in data_quality(stray(25)) if one.code == "unattributed_gpu_time"]
    assert (finding.count, finding.share, finding.share_of) == (1, 0.2, "GPU time")
    assert "steps.kernels" in withheld(data_quality(stray(200)))


def test_launches_whose_kernels_were_lost() -> None:
    rows: list[Row] = [("api", LAUNCH, 10 * place, 5, "main") for place in range(10)]
    rows += [("kernel", "k", 100 + 10 * place, 5, "stream 7", {"launch": place}) for place in range(9)]
    (finding,) = [one for one in data_quality(memory_trace(rows)) if one.code == "launches_without_kernels"]
    assert (finding.count, finding.share, finding.severity) == (1, 0.1, "warning")


@pytest.mark.parametrize(
    ("rows", "meta", "code"),
    [
        ([("kernel", "a", 0, 10, "stream 7"), ("kernel", "b", 5, 10, "stream 7")], {}, "stream_overlap"),
        ([("kernel", "frobnicate", 0, 10, "stream 7")], {}, "unknown_kernels"),
        ([("kernel", "a", 0, 10, "stream 7")], {}, "no_grid"),
        ([("op", "aten::mm", 0, 10, "main")], {}, "no_steps"),
        ([step(0, 0, 10)], {"launch_blocking": True}, "launch_blocking"),
        ([step(0, 0, 100), ("overhead", "Instrumentation", 5, 50, "main")], {}, "profiler_overhead"),
        ([step(0, 10, 50), ("kernel", "a", 5, 20, "stream 7")], {}, "window_edge"),
        ([step(0, 0, 99), ("op", "aten::mm", 0, 5, "main"), ("api", LAUNCH, 9, 1, "main"),
          ("kernel", "a", 15, 20, "stream 7", {"launch": 2})], {}, "gpu_time_outside_ops"),
        ([step(0, 0, 10), ("api", LAUNCH, 1, 1, "main"),
          ("kernel", "a", 5, 90, "stream 7", {"launch": 1})], {}, "host_ahead"),
        ([("api", "hipGraphLaunch", 1, 1, "main"), ("kernel", "a", 5, 90, "stream 7", {"launch": 0})], {},
         "graph_launches"),
    ],
)  # fmt: skip
def test_each_finding(rows: list[tuple[object, ...]], meta: dict[str, object], code: str) -> None:
    assert code in codes(memory_trace(rows, meta=meta))
    assert code not in codes(memory_trace([step(0, 0, 100), ("op", "aten::mm", 0, 10, "main")]))


def test_what_the_reader_noticed_is_said() -> None:
    issue = {"code": "clipped", "count": 3, "message": "three were clipped", "example": None}
    (finding,) = data_quality(memory_trace([step(0, 0, 9)], side={"issues": [issue]}))
    assert (finding.code, finding.count, finding.what) == ("reader:clipped", 3, "three were clipped")


def test_blocking_launches_are_told_from_their_timing(real: Callable[..., Trace]) -> None:
    assert codes(real("h200/torch/mlp_blocking.json.gz"))["launch_blocking"] == "warning"
    assert "launch_blocking" not in codes(real("h200/torch/mlp.json.gz"))
