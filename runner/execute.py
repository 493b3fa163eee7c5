"""What ``submit`` and ``resume`` share: drive a run to its end, finish it, show it, say how it went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profrun.backends.base import Backend, P
from profrun.cli.output import emit, note, say
from profrun.errors import ProfrunError
from profrun.plans.model import Plan
from profrun.store.runs import Run
from profrun.store.state import RunState


def carry_out(
    run: Run,
    plan: Plan,
    *,
    backend: Backend[P],
    cwd: Path,
    json_: bool,
    repeat_failed: bool = False,
    prepared: P | None = None,
) -> int:
    """Drive the run, then compare, report and show it; returns the exit code.

    Args:
        prepared: the plan as the backend has prepared it already, if it has.
    """
    from profrun.cli.progress import Progress
    from profrun.runner.drive import drive
    from profrun.runner.interrupt import Interrupts

    with Interrupts() as interrupts, Progress(run, plan) as progress:
        state = drive(
            run,
            plan,
            backend,
            cwd=cwd,
            observer=progress,
            interrupts=interrupts,
            repeat_failed=repeat_failed,
            prepared=prepared,
        )
    return conclude(state, plan, json_=json_)


def conclude(state: RunState, plan: Plan, *, json_: bool) -> int:
    """Show a run that came to its end and return the exit code: 0, or 1 when something in it failed."""
    from profrun.cli.report import write_run_report
    from profrun.cli.result import run_document, show_run, write_comparison

    trouble = _kept(lambda: write_comparison(state, plan))
    trouble = _kept(lambda: write_run_report(state)) or trouble
    document = run_document(state)
    if json_:
        emit(document)
    else:
        say()
        say(f"{state.run.name}: {state.phase}")
        show_run(state)
        if state.phase in ("cancelled", "interrupted"):
            say()
            say(f"finish it with `profrun resume {state.run.name}`")
        elif state.count("failed", "timeout"):
            say()
            say(f"repeat what failed with `profrun resume {state.run.name} --failed`")
        if document["report"]:
            say()
            say(f"report: {document['report']}")
    failed = any(record.normalise_error for record in state.trials)
    failed = failed or any(row["state"] == "failed" for row in document["expectations"])
    return trouble or (0 if state.phase == "finished" and not failed else 1)


def _kept(work: Callable[[], object]) -> int:
    """Do what follows the trials; an exit code. What goes wrong there must not hide what was measured."""
    from profrun.cli import report_bug

    try:
        work()
    except ProfrunError as error:
        note(f"profrun: {error}")
        return error.exit_code
    except Exception as error:
        return report_bug(error)
    return 0


def detached(run: Run, *, json_: bool, repeat_failed: bool = False) -> int:
    """Let a process of its own drive the run, say so, and return at once; returns the exit code."""
    pid = spawn_driver(run, repeat_failed=repeat_failed)
    if json_:
        emit({"run": run.name, "path": str(run.path), "state": "running", "pid": pid})
    else:
        say(run.name)
        note(f"it goes on by itself: `profrun status {run.name}`, `profrun logs {run.name} -f`")
    return 0


def spawn_driver(run: Run, *, repeat_failed: bool = False) -> int:
    """Start a process of its own that drives the run after this one ended; returns its pid once it does.

    Its output goes to ``driver.log`` in the run's folder.

    Raises:
        UsageError: another process drives the run.
        ProfrunError: it ended before it drove the run; with its last line, and of the kind it ended with.
    """
    import os
    import sys
    import time

    from profrun.store.files import explained
    from profrun.store.lock import driving, is_held

    with driving(run.lock, run.name):
        ends = _ends(run)

    # The current folder must not be importable there: it holds the user's modules, not ours.
    code = "import sys; sys.path[:] = [p for p in sys.path if p]; from profrun.cli import main; main()"
    with explained(run.driver_log), run.driver_log.open("ab") as log:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", code, "resume", *(["--failed"] if repeat_failed else []), str(run.path)],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
            ],
            setsid=True,
        )
    # Until it holds the lock nobody drives the run, and `profrun status` would say so.
    while not is_held(run.lock):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended and _ends(run) == ends:
            raise _ended_early(run, os.waitstatus_to_exitcode(status))
        if ended:
            break
        time.sleep(0.02)
    return pid


def _ends(run: Run) -> int:
    """How often a driver has brought this run to its end."""
    from profrun.store.events import read_events

    return sum(event["event"] == "done" for event in read_events(run.events).items)


def _ended_early(run: Run, code: int) -> ProfrunError:
    from profrun.cli.result import last_line
    from profrun.errors import FailedError, InputError, UnavailableError, UsageError

    kinds: dict[int, type[ProfrunError]] = {64: UsageError, 65: InputError, 69: UnavailableError}
    return kinds.get(code, FailedError)(
        f"the process that drives {run.name} ended with {code}",
        why=last_line(run.driver_log),
        fix=f"try `profrun resume {run.name}`",
    )
