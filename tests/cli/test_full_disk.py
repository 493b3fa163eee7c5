"""A run on a small disk of its own: a full one stops the run once, and resume goes on when there is room.

A tmpfs is mounted for it, which only root may do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.contract.exit import Exit
from profrun.store.documents import read_exit
from profrun.store.state import read_state
from tests.cli.programs import STEPS, last_run, write_job
from tests.cli.running import program
from tests.conftest import missing

pytestmark = pytest.mark.thorough

MIB = 1 << 20
FILLS = (
    STEPS
    + """
import os
if not os.path.exists("room"):
    with open(os.environ["RUNS"] + "/filler", "wb") as file:
        while True:
            file.write(b"x" * (1 << 16))
            file.flush()
"""
)
"""Fills the disk of the runs, and fails of it, unless the file `room` is there."""
PRINTS = STEPS + "\nimport sys\nfor _ in range(int(sys.argv[1])):\n    sys.stdout.write('y' * (1 << 20))\n"


@pytest.fixture
def disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 100 MiB, as the folder of the runs."""
    runs = here / "runs"
    runs.mkdir()
    if os.getuid() != 0:
        missing("the right to mount a disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", runs], check=False)
    if done.returncode:
        missing("a tmpfs that can be mounted")
    monkeypatch.setenv("RUNS", str(runs))
    yield runs
    subprocess.run(["umount", "-l", runs], check=True)


def _exit(here: Path, trial: int) -> Exit:
    found = read_exit(read_state(last_run(here)).trials[trial].paths)
    assert found is not None
    return found


@pytest.mark.parametrize("runs", [3])
def test_a_program_that_fills_the_disk_stops_the_run_once(here: Path, disk: Path, runs: int) -> None:
    job = write_job(here, FILLS, repeats=runs)
    done = program("submit", job, cwd=here)
    assert done.code == 69, done.err
    (said,) = [line for line in done.err.splitlines() if line.startswith("profrun: ")]
    assert f"profrun: the disk of {last_run(here).path} is full, and no other trial was started: " in said
    assert f"free some space, then `profrun resume {last_run(here).name}`: 0 of {runs} trials" in said
    assert _exit(here, 0).code == "disk-full"
    assert [trial.state for trial in read_state(last_run(here)).trials] == ["failed", "planned", "planned"]
    done = program("resume", "last", cwd=here)
    assert (done.code, "the disk" in done.err) == (69, True)  # there is still no room
    (disk / "filler").unlink()
    (here / "room").touch()
    done = program("resume", "last", "--json", cwd=here)
    assert done.code == 0, done.err
    assert [trial["state"] for trial in done.json["trials"]] == ["finished"] * runs
    assert [trial["attempt"] for trial in done.json["trials"]] == [2] + [1] * (runs - 1)


def test_a_disk_without_room_starts_no_trial_at_all(here: Path, disk: Path) -> None:
    (disk / "filler").write_bytes(b"x" * (60 * MIB))
    done = program("submit", write_job(here, STEPS, repeats=3), cwd=here)
    assert done.code == 69
    assert "MiB are free, and a trial needs 64 MiB" in done.err
    assert [trial.state for trial in read_state(last_run(here)).trials] == ["planned"] * 3
    (disk / "filler").unlink()
    assert program("resume", "last", cwd=here).code == 0


def test_output_without_end_is_kept_once_and_up_to_its_cap(here: Path, disk: Path) -> None:
    """2 GB of output took 3.8 GB of disk: here 300 MiB are printed on a disk of 100 MiB."""
    job = write_job(here, PRINTS, "300", resources={"output": "4MiB"})
    done = program("submit", job, "--json", cwd=here)
    assert done.code == 0, done.err
    (trial,) = read_state(last_run(here)).trials
    assert 4 * MIB <= trial.paths.stdout.stat().st_size < 4 * MIB + 1000
    assert trial.paths.wrapper_log.stat().st_size == 0
    assert sum(file.stat().st_size for file in trial.paths.folder.rglob("*.log")) < 5 * MIB
    assert [finding.code for finding in trial.warnings if finding.code == "output-cut"] == ["output-cut"]
    said = f"[profrun] {300 * MIB + len('done') + 1 - 4 * MIB} bytes are missing here"
    assert said in trial.paths.stdout.read_text().splitlines()
