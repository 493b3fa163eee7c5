"""One disturbed run from its start to the last question about it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.conftest import ROOT
from tests.real.faults import jobs, oracle
from tests.real.faults.desk import Answer, Desk, until
from tests.real.faults.engines import Engines
from tests.real.faults.inject import DISK, Injector, environ_of
from tests.real.faults.moments import reached
from tests.real.faults.plan import SHAPES, Act, Blow, Fault
from tests.real.faults.processes import alive
from tests.real.faults.tools import Tools

END_S = 75.0
"""How long a disturbed run may go on: its trials take seconds, and the machine is loaded."""
TRIES = 4
"""How often a fault is tried whose moment was missed, each time earlier in the phase."""


@dataclass(frozen=True)
class Result:
    """What became of one fault.

    Attributes:
        landed: whether its victim was there when it was hit.
        broken: the promises that were broken, one sentence each.
        tries: how many runs it took.
        folder: of the last one.
    """

    fault: Fault
    landed: bool
    broken: tuple[str, ...]
    tries: int
    seconds: float
    folder: Path
    notes: tuple[str, ...] = ()


@dataclass
class _Seen:
    """What was seen of one run up to now."""

    before: list[oracle.Finished] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    removed: bool = False


def carry_out(fault: Fault, folder: Path, tools: Tools, engines: Engines) -> Result:
    """Disturb a run, and look at what holds. A missed moment is tried again with a fresh run, earlier."""
    began = time.monotonic()
    seen, landed, number, home = _Seen(), False, 0, folder
    for number in range(TRIES):
        home = folder / f"{fault.seed}.{number}"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        seen = _Seen()
        with engines.turn() if SHAPES[fault.shape].backend == "docker" else contextlib.nullcontext():
            landed = _one(_earlier(fault, number), home, tools, engines, seen)
        if landed or seen.broken:
            break
        shutil.rmtree(home, ignore_errors=True)
    broken = tuple(dict.fromkeys(seen.broken))
    if not broken:
        shutil.rmtree(home, ignore_errors=True)
    return Result(
        fault, landed, broken, number + 1, round(time.monotonic() - began, 1), home, tuple(seen.notes)
    )


def _earlier(fault: Fault, number: int) -> Fault:
    """The same fault, at a third of its delay, at a ninth, and at last at once."""
    share = (1.0, 1 / 3, 1 / 9, 0.0)[number]
    first, *rest = fault.blows
    pick = fault.pick if not number else (fault.pick * 0.618 + 0.1 * number) % 1
    return replace(fault, blows=(Blow(first.act, first.after_s * share), *rest), pick=pick)


def _one(fault: Fault, folder: Path, tools: Tools, engines: Engines, seen: _Seen) -> bool:
    """One run; returns whether the fault has landed."""
    shape = SHAPES[fault.shape]
    desk = Desk(folder)
    if shape.backend == "docker":
        desk.environ["DOCKER_HOST"] = f"unix://{engines.socket}"
    if shape.backend == "slurm":
        desk.environ["SLURM_CONF"] = str(tools.slurm)
    disk = any(blow.act == "disk-full" for blow in fault.blows)
    with _disk(folder / "runs") if disk else contextlib.nullcontext():
        jobs.write(folder, shape, fault.shape)
        words = ["submit", "job.yaml", "--backend", shape.backend]
        words += ["--detach"] if shape.detached else []
        older = any(blow.act == "old-submit" for blow in fault.blows)
        source = tools.older if older and tools.older is not None else ROOT
        driver = desk.start(*words, source=source, **environ_of(fault, desk, tools))
        injector = Injector(fault, desk, driver, tools, engines)
        try:
            landed = _disturb(fault, desk, driver, injector, seen)
            _ends(desk, injector, seen)
            injector.free()
            if landed and injector.landed():
                _judge(fault, desk, injector, seen)
                return True
            _undisturbed(desk, landed)
        finally:
            _tidy(desk, driver, injector, engines)
    return False


def _disturb(
    fault: Fault, desk: Desk, driver: subprocess.Popen[str], injector: Injector, seen: _Seen
) -> bool:
    """Wait for the moment and strike; False when the moment was missed."""
    shape = SHAPES[fault.shape]

    def over() -> bool:
        return driver.poll() is not None and (not shape.detached or driver.returncode != 0)

    def come() -> bool:
        return reached(desk, fault.phase, fault.trial, shape.ranks)

    if not until(lambda: come() or over(), 60.0, nap=0.004) or not come():
        return False
    for number, blow in enumerate(fault.blows):
        time.sleep(blow.after_s)
        run = desk.run
        if not number and run is not None:
            seen.before = oracle.finished(run)
        struck = injector.strike(blow)
        if not number and not struck:
            return False
    if fault.asks and desk.run is not None:
        seen.broken += _asked(desk, desk.run, {blow.act for blow in fault.blows})
    return True


def _asked(desk: Desk, run: Path, acts: Collection[Act]) -> list[str]:
    """``status``, ``report`` and ``logs`` have an answer at any moment.

    A run that was killed while its folder was made has no plan: only its status can be told. A trial that has
    not started has no log (exit code 64), and a report cannot be written to a full disk (69). A folder that
    is removed meanwhile is not there (64), or not there any more (69).
    """
    if "rm" in acts:
        return oracle.answered([desk.ask("report", str(run))], (0, 64, 65, 69))
    if b'"event":"created"' not in (run / "events.jsonl").read_bytes():
        return oracle.answered([desk.ask("status", "--json", str(run))], (0, 65))
    broken = oracle.answered([desk.ask("status", "--json", str(run))])
    if (run / "plan.json").exists():
        broken += oracle.answered([desk.ask("report", str(run))], (0, 69) if "disk-full" in acts else (0,))
        broken += oracle.answered([desk.ask("logs", str(run))], (0, 64))
    return broken


def _ends(desk: Desk, injector: Injector, seen: _Seen) -> None:
    """The driver, other commands and what they started come to their ends by themselves."""
    for act, child in [("submit", injector.driver), *injector.others]:
        answer = desk.end_of(child, END_S)
        older = act.startswith("old-")
        if answer.code is None:
            seen.broken.append(f"hung: `{answer.argv[0]}` did not end within {END_S:.0f} s")
        if answer.code == 70 and not older:
            seen.broken.append(f"bug: `{answer.argv[0]}`: {answer.err.strip()[-300:]}")
        if older:
            seen.notes.append(f"{act} ended with {answer.code}")
            desk.said.remove(answer)
        seen.removed |= act == "rm" and answer.code == 0
    if SHAPES[injector.fault.shape].backend == "docker":
        gone = until(lambda: not injector.engines.containers(desk.folder), END_S, nap=0.3)
        seen.broken += [] if gone else ["left: a container"]
    if not until(lambda: not alive(desk.folder), END_S, nap=0.1):
        left = [one.text for one in alive(desk.folder)]
        seen.broken.append(f"left: {left}")


def _judge(fault: Fault, desk: Desk, injector: Injector, seen: _Seen) -> None:
    """What holds when the disturbed run is over; then it is resumed, and must become whole."""
    shape, run = SHAPES[fault.shape], desk.run
    if seen.removed:
        if any((desk.folder / "runs").iterdir()):
            seen.broken.append("`rm` said that it removed the run, and something of it is left")
        seen.broken += [*oracle.nothing_outside(desk), *oracle.no_traceback(desk)]
        return
    if run is None:
        seen.broken.append("lost: the run's folder is gone")
        return
    status = desk.ask("status", "--json", str(run))
    if b'"event":"created"' not in (run / "events.jsonl").read_bytes():
        seen.broken += oracle.answered([status], (65,))  # its first write failed: it is no run
        return
    seen.broken += [*oracle.answered([status]), *oracle.states(status, shape.trials)]
    seen.broken += oracle.of_the_run(desk, run, seen.before)
    if not (run / "plan.json").exists():
        return  # killed while the folder was made: nothing to resume
    before = oracle.finished(run)
    seen.broken += oracle.answered([_resumed(desk, run)], (0, 1))
    status = desk.ask("status", "--json", str(run))
    seen.broken += [*oracle.answered([status]), *oracle.whole(status, shape)]
    seen.broken += oracle.of_the_run(desk, run, before)
    if not (run / "report.html").exists():
        seen.broken.append("there is no report after resume")
    seen.broken += [f"left: {one.text}" for one in alive(desk.folder)]


def _resumed(desk: Desk, run: Path) -> Answer:
    """Resume; where profrun asks whether the commands of a run of another version are trusted, they are."""
    answer = desk.ask("resume", "--failed", str(run))
    if answer.code == 64 and "--yes" in answer.err:
        return desk.ask("resume", "--failed", str(run), "--yes")
    return answer


def _undisturbed(desk: Desk, struck: bool) -> None:
    """A run that nothing has hit must have gone well, or the suite tests nothing.

    Raises:
        RuntimeError: it has not.
    """
    submitted = next((said for said in desk.said if said.argv[0] == "submit"), None)
    if not struck and submitted is not None and submitted.code != 0:
        raise RuntimeError(f"without a fault: {submitted}")


def _tidy(desk: Desk, driver: subprocess.Popen[str], injector: Injector, engines: Engines) -> None:
    """Whatever was broken, nothing of this scenario disturbs the next one."""
    for child in [driver, *(other for _, other in injector.others)]:
        if child.poll() is None:
            child.kill()
        child.wait()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    for one in alive(desk.folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    if SHAPES[injector.fault.shape].backend == "docker":
        engines.start()
        for container in engines.containers(desk.folder):
            engines.docker("rm", "-f", container, check=False)


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """A small disk of its own at a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
