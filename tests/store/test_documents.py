"""A trial's documents: as they are written now, and as profrun 0.1 wrote them."""

from __future__ import annotations

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from profrun.contract.codec import to_json
from profrun.contract.exit import Artefact, Exit
from profrun.contract.finding import Finding
from profrun.contract.paths import TrialPaths
from profrun.contract.schedule import WindowPart
from profrun.contract.states import Status
from profrun.contract.steps import Anchor, StepsFile, StepTime
from profrun.errors import InputError
from profrun.in_job.rank_answers import gathered
from profrun.store.documents import (
    Steps,
    finalising,
    fold_steps,
    median_ns,
    read_command,
    read_exit,
    read_provenance,
    read_steps,
    status_of,
    whole_artefacts,
    with_late_answers,
    with_the_engines_reason,
)
from profrun.store.files import write_json
from tests.conftest import SHARED, missing, unpack


@pytest.mark.parametrize(
    ("durations", "median"), [([], None), ([5], 5), ([1, 9], 5), ([1, 2], 2), ([3, 1, 2], 2)]
)
def test_median_in_whole_ns(durations: list[int], median: int | None) -> None:
    assert median_ns(durations) == median


def _rank(number: int, *steps: tuple[int, int | None, WindowPart]) -> StepsFile:
    rows = tuple(StepTime(n, 0, ns, window=window) for n, ns, window in steps)
    return StepsFile(number, 1, "explicit", "wall", Anchor(0, 0, 0), steps=rows)


def test_of_several_ranks_the_slowest_of_each_step_counts() -> None:
    ranks = [
        _rank(0, (0, 100, "wait"), (1, 10, "active"), (2, 30, "active")),
        _rank(1, (0, 90, "wait"), (1, 20, "active"), (2, 25, "active"), (3, None, "outside")),
    ]
    steps = fold_steps(ranks)
    assert steps.measured == (20, 30)
    assert steps.all_ns == (100, 20, 30)
    assert (steps.median_ns, steps.count, steps.how, steps.clock) == (25, 4, "explicit", "wall")


@pytest.mark.parametrize(("starts", "slowest"), [((3, 5), 5), ((0, 0), 0), ((3, None), None)])
def test_a_run_waits_for_the_slowest_start_of_a_profiler(
    starts: tuple[int | None, ...], slowest: int | None
) -> None:
    ranks = [replace(_rank(n, (0, 9, "active")), profiler_start_ns=ns) for n, ns in enumerate(starts)]
    assert fold_steps(ranks).profiler_start_ns == slowest


def test_no_file_is_no_steps(tmp_path: Path) -> None:
    assert read_steps(TrialPaths(tmp_path)) == Steps()


def test_an_end_is_read_as_it_was_written(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    ended = Exit("000", "failed", attempt=2, exit_code=3, reason="it broke", code="app-failed")
    write_json(paths.exit, to_json(ended))
    assert read_exit(paths) == read_exit(paths, 2) == ended
    assert read_exit(paths, 3) is None
    assert status_of(ended) == Status("failed", "it broke", 3, "app-failed")


def test_a_late_answer_is_added_to_the_end(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    paths.hook.mkdir()
    own = Exit("000", "finished", exit_code=0, attempt=2)
    answers = {0: own, 2: replace(own, rank=2)}
    ended = gathered(answers, 4)
    for rank, answer in answers.items():
        write_json(paths.answer(rank), to_json(answer))
    assert with_late_answers(paths, ended) == ended
    write_json(paths.answer(3), to_json(replace(own, rank=3, attempt=1)))  # of an earlier attempt
    assert with_late_answers(paths, ended) == ended
    write_json(paths.answer(1), to_json(replace(own, rank=1)))
    settled = with_late_answers(paths, ended)
    assert (settled.state, settled.silent, settled.wrappers) == ("failed", (3,), 4)
    assert read_exit(paths) == settled
    write_json(paths.answer(3), to_json(replace(own, rank=3)))
    assert with_late_answers(paths, settled) == replace(own, wrappers=4)


def test_what_the_engine_knows_of_a_silent_rank_is_the_reason(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    ended = gathered({0: Exit("000", "finished")}, 2)
    assert with_the_engines_reason(paths, ended, status_of(ended)) == ended
    told = Status("failed", "rank 1: out of memory", 137, "rank-silent")
    assert with_the_engines_reason(paths, ended, told).reason == "rank 1: out of memory"
    assert with_the_engines_reason(paths, ended, Status("lost")) == ended


@pytest.mark.parametrize(
    ("phase", "status"),
    [
        ({"phase": "app"}, None),
        ({"phase": "export"}, Status("finalising")),
        ({"phase": "ranks", "waiting": "ranks 1-3"}, Status("finalising", "waits for ranks 1-3")),
    ],
)
def test_what_is_done_when_the_program_has_ended(
    tmp_path: Path, phase: dict[str, str], status: Status | None
) -> None:
    write_json(TrialPaths(tmp_path).phase, phase)
    assert finalising(TrialPaths(tmp_path)) == status


def test_a_damaged_document_is_said_and_a_damaged_end_is_none(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    for path in (paths.command, paths.exit, paths.provenance):
        path.write_text('{"format": 2, "state": "finished"}')
    assert read_exit(paths) is None
    with pytest.raises(InputError, match=r"command\.json is damaged: trial is missing"):
        read_command(paths)
    with pytest.raises(InputError, match=r"provenance\.json is damaged"):
        read_provenance(paths)


def test_only_whole_files_that_are_there_are_normalised(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    for name in ("whole", "cut"):
        (tmp_path / name).touch()
    listed = (Artefact("whole", 1, "whole"), Artefact("cut", 1, "truncated"), Artefact("gone", 1, "whole"))
    assert whole_artefacts(paths, Exit("t", "finished", artefacts=listed)) == [tmp_path / "whole"]
    assert whole_artefacts(paths, None) == []


@pytest.fixture(scope="module", params=["ddp", "dead", "hf"])
def old_trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[TrialPaths]:
    """Trials of a run that profrun 0.1 made on an H200: none, torch, nsys."""
    archive = SHARED / "h200_runs" / f"{request.param}.tar.xz"
    if not archive.exists():
        missing(str(archive))
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(archive) as packed:
        wanted = [item for item in packed if item.name.endswith(".json") and "/trace/" not in item.name]
        unpack(packed, folder, wanted)
    return [TrialPaths(path) for path in sorted(folder.glob("*/trials/*"))]


def test_documents_of_profrun_0_1_are_read(old_trials: list[TrialPaths]) -> None:
    for paths, profiler in zip(old_trials, ("none", "torch", "nsys"), strict=True):
        ended, told, machine = read_exit(paths), read_command(paths), read_provenance(paths)
        assert ended is not None
        assert told is not None
        assert machine is not None
        assert (ended.trial, told.trial, machine.trial) == (paths.folder.name,) * 3
        assert (ended.profiler, ended.vendor) == (profiler, "nvidia")
        assert {warning.code for warning in ended.warnings} <= {"note"}
        assert all(warning.what for warning in ended.warnings)
        assert {found.severity for found in machine.preflight} <= {"critical", "warning", "info"}
        assert machine.gpus.before[0]["name"] == "NVIDIA H200"
        assert read_steps(paths).count > 0


def test_a_warning_of_profrun_0_1_is_a_finding(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    old = {"format": 1, "trial": "t", "state": "finished", "collector": "nsys", "warnings": ["no step seen"]}
    write_json(paths.exit, old)
    ended = read_exit(paths)
    assert ended is not None
    assert ended.warnings == (Finding("note", "warning", "no step seen"),)
    assert str(ended.warnings[0]) == "no step seen"


def test_artefacts_outside_of_the_trial_are_not_read(tmp_path: Path) -> None:
    """``exit.json`` may state any path."""
    (tmp_path / "victim.json").write_text("{}")
    trial = TrialPaths(tmp_path / "trial")
    trial.rank(0).mkdir(parents=True)
    (trial.rank(0) / "own.json").write_text("{}")
    (trial.rank(0) / "link.json").symlink_to(tmp_path / "victim.json")
    os.mkfifo(trial.rank(0) / "pipe.json")
    paths = ("own.json", "link.json", "pipe.json", "../../../victim.json", "x" * 5000, "a\0b")
    named = [*(f"raw/rank0/{name}" for name in paths), str(tmp_path / "victim.json"), "", "raw"]
    ended = Exit("t", "finished", artefacts=tuple(Artefact(name, 2, "whole") for name in named))
    assert whole_artefacts(trial, ended) == [trial.rank(0) / "own.json"]
