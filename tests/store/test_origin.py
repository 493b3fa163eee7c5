"""Whose a run is, and what in its folder is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from profrun.errors import InputError
from profrun.store.origin import foreign, need_plain
from profrun.store.runs import Run
from profrun.store.seal import place_of
from tests.runner.scripted import begin, leave, new_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of this user, made here, with one finished trial."""
    run, _ = new_run(tmp_path / "runs")
    run.log().append("started", "000-a-none-r1", attempt=1)
    leave(begin(run.trial("000-a-none-r1")))
    return run


def test_a_run_that_was_made_here_is_ones_own(run: Run) -> None:
    assert foreign(run) is None
    need_plain(run)


def test_a_copy_and_a_moved_run_are_not(run: Run, tmp_path: Path) -> None:
    copy = Run(tmp_path / "copy")
    shutil.copytree(run.path, copy.path)
    found = foreign(copy)
    assert found is not None
    assert found.why.startswith(f"it was made as '{run.path}' on the machine ")
    assert found.why.endswith(f"and lies in {copy.path} now")
    copy.log().append("accepted", **vars(place_of(copy.path)))
    assert foreign(copy) is None


def test_a_log_that_states_this_very_place_is_not_believed(run: Run) -> None:
    first, *others = run.events.read_text().splitlines()
    event = json.loads(first)
    for change, why in (
        ({"seal": None}, "another user or another machine"),
        ({"seal": "0" * 64, "host": "h"}, "another user or another machine ('h') made it"),
        ({"path": "", "seal": None}, "does not say where it was made"),
    ):
        run.events.write_text("\n".join([json.dumps(event | change), *others]) + "\n")
        found = foreign(run)
        assert found is not None
        assert why in found.why


@pytest.mark.parametrize("name", ["", "resolved.yaml", "plan.json", "events.jsonl"])
def test_a_file_of_another_user_makes_it_foreign(
    run: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = run.path / name
    real = Path.stat

    def stat(path: Path) -> object:  # only root gives files away
        return SimpleNamespace(st_uid=4242) if path == theirs else real(path)

    monkeypatch.setattr(Path, "stat", stat)
    found = foreign(run)
    assert found is not None
    assert "belongs to the user with the number" in found.why


@pytest.mark.parametrize(
    "place",
    [
        "lock",
        "events.jsonl",
        "cancel",
        "driver.log",
        "bundle",
        "bundle.partial",
        "trials",
        "trials/000-a-none-r1",
        "trials/000-a-none-r1/live",
        "trials/000-a-none-r1/wrapper.log",
        "trials/000-a-none-r1/exit.json",
        "trials/000-a-none-r1/hook",
        "trials/000-a-none-r1/raw",
        "trials/000-a-none-r1/raw/rank0",
        "trials/000-a-none-r1/trace",
        "trials/000-a-none-r1/attempts",
        "trials/000-a-none-r1/attempts/1",
        "slurm/trial.sh",
    ],
)
@pytest.mark.parametrize("what", ["link", "pipe"])
def test_a_link_or_a_pipe_where_profrun_writes_is_refused(
    run: Run, tmp_path: Path, place: str, what: str
) -> None:
    path = run.path / place
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        shutil.move(path, tmp_path / "away")
    if what == "link":
        (tmp_path / "victim").mkdir()
        path.symlink_to(tmp_path / "victim")
    else:
        os.mkfifo(path)
    with pytest.raises(InputError, match=r"it is a (symbolic link|pipe)") as caught:
        need_plain(run)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("place", ["lock", "cancel", "plan.json", "trials/000-a-none-r1/exit.json"])
def test_a_folder_in_place_of_a_file_is_refused(run: Run, place: str) -> None:
    path = run.path / place
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        need_plain(run)


def test_a_file_in_place_of_a_folder_is_refused(run: Run) -> None:
    (run.trial("000-a-none-r1").folder / "attempts").write_text("")
    with pytest.raises(InputError, match="it is a file"):
        need_plain(run)


def test_a_file_system_that_shows_another_owner_makes_no_run_foreign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So do shares that map all users to one: the folder belongs to that one from its beginning."""
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    run, _ = new_run(tmp_path)
    assert foreign(run) is None
    text = run.events.read_text()
    owner = run.path.stat().st_uid
    run.events.write_text(text.replace(f'"owner":{owner}', '"owner":4243'))  # the seal is of both
    assert foreign(run) is not None


def test_a_run_of_another_user_is_ones_own_when_it_was_accepted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    run.events.write_text(run.events.read_text().replace('"seal":"', '"seal":"x'))
    assert foreign(run) is not None
    run.log().append("accepted", **vars(place_of(run.path)))
    assert foreign(run) is None
