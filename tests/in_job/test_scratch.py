"""Profilers record on a disk of the node; the files come to the trial's folder however the trial ends."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.paths import TrialPaths
from profrun.in_job.scratch import Scratch
from tests.in_job.kit import Done, Trial, fake_nsys, python


def scratch(root: Path, wanted: str | None = "$NODE_DISK/tmp") -> Scratch:
    (root / "disk/tmp").mkdir(parents=True)
    (root / "trial").mkdir()
    return Scratch(TrialPaths(root / "trial"), wanted, {"NODE_DISK": str(root / "disk")})


def left(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_without_a_wish_everything_is_written_where_it_stays(tmp_path: Path) -> None:
    found = scratch(tmp_path, None)
    assert found.open(3) is None
    assert found.rank(3) == tmp_path / "trial/raw/rank3"
    assert found.deliver() == []


def test_files_of_all_ranks_of_a_wrapper_are_moved_with_their_folders_and_times(tmp_path: Path) -> None:
    found = scratch(tmp_path)
    assert found.open(2) is None
    assert found.rank(2).is_dir()
    assert found.rank(2).parent.parent == tmp_path / "disk/tmp"
    (found.rank(2) / "sub").mkdir()
    (found.rank(2) / "sub/a.db").write_bytes(b"a")
    os.utime(found.rank(2) / "sub/a.db", (5, 5))
    found.rank(7).mkdir()
    (found.rank(7) / "b").write_bytes(b"b")
    assert found.deliver() == []
    assert left(tmp_path) == ["trial/raw/rank2/sub/a.db", "trial/raw/rank7/b"]
    assert (tmp_path / "trial/raw/rank2/sub/a.db").stat().st_mtime == 5
    assert list((tmp_path / "disk/tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("wanted", "why"), [("$SLURM_TMPDIR", "$SLURM_TMPDIR is not set"), ("/nowhere/at/all", "No such file")]
)
def test_a_folder_that_is_not_there_is_not_used_and_named(tmp_path: Path, wanted: str, why: str) -> None:
    found = scratch(tmp_path, wanted)
    told = found.open(0)
    assert told is not None
    assert (told.code, told.severity) == ("scratch-not-used", "warning")
    assert why in (told.why or "")
    assert found.rank(0) == tmp_path / "trial/raw/rank0"


def test_a_file_for_which_there_is_no_room_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scratch(tmp_path)
    found.open(0)
    for name in ("large", "small"):
        (found.rank(0) / name).write_bytes(b"x" * 2048)
    real = shutil.copyfile

    def copyfile(source: str, target: str) -> None:
        real(source, target)
        if source.endswith("large"):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    (told,) = found.deliver()
    assert told.what == "large (2 KiB) could not be copied to the trial's folder: No space left on device"
    assert told.severity == "critical"
    kept = [path for path in left(tmp_path) if path.endswith("large")]
    assert len(kept) == 1
    assert kept[0].startswith("disk/tmp/")
    assert (tmp_path / "trial/raw/rank0/small").is_file()
    assert str(tmp_path / kept[0]) in str(told)


def trial(root: Path, program: list[str], **command: Any) -> Trial:
    (root / "node").mkdir()
    return Trial(root, program, collector="nsys", scratch="$NODE", **command)


def reports(done: Done) -> dict[str, str]:
    return {row["path"]: row["state"] for row in done.exit["artefacts"] if "report" in row["path"]}


def test_a_profiler_round_the_program_records_on_the_node(tmp_path: Path) -> None:
    here = trial(tmp_path, python("import os; print('there', os.environ['TMPDIR'])"))
    done = here.run(fake_nsys(tmp_path, 0.1) | {"NODE": str(tmp_path / "node")})
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert f"there {tmp_path}/node/profrun-000-a-" in done.log()
    assert reports(done) == {"raw/rank0/report.nsys-rep": "whole", "raw/rank0/report.sqlite": "whole"}
    assert left(tmp_path / "node") == []
    assert list((tmp_path / "node").iterdir()) == []


@pytest.mark.thorough  # seconds of grace
def test_what_a_killed_profiler_left_is_copied_after_the_time_limit(tmp_path: Path) -> None:
    program = python("import time; print('on', flush=True); time.sleep(600)")
    here = trial(tmp_path, program, timeout_s=2.0, grace_s=0.5)
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)"
    done = here.run(fake_nsys(tmp_path, 600, ignore) | {"NODE": str(tmp_path / "node")})
    assert done.exit["state"] == "timeout"
    assert reports(done)["raw/rank0/report.qdstrm"] == "truncated"
    assert list((tmp_path / "node").iterdir()) == []


def test_the_report_of_a_cancelled_trial_is_copied(tmp_path: Path) -> None:
    here = trial(tmp_path, python("import time; print('on', flush=True); time.sleep(600)"))
    process = here.start(fake_nsys(tmp_path, 0.3) | {"NODE": str(tmp_path / "node")})
    here.wait_for("on")
    (here.folder / "cancel").touch()
    process.send_signal(signal.SIGURG)
    done = here.finish(process)
    assert done.exit["state"] == "cancelled"
    assert reports(done)["raw/rank0/report.nsys-rep"] == "whole"
    assert list((tmp_path / "node").iterdir()) == []


@pytest.mark.thorough  # an import of torch
def test_a_profiler_inside_the_program_records_on_the_node(tmp_path: Path) -> None:
    script = "import os, torch, profrun\nfor _ in range(6): profrun.step()\n"
    script += "print([name for _, _, names in os.walk(os.environ['NODE']) for name in names])"
    (tmp_path / "node").mkdir()
    here = Trial(tmp_path, [*python()[:1], "job.py"], script, collector="torch", scratch="$NODE")
    done = here.run({"NODE": str(tmp_path / "node")})
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert ".pt.trace.json.gz" in done.log()
    assert {row["path"].partition("/")[0] for row in done.exit["artefacts"]} == {"raw"}
    assert any(row["path"].endswith(".pt.trace.json.gz") for row in done.exit["artefacts"])
    assert list((tmp_path / "node").iterdir()) == []
