"""What a trace says of its clocks: from its meta, or worked out where the meta has nothing."""

from __future__ import annotations

from profrun.analysis.trace.clocks import judgement
from profrun.traces.causality.model import Clock, Judgement, clock_entries
from tests.analysis.kit import Row, memory_trace

ROWS: list[Row] = [
    ("api", "cudaLaunchKernel", 10_001, 2000, "main"),
    ("kernel", "k", 3_000, 1000, "stream 7", {"launch": 0}),
]


def test_a_trace_without_clocks_in_its_meta_is_judged() -> None:
    (clock,) = judgement(memory_trace(ROWS)).clocks
    assert (clock.verdict, clock.launches, clock.constant_low_ns) == ("offset", 1, 7001 - 2000)
    assert not clock.moved


def test_what_normalize_wrote_is_believed() -> None:
    said = Clock(0, 0, 0, None, 3000, 4000, 1, 0, "consistent", moved_ns=5)
    meta = {"clocks": clock_entries([said]), "contradictions": []}
    assert judgement(memory_trace(ROWS, meta=meta)) == Judgement((said,))


def test_without_a_timeline_there_is_nothing_to_judge() -> None:
    assert judgement(memory_trace(ROWS, meta={"replayed": True})) == Judgement()
