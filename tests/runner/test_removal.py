"""What may be removed of the runs, what that frees, and that nothing else is touched."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from profrun.errors import UsageError
from profrun.runner.removal import carry_out, disk_bytes, plan_pruning, plan_removal
from profrun.store.lock import driving
from profrun.store.runs import Run
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

DAY_NS = 86_400 * 10**9
RAW = "raw/rank0/report.nsys-rep"


def ended_run(root: Path, *, trace: bool = True) -> Run:
    """A run whose first trial has finished, with a profiler's file of 1 MiB."""
    run, _ = new_run(root)
    trial = begin(run.trial("000-a-none-r1"))
    run.log().append("started", trial.folder.name, attempt=1, handle={"backend": "local", "data": {}})
    leave(trial)
    (trial.folder / RAW).write_bytes(b"x" * (1 << 20))
    for name in ("steps.7.json", "results.json"):
        (trial.raw / "rank0" / name).write_text("{}")
    if trace:
        make_trace(trial.trace, [("kernel", "k", 0, 5, "stream 7")]).close()
    run.log().append("done", state="finished")
    return run


def rename(run: Run, job: str, day: int) -> Run:
    """The run as one of another job, made on a day of January 2026."""
    made = datetime.datetime(2026, 1, day, tzinfo=datetime.timezone.utc)
    path = run.path.rename(run.path.parent / f"{job}-{made:%Y%m%dT%H%M%SZ}-{day:04x}")
    log = path / "events.jsonl"
    first, _, rest = log.read_text().partition("\n")
    stamp = first.partition('"ts":')[2].partition(",")[0]
    first = first.replace(stamp, str(int(made.timestamp()) * 10**9)).replace('"job":"t"', f'"job":"{job}"')
    log.write_text(f"{first}\n{rest}")
    return Run(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_a_run_goes_as_a_whole_and_frees_what_du_counts(root: Path) -> None:
    other, run = ended_run(root), ended_run(root)
    before = everything(other.path)
    plan = plan_removal(run, root)
    du = subprocess.run(["du", "-s", "-B1", run.path], capture_output=True, text=True, check=True).stdout
    assert (plan.files, plan.freed) == (None, int(du.split()[0]))
    assert run.path.is_dir()
    carry_out(plan)
    assert list(root.iterdir()) == [other.path]
    assert everything(other.path) == before


def test_only_profiler_files_of_trials_with_a_trace_go(root: Path) -> None:
    with_trace, without = ended_run(root), ended_run(root, trace=False)
    trial = with_trace.trials / "000-a-none-r1"
    before = everything(with_trace.path)
    plan = plan_removal(with_trace, root, raw=True)
    assert plan.files == (trial / RAW,)
    assert plan.freed == disk_bytes([trial / RAW]) >= 1 << 20
    carry_out(plan)
    assert before - everything(with_trace.path) == {f"trials/000-a-none-r1/{RAW}"}
    assert plan_removal(with_trace, root, raw=True).files == ()
    assert plan_removal(without, root, raw=True).files == ()


@pytest.mark.parametrize("raw", [False, True])
def test_a_run_that_is_driven_stays(root: Path, raw: bool) -> None:
    run = ended_run(root)
    plan = plan_removal(run, root, raw=raw)
    with driving(run.lock, run.name):
        with pytest.raises(UsageError, match=f"{run.name} still runs.*profrun cancel {run.name}"):
            plan_removal(run, root, raw=raw)
        with pytest.raises(UsageError, match="is being driven already"):
            carry_out(plan)
        assert plan_pruning(root, keep=0, created_before_ns=None, raw=raw)[0] == []
    assert (run.trials / "000-a-none-r1" / RAW).exists()


def test_a_trial_that_outlives_its_driver_keeps_its_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """profrun was killed, the trial was not: its process holds a lock of its own."""
    run, _ = new_run(root)
    trial = begin(run.trial("000-a-none-r1"))
    run.log().append("started", trial.folder.name, attempt=1, handle={"backend": "local", "data": {}})
    events = run.events.read_text().replace('"backend":"scripted"', '"backend":"local"')
    run.events.write_text(events)
    with (
        driving(trial.live, "the trial"),
        pytest.raises(UsageError, match="trial 000-a-none-r1 has not ended"),
    ):
        plan_removal(run, root)
    plan_removal(run, root)  # its process is gone: the trial is lost


def test_a_run_that_was_continued_meanwhile_stays(root: Path) -> None:
    run = ended_run(root)
    plan = plan_removal(run, root)
    run.log().append("resumed")
    with pytest.raises(UsageError, match="has changed meanwhile"):
        carry_out(plan)
    assert (run.trials / "000-a-none-r1" / RAW).exists()


def test_a_run_elsewhere_and_a_link_to_one_stay(root: Path, tmp_path: Path) -> None:
    run = ended_run(tmp_path / "elsewhere")
    root.mkdir()
    (root / "link").symlink_to(run.path)
    with pytest.raises(UsageError, match=f"is not in {root}; .*--runs {run.path.parent}"):
        plan_removal(run, root)
    with pytest.raises(UsageError, match="link is a link to"):
        plan_removal(Run(root / "link"), root)
    going, kept = plan_pruning(root, keep=0, created_before_ns=None)
    assert (going, [item.run.name for item in kept]) == ([], ["link"])
    assert (run.trials / "000-a-none-r1" / RAW).exists()


@pytest.mark.parametrize(
    "place", ["trials/000-a-none-r1/raw/rank0/link", "link", "trials/000-a-none-r1/raw/rank1"]
)
@pytest.mark.parametrize("raw", [False, True])
def test_what_a_link_points_to_stays(root: Path, tmp_path: Path, place: str, raw: bool) -> None:
    run = ended_run(root)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/precious").write_text("x")
    (run.path / place).symlink_to(tmp_path / "data")
    plan = plan_removal(run, root, raw=raw)
    assert all("precious" not in str(file) for file in plan.files or ())
    carry_out(plan)
    assert (tmp_path / "data/precious").read_text() == "x"
    assert run.path.exists() is raw


@pytest.mark.parametrize("place", ["trials/000-a-none-r1/raw", "trials/000-a-none-r1", "trials"])
def test_raw_files_behind_a_link_stay(root: Path, tmp_path: Path, place: str) -> None:
    """Somebody moved a run's large files to another disk, and left a link."""
    run = ended_run(root)
    (run.path / place).rename(tmp_path / "disk")
    (run.path / place).symlink_to(tmp_path / "disk")
    assert plan_removal(run, root, raw=True).files == ()
    carry_out(plan_removal(run, root))
    assert len(everything(tmp_path / "disk")) > 1


def test_a_file_with_another_hard_link_frees_nothing(root: Path, tmp_path: Path) -> None:
    run = ended_run(root)
    file = run.trials / "000-a-none-r1" / RAW
    whole = plan_removal(run, root).freed
    os.link(file, tmp_path / "other")
    assert whole - plan_removal(run, root).freed == file.stat().st_blocks * 512
    (tmp_path / "other").unlink()
    os.link(file, run.path / "inside")
    assert plan_removal(run, root).freed == whole


def test_a_removal_that_was_cut_short_is_continued(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended_run(root)

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    plan = plan_removal(run, root)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            carry_out(plan)
    assert run.events.exists()
    carry_out(plan_removal(run, root))
    assert not run.path.exists()


def test_a_wish_to_cancel_that_comes_meanwhile_goes_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended_run(root)
    remove = shutil.rmtree

    def removed(path: Path) -> None:
        remove(path)
        if path == run.trials:
            run.cancel_request.write_text("{}")  # the lock is held, so `profrun cancel` takes it for a driver

    monkeypatch.setattr(shutil, "rmtree", removed)
    carry_out(plan_removal(run, root))
    assert not run.path.exists()


def test_the_newest_of_each_job_and_the_young_ones_stay(root: Path) -> None:
    runs = {f"{job}{day}": rename(ended_run(root), job, day) for job in ("a", "b") for day in (1, 2, 3)}
    day_3 = int(datetime.datetime(2026, 1, 3, tzinfo=datetime.timezone.utc).timestamp()) * 10**9

    def going(keep: int | None, before: int | None) -> list[str]:
        found, kept = plan_pruning(root, keep=keep, created_before_ns=before)
        assert kept == []
        names = {run.name: name for name, run in runs.items()}
        return sorted(names[item.run.name] for item in found)

    assert going(None, None) == ["a1", "a2", "a3", "b1", "b2", "b3"]
    assert going(1, None) == ["a1", "a2", "b1", "b2"]
    assert going(2, None) == ["a1", "b1"]
    assert going(None, day_3) == ["a1", "a2", "b1", "b2"]
    assert going(2, day_3) == ["a1", "b1"]
    assert going(1, day_3 - DAY_NS) == ["a1", "b1"]
    assert going(5, None) == []


def test_a_run_with_a_damaged_log_can_go(root: Path) -> None:
    run = ended_run(root)
    run.events.write_text("{")
    carry_out(plan_removal(run, root))
    assert not run.path.exists()


def test_a_plan_that_names_a_trial_elsewhere_removes_nothing_there(root: Path, tmp_path: Path) -> None:
    """An id of plan.json that leads out of the run was followed: raw files elsewhere were removed."""
    run, victim = ended_run(root), ended_run(tmp_path / "elsewhere")
    there = f"../../../elsewhere/{victim.name}/trials/000-a-none-r1"
    for file in (run.plan, run.events):
        file.write_text(file.read_text().replace("000-a-none-r1", there))
    before = everything(victim.path)
    removal = plan_removal(run, root, raw=True)
    assert removal.files == ()
    carry_out(removal)
    assert everything(victim.path) == before
