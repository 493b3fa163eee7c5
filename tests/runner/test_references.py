"""What may be given where a trace is wanted: points of a run, sides of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import InputError, UsageError
from profrun.runner.references import opened, trace_paths
from profrun.store.runs import Run
from tests.cli.running import call
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

Capture = pytest.CaptureFixture[str]
KERNELS = [("kernel", "gemm", 100, 300, "stream 7"), ("kernel", "relu", 500, 200, "stream 7")]


@pytest.mark.parametrize(
    ("reference", "trials"),
    [
        ("last/a-none", ["000-a-none-r1", "004-a-none-r2"]),
        ("last/a-none-blocking", ["002-a-none-blocking-r1", "006-a-none-blocking-r2"]),
        ("last/b-none", ["001-b-none-r1"]),
        ("last/a", ["000-a-none-r1", "002-a-none-blocking-r1", "004-a-none-r2", "006-a-none-blocking-r2"]),
        ("last/4", ["004-a-none-r2"]),
        ("last/006-a", ["006-a-none-blocking-r2"]),
    ],
)
def test_a_point_is_all_its_finished_repeats(root: Path, reference: str, trials: list[str]) -> None:
    assert [path.parent.name for path in trace_paths(reference, root)] == trials


@pytest.mark.parametrize("wanted", ["a-none", "4", "004-a"])
def test_a_point_of_a_run_named_by_its_folder(root: Path, wanted: str) -> None:
    folder = trace_paths("last/4", root)[0].parents[2]
    assert "004-a-none-r2" in [
        path.parent.name for path in trace_paths(f"{folder}/{wanted}", Path("elsewhere"))
    ]


def test_a_point_without_traces_says_why(root: Path) -> None:
    with pytest.raises(InputError, match="003-b-none-blocking-r1 has no trace: it is planned"):
        trace_paths("last/b-none-blocking", root)
    with pytest.raises(UsageError, match=r"no trials of .* match 'c-none'"):
        trace_paths("last/c-none", root)


@pytest.mark.parametrize("several", ["last", "last/a-none", "last/a-none-blocking"])
def test_the_one_trace_that_is_proposed_instead_of_several_is_there(root: Path, several: str) -> None:
    with pytest.raises(UsageError) as error, opened(several, root):
        pass
    proposed = str(error.value).rpartition("e.g. ")[2]
    (path,) = trace_paths(proposed, root)
    assert path in trace_paths(several, root)


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("folder", 65, "is neither a trace nor a trial nor a run"),
        ("nowhere", 64, "no run 'nowhere'"),
        ("note.txt", 65, "is no profile that profrun can read"),
    ],
)
def test_what_is_no_trace_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, what: str, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "note.txt").write_text("hello\n")
    for command in (["summary", what], ["query", what, "SELECT 1"], ["diagnose", what]):
        done = call(capsys, *command)
        assert (done.code, done.out) == (code, "")
        assert said in done.err


def test_a_trials_and_a_runs_only_trace_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PROFRUN_RUNS", str(tmp_path / "runs"))
    run, _ = new_run(tmp_path / "runs")
    leave(begin(run.trial("000-a-none-r1")))
    assert call(capsys, "query", "last", "SELECT 1").code == 65  # no traces yet
    make_trace(run.trial("000-a-none-r1").folder / "trace", KERNELS).close()
    sql = "SELECT count(*) AS n FROM kernels"
    for what in ("last", run.name[:4], run.path, run.trial("000-a-none-r1").folder):
        assert call(capsys, "query", what, sql, "--json").json["rows"] == [[2]]
    make_trace(run.trial("001-b-none-r1").folder / "trace", KERNELS).close()
    done = call(capsys, "query", "last", "SELECT 1")
    assert done.code == 64
    assert "has 2 traces: of trials 000-a-none-r1, 001-b-none-r1; name one, e.g. last/000" in done.err
    for what in ("last/000", "last/0", f"{run.name}/000-a-none-r1"):
        assert call(capsys, "query", what, sql, "--json").json["rows"] == [[2]]
    assert "001-b-none-r1 has no trace: it is planned" in _without_trace(run, capsys)


def _without_trace(run: Run, capsys: Capture) -> str:
    (run.trial("001-b-none-r1").folder / "trace").rename(run.path / "away")
    done = call(capsys, "query", "last/1", "SELECT 1")
    assert done.code == 65
    return done.err
