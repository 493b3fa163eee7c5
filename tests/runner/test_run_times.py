"""Runs without steps, alone and under a profiler: from the same begin to the same end of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.contract.paths import TrialPaths
from profrun.runner.default_comparisons import Pair, Point, compare_pairs
from profrun.store.documents import Steps
from profrun.store.run_result import PairResult
from profrun.store.state import TrialRecord
from tests.analysis.compare.trials import trial as made_trial


def point(collector: str, *runs: tuple[int, int | None]) -> Point:
    """Trials of a run; each is (duration without the profiler's start, that start), ns."""
    found = Point("v", collector, blocking=False)
    for repeat, (run_ns, start_ns) in enumerate(runs):
        steps = Steps(how="run", clock="wall", count=1, measured=(run_ns,), profiler_start_ns=start_ns)
        record = TrialRecord(
            id=f"{repeat}-{collector}",
            index=repeat,
            variant="v",
            collector=collector,
            blocking=False,
            repeat=repeat,
            state="finished",
            paths=TrialPaths(Path("/run/trials/0")),
            profiler=collector,
            steps=steps,
            trace=Path("/run/trials/0/trace"),
        )
        found.trials.append(record)
    return found


def overhead(none: Point, torch: Point) -> list[PairResult]:
    """The comparison; each trace holds 100 ns, which is the recorded range and no time of the run."""

    def trials_of(one: Point) -> list[ComparedTrial]:
        return [made_trial(label=record.id) for record in one.trials]

    return compare_pairs([Pair("overhead", none, torch)], [none, torch], trials_of, trials_of)


def test_the_start_of_the_profiler_counts_because_it_does_set_up_of_the_program() -> None:
    """Without a profiler 500 ns, of which 250 initialise CUDA; torch.profiler does that when it starts."""
    (pair,) = overhead(point("none", (500, 1), (500, 1)), point("torch", (250, 750), (250, 750)))
    assert pair.ratio == pytest.approx(1000 / 501)
    assert pair.a_ns == pytest.approx(501)
    assert pair.b_ns == pytest.approx(1000)
    assert pair.start_ns == 750
    assert pair.denominator.of == "run"
    assert "; the profiler takes 750 ns of its run to start" in pair.text


def test_where_the_start_is_not_known_there_is_no_overhead() -> None:
    """Runs of profrun 0.1 say nothing of the start."""
    assert overhead(point("none", (500, 1)), point("torch", (250, None))) == []
