"""The end of a run opens each trace once, whatever asks."""

from __future__ import annotations

from pathlib import Path

import pytest

import profrun
from profrun.jobs.model import Expectation
from profrun.plans.model import TrialState
from profrun.runner.default_comparisons import implied_comparisons
from profrun.runner.expectations import guess_rows
from profrun.runner.finish import ask_traces
from profrun.runner.twins import compare_twins
from profrun.store.state import TrialRecord
from profrun.traces.trace import Trace
from tests.tracekit import make_trace

STEP = [
    ("step", "profrun.step#1", 0, 100, "main"),
    ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
    ("kernel", "gemm", 50, 10, "stream 7", {"launch": 1}),
]


@pytest.fixture
def records(tmp_path: Path) -> list[TrialRecord]:
    """A point of torch with and without blocking, one of no profiler, and a failed trial."""
    found = []
    trials: list[tuple[str, bool, TrialState]] = [
        ("torch", False, "finished"), ("torch", True, "finished"), ("none", False, "finished"),
        ("torch", False, "failed"),
    ]  # fmt: skip
    for number, (collector, blocking, state) in enumerate(trials):
        path = tmp_path / str(number) / "trace"
        path.parent.mkdir()
        make_trace(path, STEP, meta={"collector": collector}).close()
        found.append(
            TrialRecord(f"{number:03}", 0, "a", collector, blocking, 1, state, path.parent, trace=path)
        )
    return found


def test_each_trace_is_opened_once(records: list[TrialRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    really = profrun.open

    def counted(path: Path) -> Trace:
        opened.append(path)
        return really(path)

    monkeypatch.setattr(profrun, "open", counted)
    told = ask_traces(records, [Expectation(None, None, {"kernels_per_step": (1, 1)})])
    twins = compare_twins(records, told.kernels)
    guesses = guess_rows(told.checks)
    compared = implied_comparisons(records, told.trials)
    assert opened == [record.trace for record in records[:3]]
    monkeypatch.undo()
    assert twins == compare_twins(records)  # and the answers are those of asking each on its own
    assert compared == implied_comparisons(records)
    assert [(row["state"], row["trials"]) for row in guesses] == [("held", ["000", "001"])]


def test_without_traces_there_is_nothing(tmp_path: Path) -> None:
    nothing = TrialRecord("x", 0, "a", "torch", False, 1, "failed", tmp_path)
    told = ask_traces([nothing], ())
    assert (told.trials, told.kernels, guess_rows(told.checks)) == ({}, {}, [])
