"""Ranks that know nothing of each other agree on one trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.command import Command
from profrun.contract.paths import TrialPaths
from profrun.contract.recording import Rank
from profrun.contract.schedule import Schedule
from profrun.in_job.wrap_args import WrapError
from profrun.in_job.wrap_join import Asked, join, planned

COMMAND = Command("", "out", "job", "a", "torch", ("python", "x.py"), "/w")


def asked(rank: int, world: int = 2, launch: str | None = None, **more: Any) -> Asked:
    return Asked(replace(COMMAND, **more), Rank(rank, 0, world), launch, None)


def came(out: Path, rank: int, world: int = 2, launch: str | None = None, **more: Any) -> str:
    return join(out, asked(rank, world, launch, **more))[1].trial


def end(out: Path, trial: str) -> None:
    TrialPaths(out / "trials" / trial).exit.write_text("{}")


def test_the_first_makes_the_trial_and_the_others_join(tmp_path: Path) -> None:
    paths, command = join(tmp_path, asked(1, argv=("torchrun", "--node_rank=1"), cwd="/one"))
    assert command.trial == "000-a-torch-r1"
    first = json.loads(paths.command.read_text())
    also, other = join(tmp_path, asked(0, argv=("torchrun", "--node_rank=0"), cwd="/zero"))
    assert (also, other.trial) == (paths, command.trial)
    assert (other.argv, other.cwd) == (("torchrun", "--node_rank=0"), "/zero"), "each rank has its own"
    assert json.loads(paths.command.read_text()) == first, "the document is made once"
    assert sorted(path.name for path in (tmp_path / "launches/000").iterdir()) == [
        "launch.json",
        "rank0",
        "rank1",
    ]


def test_a_second_launch_is_a_further_repeat(tmp_path: Path) -> None:
    assert [came(tmp_path, rank) for rank in (0, 1)] == ["000-a-torch-r1"] * 2
    assert [came(tmp_path, rank) for rank in (1, 0)] == ["001-a-torch-r2"] * 2
    assert came(tmp_path, 0, variant="b") == "002-b-torch-r1"
    assert came(tmp_path, 0, collector="none", profiler="none") == "003-a-none-r1"
    assert came(tmp_path, 0, blocking=True) == "004-a-torch-blocking-r1"


def test_a_launch_that_has_ended_is_joined_by_nobody(tmp_path: Path) -> None:
    end(tmp_path, came(tmp_path, 0))
    assert came(tmp_path, 1) == "001-a-torch-r2"


def test_another_world_size_is_another_launch(tmp_path: Path) -> None:
    assert came(tmp_path, 0, world=2) == "000-a-torch-r1"
    assert came(tmp_path, 1, world=4) == "001-a-torch-r2"


def test_ids_keep_launches_apart_that_run_at_the_same_time(tmp_path: Path) -> None:
    order = [came(tmp_path, rank, launch=launch) for launch, rank in (("x", 0), ("y", 1), ("x", 1), ("y", 0))]
    assert order == ["000-a-torch-r1", "001-a-torch-r2", "000-a-torch-r1", "001-a-torch-r2"]


def test_one_that_died_before_the_others_came_is_left_behind(tmp_path: Path) -> None:
    """Without an id: rank 0 of the second launch comes first, and rank 1 joins the newer one."""
    assert came(tmp_path, 0) == "000-a-torch-r1"
    assert came(tmp_path, 0) == "001-a-torch-r2"
    assert came(tmp_path, 1) == "001-a-torch-r2"


def test_other_settings_are_refused_and_the_place_stays_free(tmp_path: Path) -> None:
    came(tmp_path, 0, schedule=Schedule(active=3))
    with pytest.raises(WrapError) as caught:
        came(tmp_path, 1, schedule=Schedule(active=5))
    assert "rank 1 was started with other settings than the rank that came first" in str(caught.value)
    assert "schedule: {" in str(caught.value)
    assert came(tmp_path, 1, schedule=Schedule(active=3)) == "000-a-torch-r1"


def test_a_number_whose_document_is_damaged_is_not_used_again(tmp_path: Path) -> None:
    (tmp_path / "launches/004").mkdir(parents=True)
    (tmp_path / "launches/004/launch.json").write_text("{")
    assert came(tmp_path, 0) == "005-a-torch-r1"


def test_what_would_begin_is_told_and_nothing_written(tmp_path: Path) -> None:
    assert planned(tmp_path / "x", asked(0)).trial == "000-a-torch-r1"
    assert list(tmp_path.iterdir()) == []
    came(tmp_path, 0)
    assert planned(tmp_path, asked(0)).trial == "001-a-torch-r2"


RACE = """
import sys
from pathlib import Path
from tests.in_job.test_wrap_join import came
sys.stdin.readline()
print(came(Path(sys.argv[1]), int(sys.argv[2]), world=8, launch="one"))
"""


def test_ranks_that_come_in_the_same_moment_agree(tmp_path: Path) -> None:
    """Eight processes wait for one word, then join at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path), str(rank)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        for rank in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda process: process.communicate("go\n", timeout=240)[0].strip(), processes))
    assert found == ["000-a-torch-r1"] * 8
    assert sorted(path.name for path in (tmp_path / "launches").iterdir()) == ["000"]
    assert len(list((tmp_path / "launches/000").glob("rank*"))) == 8


def test_threads_of_many_launches_race(tmp_path: Path) -> None:
    """Four launches of one point at once, eight ranks each: each trial has every rank once."""
    places = [(f"l{launch}", rank) for rank in range(8) for launch in range(4)]

    def one(place: tuple[str, int]) -> tuple[str, str]:
        return place[0], came(tmp_path, place[1], world=8, launch=place[0])

    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(one, places))
    assert len(found) == 4, "one trial for each launch"
    assert {trial for _, trial in found} == {f"{number:03d}-a-torch-r{number + 1}" for number in range(4)}


@pytest.mark.parametrize("trial", ["../../victim", "/tmp/x", "a/b", ""])
def test_a_document_that_leads_to_another_folder_is_joined_by_nobody(tmp_path: Path, trial: str) -> None:
    out = tmp_path / "out"
    came(out, 1)
    document = out / "launches/000/launch.json"
    text = json.loads(document.read_text())
    text["command"]["trial"] = trial
    document.write_text(json.dumps(text))
    (out / "launches/²").mkdir()  # a digit to Python, and no number
    assert came(out, 0) == "001-a-torch-r2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
