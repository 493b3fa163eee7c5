"""What may be given where a trace is wanted: points of a run, sides of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.compare_args import sides_of
from profrun.errors import InputError, UsageError
from profrun.runner.references import opened, trace_paths
from tests.runner.scripted import begin, leave, new_run

SPEC = """
name: t
command: python x.py
variants: {a: {}, b: {}}
collectors: [none]
launch_blocking: both
repeats: 2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run whose trials of a finished with a trace; b's second failed, b's blocking ones never ran."""
    run, plan = new_run(tmp_path, SPEC)
    for trial in plan.trials:
        if trial.variant == "b" and trial.blocking:
            continue
        paths = begin(run.trial(trial.id))
        paths.trace.mkdir()
        (paths.trace / "meta.json").write_text("{}")
        run.log().append("started", trial.id, attempt=1)
        leave(paths, "failed" if trial.variant == "b" and trial.repeat == 2 else "finished")
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "trials"),
    [
        ("last/a-none", ["000-a-none-r1", "004-a-none-r2"]),
        ("last/a-none-blocking", ["002-a-none-blocking-r1", "006-a-none-blocking-r2"]),
        ("last/b-none", ["001-b-none-r1"]),
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "it is there 0 times"),
        (["last/a-none", "last/b-none"], "it is there 0 times"),
        (["x", "vs", "y", "vs", "z"], "it is there 2 times"),
        (["vs", "last/a-none"], "nothing before 'vs'"),
        (["last/a-none", "vs"], "nothing after 'vs'"),
        (["last/a-none", "vs", "last/0"], "is on both sides"),
        (["last/a-none", "last/0", "vs", "last/b-none"], "is named twice on one side"),
    ],
)
def test_wrong_sides_are_said(root: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sides_of(words, root)


def test_sides_are_points_trials_and_folders(root: Path) -> None:
    folder = str(trace_paths("last/6", root)[0])
    sides = sides_of(["last/a-none", "vs", "last/b-none", folder], root)
    assert [label for label, _ in sides.a] == ["000-a-none-r1", "004-a-none-r2"]
    assert [label for label, _ in sides.b] == ["001-b-none-r1", "006-a-none-blocking-r2"]


@pytest.mark.parametrize("several", ["last", "last/a-none", "last/a-none-blocking"])
def test_the_one_trace_that_is_proposed_instead_of_several_is_there(root: Path, several: str) -> None:
    with pytest.raises(UsageError) as error, opened(several, root):
        pass
    proposed = str(error.value).rpartition("e.g. ")[2]
    (path,) = trace_paths(proposed, root)
    assert path in trace_paths(several, root)
