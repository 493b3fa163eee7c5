"""What commands share that carry out a run or end one: finish it, print its result, return the exit code."""

from __future__ import annotations

from profrun.cli.bugs import report_bug
from profrun.cli.output import complain, emit, note, say
from profrun.cli.progress import Progress
from profrun.cli.reading_line import ReadingLine
from profrun.cli.run_text import show_run
from profrun.contract.codec import to_json
from profrun.errors import ProfrunError
from profrun.plans.model import Plan
from profrun.runner.pipeline import PreparedRun, execute, finish
from profrun.store.run_result import RunResult, run_result
from profrun.store.runs import Run
from profrun.store.state import RunState


def carry_out(
    prepared: PreparedRun, *, json_: bool, repeat_failed: bool = False, verbose: bool = False
) -> int:
    """Execute and finish a run and show it.

    Args:
        prepared: the run.
        json_: print one JSON document instead of text.
        repeat_failed: also repeat trials that failed or ran out of time.
        verbose: also print every trial and every comparison.

    Returns:
        The exit code: 0; 1 when a trial or a trace failed or a claim is refuted; else that of what went wrong
        at the end.
    """
    state = _executed(prepared, repeat_failed=repeat_failed)
    return conclude(state, prepared.plan, json_=json_, verbose=verbose)


def carried(prepared: PreparedRun) -> RunState:
    """Execute and finish a run without showing its result; what went wrong at the end is told."""
    state = _executed(prepared)
    _finished(state, prepared.plan)
    return state


def _executed(prepared: PreparedRun, *, repeat_failed: bool = False) -> RunState:
    """The state of a run whose trials were run, with their progress shown."""
    with Progress(prepared.run, prepared.plan, concurrent=prepared.backend.concurrent) as progress:
        return execute(prepared, progress, repeat_failed=repeat_failed)


def _finished(state: RunState, plan: Plan) -> list[int]:
    """Finish a run and tell what went wrong meanwhile; returns an exit code for each problem."""
    with ReadingLine() as line:
        problems = finish(state, plan, line.update)
    return [_tell(problem) for problem in problems]


def conclude(state: RunState, plan: Plan, *, json_: bool, verbose: bool = False) -> int:
    """Finish a run whose trials have ended and show it; arguments and exit code as of ``carry_out``."""
    codes = _finished(state, plan)
    if json_:
        result = run_result(state)
        emit(to_json(result))
    else:
        say()
        result = show_run(state, verbose=verbose)
    return next(iter(codes), 1 if _failed(state, result) else 0)


def _failed(state: RunState, result: RunResult) -> bool:
    return (
        state.phase != "finished"
        or any(record.normalise_error for record in state.trials)
        or any(row.state == "refuted" for row in result.expectations)
    )


def _tell(problem: Exception) -> int:
    """Print what went wrong at the end of a run; returns the exit code for it."""
    if isinstance(problem, ProfrunError):
        complain(str(problem))
        return problem.exit_code
    return report_bug(problem)


def detach_run(run: Run, *, json_: bool, repeat_failed: bool = False) -> int:
    """Let a new process drive the run in the background; returns the exit code."""
    from profrun.runner.detach import spawn_driver

    pid = spawn_driver(run, repeat_failed=repeat_failed)
    if json_:
        emit({"run": run.name, "path": str(run.path), "state": "running", "pid": pid})
    else:
        say(run.name)
        note(f"it continues in the background: `profrun status {run.name}`, `profrun logs {run.name} -f`")
    return 0
