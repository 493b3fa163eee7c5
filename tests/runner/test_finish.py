"""The end of a run: each trace is opened once, its points are compared, the expectations are checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.contract.paths import TrialPaths
from profrun.contract.states import TrialState
from profrun.jobs.expectation import Expectation
from profrun.runner.finish import write_findings
from profrun.store.run_result import read_findings
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord
from tests.tracekit import make_trace

STEP = [
    ("step", "profrun.step#1", 0, 100, "main"),
    ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
    ("kernel", "gemm", 50, 10, "stream 7", {"launch": 1}),
]


@pytest.fixture
def state(tmp_path: Path) -> RunState:
    """A point of torch with and without blocking, one of no profiler, and a failed trial."""
    found = []
    trials: list[tuple[str, bool, TrialState]] = [
        ("torch", False, "finished"),
        ("torch", True, "finished"),
        ("none", False, "finished"),
        ("torch", False, "failed"),
    ]
    for number, (collector, blocking, ended) in enumerate(trials):
        path = tmp_path / str(number) / "trace"
        path.parent.mkdir()
        make_trace(path, STEP, meta={"collector": collector}).close()
        found.append(
            TrialRecord(
                f"{number:03}", 0, "a", collector, blocking, 1, ended, TrialPaths(path.parent), trace=path
            )
        )
    return RunState(Run(tmp_path), "t", "local", tmp_path, 5, "finished", False, tuple(found))


def test_each_trace_is_opened_once(state: RunState, opened: list[Path]) -> None:
    opened.clear()
    write_findings(state, [Expectation(kernels_per_step=(1, 1))])
    assert opened == [record.trace for record in state.trials[:3]]


def test_what_was_found_is_kept_and_read_back(state: RunState) -> None:
    found = write_findings(state, [Expectation(kernels_per_step=(1, 1))])
    assert read_findings(state.run) == (found, None)
    assert [(pair.kind, pair.a, pair.b) for pair in found.comparisons] == [("overhead", "a-none", "a-torch")]
    (row,) = found.expectations
    assert (row.state, row.checks[0].trials) == ("held", ("000", "001"))


def test_without_traces_there_is_nothing(tmp_path: Path) -> None:
    nothing = TrialRecord("x", 0, "a", "torch", False, 1, "failed", TrialPaths(tmp_path))
    state = RunState(Run(tmp_path), "t", "local", tmp_path, 5, "failed", False, (nothing,))
    found = write_findings(state, ())
    assert (found.comparisons, found.expectations) == ((), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "makes it again"),
        (json.dumps({"format": 1}), "was written by another version of profrun"),
        (json.dumps({"format": 3, "comparisons": [{"kind": "x"}]}), "is damaged: comparisons[0].kind is 'x'"),
    ],
)
def test_a_damaged_file_is_told_and_hides_nothing(tmp_path: Path, text: str, said: str) -> None:
    run = Run(tmp_path)
    run.comparison.write_text(text)
    found, problem = read_findings(run)
    assert found.comparisons == ()
    assert problem is not None
    assert said in problem
