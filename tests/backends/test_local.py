"""The local backend with small stand-ins for the wrapper: life, death, adoption, a good end and a bad one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profrun.backends.base import load
from profrun.backends.local import LocalBackend, LocalPlan, machine_vendor, wrapper_argv
from profrun.contract.states import Status
from profrun.errors import UnavailableError
from profrun.in_job import leftovers
from profrun.in_job.gpu_use import GpuProcess, GpuUse
from profrun.plans.model import Plan, Trial
from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.store.events import Handle
from profrun.store.lock import is_held, try_lock
from profrun.store.runs import Run
from tests.conftest import missing
from tests.runner.scripted import Watcher, new_run

TRIAL = "000-a-none-r1"

OBEDIENT = """
import json, os, signal, sys, time
trial = sys.argv[1]
def end(number, frame):
    state = "cancelled" if os.path.exists(trial + "/cancel") else "timeout"
    write(state, signal.Signals(number).name)
    sys.exit(1)
def write(state, reason=None):
    with open(trial + "/exit.json.new", "w") as file:
        json.dump({"trial": "t", "state": state, "exit_code": 0, "reason": reason, "attempt": 1}, file)
    os.rename(trial + "/exit.json.new", trial + "/exit.json")
signal.signal(signal.SIGURG, end)
with open(trial + "/stdout.log", "w") as file:
    print("first", file=file)
if os.path.exists(trial + "/quick"):
    write("finished")
    sys.exit()
open(trial + "/ready", "w").close()
time.sleep(60)
"""

STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGURG, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
app = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
with open(sys.argv[1] + "/app", "w") as file:
    file.write(str(app.pid))
open(sys.argv[1] + "/ready", "w").close()
time.sleep(60)
"""

GUARDED = """
import os, sys, time
if os.fork() == 0:
    open(sys.argv[1] + "/ready", "w").close()
    while not os.path.exists(sys.argv[1] + "/go"):
        time.sleep(0.01)
    os._exit(0)
time.sleep(60)
"""

BESIDE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def lives(pid):
    try:
        with open("/proc/" + pid + "/stat") as file:
            return file.read().split(") ")[1][0] != "Z"  # dead, only not waited for yet
    except OSError:
        return False
others = [name for name in os.listdir(sys.argv[1]) if lives(name)]
with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as file:
    file.write("beside " + " ".join(others))
time.sleep(0 if len(os.listdir(sys.argv[1])) > 1 else 300)
"""

CRASHING = "import sys; print('no space for me', file=sys.stderr); sys.exit(7)"


@pytest.fixture
def engine() -> Iterator[LocalBackend]:
    """A backend whose children are dead after the test."""
    backend = LocalBackend()
    yield backend
    for child in backend._children.values():
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _run(tmp_path: Path, wrapper: str) -> tuple[Run, Plan, Trial]:
    run, plan = new_run(tmp_path)
    (run.bundle / "run.py").write_text(wrapper)
    run.trial(TRIAL).folder.mkdir(parents=True)
    return run, plan, plan.trials[0]


def _until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def _state(engine: LocalBackend, handle: Handle, run: Run) -> Status:
    return engine.status({TRIAL: handle}, run)[TRIAL]


def test_a_trial_runs_in_a_session_of_its_own_and_says_how_it_ended(
    tmp_path: Path, engine: LocalBackend
) -> None:
    run, plan, trial = _run(tmp_path, OBEDIENT)
    (run.trial(TRIAL).folder / "quick").touch()
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    assert os.getsid(handle.data["pid"]) == handle.data["pid"] != os.getsid(0)
    _until(lambda: _state(engine, handle, run).state != "running")
    assert _state(engine, handle, run) == Status("finished", None, 0)
    assert list(engine.logs(handle, run, TRIAL, follow=True)) == ["first"]


def test_another_process_finds_it_alive_and_later_dead(tmp_path: Path, engine: LocalBackend) -> None:
    run, plan, trial = _run(tmp_path, OBEDIENT)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    other = LocalBackend()  # knows no child: it has only the folder
    assert _state(other, handle, run) == Status("running")
    assert _state(other, Handle("local", {}), run) == Status("running")  # the handle was never written
    os.killpg(handle.data["pid"], signal.SIGKILL)
    _until(lambda: not is_held(run.trial(TRIAL).folder / "live"))
    assert _state(other, handle, run).state == "lost"
    assert "(it was killed" in str(_state(engine, handle, run).reason)


def test_a_living_trial_is_not_started_twice(tmp_path: Path, engine: LocalBackend) -> None:
    run, plan, trial = _run(tmp_path, OBEDIENT)
    engine.submit(LocalPlan(plan, run.path.parent), [trial], run)
    with pytest.raises(UnavailableError, match=f"{TRIAL} is running already"):
        LocalBackend().submit(LocalPlan(plan, run.path.parent), [trial], run)


@pytest.mark.parametrize("known", [True, False], ids=["by its number", "by its command line"])
def test_a_good_end(tmp_path: Path, engine: LocalBackend, known: bool) -> None:
    if not known and not Path("/proc/self/cmdline").exists():
        missing("/proc")
    run, plan, trial = _run(tmp_path, OBEDIENT)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    _until((run.trial(TRIAL).folder / "ready").exists)
    other = LocalBackend()
    other.cancel({TRIAL: handle if known else Handle("local", {})}, run, grace=20)
    assert _state(other, handle, run) == Status("cancelled", "SIGURG", 0)
    assert json.loads((run.trial(TRIAL).folder / "cancel").read_text())["grace_s"] == 20


def test_what_ignores_every_wish_is_killed_with_all_it_started(tmp_path: Path, engine: LocalBackend) -> None:
    run, plan, trial = _run(tmp_path, STUBBORN)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    _until((run.trial(TRIAL).folder / "ready").exists)
    app = int((run.trial(TRIAL).folder / "app").read_text())
    os.kill(app, 0)
    engine.cancel({TRIAL: handle}, run, grace=0)
    assert _state(engine, handle, run).state == "lost"
    _until(lambda: not _lives(app))


def _lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_wrapper_that_dies_without_a_word_is_lost_with_its_last_words(
    tmp_path: Path, engine: LocalBackend
) -> None:
    run, plan, trial = _run(tmp_path, CRASHING)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    _until(lambda: _state(engine, handle, run).state != "running")
    status = _state(engine, handle, run)
    assert status.state == "lost"
    assert status.reason == (
        "the wrapper ended without saying how (exit code 7); the last line of its log: no space for me"
    )


def test_cancelling_what_has_ended_changes_nothing(tmp_path: Path, engine: LocalBackend) -> None:
    run, plan, trial = _run(tmp_path, OBEDIENT)
    (run.trial(TRIAL).folder / "quick").touch()
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    _until(lambda: _state(engine, handle, run).state == "finished")
    engine.cancel({TRIAL: handle}, run, grace=5)
    assert not (run.trial(TRIAL).folder / "cancel").exists()
    assert _state(engine, handle, run).state == "finished"


def test_secrets_reach_the_trial_and_no_file(
    tmp_path: Path, engine: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    show = "import os, sys; open(sys.argv[1] + '/seen', 'w').write(os.environ['TOKEN'][::-1])"
    monkeypatch.setenv("TOKEN", "hush-hush-123")
    spec = "name: t\ncommand: python x.py\ncollectors: [none]\nsecrets: [TOKEN]\n"
    run, plan = new_run(tmp_path, spec)
    (run.bundle / "run.py").write_text(show)
    trial = plan.trials[0]
    run.trial(trial.id).folder.mkdir(parents=True)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[trial.id]
    _until((run.trial(trial.id).folder / "seen").exists)
    engine._children[handle.data["pid"]].wait()
    assert (run.trial(trial.id).folder / "seen").read_text() == "321-hsuh-hsuh"
    for path in run.path.rglob("*"):
        assert not path.is_file() or b"hush-hush-123" not in path.read_bytes(), path


def test_the_request_is_what_one_would_type(tmp_path: Path) -> None:
    run, plan, trial = _run(tmp_path / "with space", OBEDIENT)
    (request,) = load("local").render(LocalPlan(plan, tmp_path), [trial], run)
    assert tuple(request.body["argv"]) == wrapper_argv(run, TRIAL)
    assert request.text == f"{sys.executable} '{run.path}/bundle/run.py' '{run.path}/trials/{TRIAL}'"


@pytest.mark.parametrize(
    ("files", "vendor"),
    [((), "auto"), (("nvidiactl",), "nvidia"), (("kfd",), "amd"), (("kfd", "nvidiactl"), "auto")],
)
def test_the_machines_vendor(tmp_path: Path, files: tuple[str, ...], vendor: str) -> None:
    (tmp_path / "dev").mkdir()
    for name in files:
        (tmp_path / "dev" / name).touch()
    assert machine_vendor(tmp_path) == vendor


def test_a_trial_lives_as_long_as_anything_holds_its_sign_of_life(
    tmp_path: Path, engine: LocalBackend
) -> None:
    """The guard of a wrapper that was killed holds it until the program is gone."""
    run, plan, trial = _run(tmp_path, GUARDED)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    _until((run.trial(TRIAL).folder / "ready").exists)
    os.kill(handle.data["pid"], signal.SIGKILL)
    engine._children[handle.data["pid"]].wait()
    assert _state(engine, handle, run) == Status("running")
    (run.trial(TRIAL).folder / "go").touch()
    _until(lambda: _state(engine, handle, run).state == "lost")


def test_what_a_trial_left_is_ended_and_named(tmp_path: Path, engine: LocalBackend) -> None:
    if not Path("/proc/self/environ").exists():
        missing("/proc")
    run, _plan, _trial = _run(tmp_path, OBEDIENT)
    program = [sys.executable, "-c", "import time; time.sleep(300)"]
    own, other = (
        subprocess.Popen(program, env={**os.environ, **leftovers.mark(folder.resolve(), 0)})
        for folder in (run.trial(TRIAL).folder, run.trial("001-b-none-r1").folder)
    )
    try:
        told = engine.end_leftovers(run, [TRIAL], grace=60)
        assert own.wait(60) == -signal.SIGTERM
        assert other.poll() is None
        line = " ".join(program)
        assert told == f"of trials that are over 1 process was left running and had to be ended ({line})"
        assert engine.end_leftovers(run, [TRIAL], grace=60) is None
    finally:
        for process in (own, other):
            process.kill()
            process.wait()


def test_no_trial_begins_before_the_last_ones_program_is_gone(tmp_path: Path) -> None:
    """The wrapper of the first trial is killed while its program, which ignores SIGTERM, runs."""
    if not Path("/proc/self/environ").exists():
        missing("/proc")
    beside = tmp_path / "beside"
    beside.mkdir()
    (tmp_path / "job.py").write_text(BESIDE)
    spec = (
        f"name: t\ncommand: {sys.executable} {tmp_path / 'job.py'} {beside}\ncollectors: [none]\n"
        "repeats: 2\nsample: off\nresources: {grace: 1s}\n"
    )
    run, plan = new_run(tmp_path, spec)
    shutil.rmtree(run.bundle)
    engine, watcher = LocalBackend(), Watcher()

    def kill() -> None:
        _until(lambda: any(beside.iterdir()), 120)
        os.kill(next(iter(engine._children)), signal.SIGKILL)

    watcher.at = {("started", plan.trials[0].id): kill}
    state = drive(run, plan, engine, cwd=tmp_path, observer=watcher, interrupts=Interrupts())
    assert [trial.state for trial in state.trials] == ["lost", "finished"]
    assert "had to be ended" in str(state.trials[0].reason)
    assert sorted(path.read_text() for path in beside.iterdir()) == ["beside ", "beside "]


def test_a_process_that_came_to_the_gpu_between_two_trials_is_named(
    tmp_path: Path, engine: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan, trial = _run(tmp_path, OBEDIENT)
    (run.trial(TRIAL).folder / "quick").touch()
    uses = [GpuUse(0, processes=(GpuProcess(4_000_000),))]
    monkeypatch.setattr("profrun.backends.local.uses_seen", lambda job, environ: uses)
    handle = engine.submit(LocalPlan(plan, run.path.parent), [trial], run)[TRIAL]
    assert handle.data["note"].startswith("GPU 0 (pid 4000000) is in use by a process that is none")


def test_a_number_in_a_handle_that_is_another_process_is_not_killed(tmp_path: Path) -> None:
    """A folder of somebody else names a process of this user, and a file that looks held."""
    run, _, _ = _run(tmp_path, OBEDIENT)
    live = try_lock(run.trial(TRIAL).live)
    assert live is not None
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as victim:
        try:
            handle = Handle("local", {"pid": victim.pid, "host": socket.gethostname()})
            LocalBackend().cancel({TRIAL: handle}, run, grace=0)
            assert victim.poll() is None
        finally:
            os.close(live)
            victim.kill()


@pytest.mark.parametrize("pid", ["1", [1], {}, 1.5, True, None])
def test_a_handle_of_another_kind_names_no_process(tmp_path: Path, pid: object) -> None:
    run, _, _ = _run(tmp_path, OBEDIENT)
    handle = Handle("local", {"pid": pid, "host": socket.gethostname()})
    LocalBackend().cancel({TRIAL: handle}, run, grace=0)
    assert _state(LocalBackend(), handle, run).state == "lost"
