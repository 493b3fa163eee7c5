"""What a run would do, as a value: the requests to the backend and what every trial is told."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from profrun.backends.base import Request, load
from profrun.contract.changes import parse
from profrun.contract.codec import from_json
from profrun.contract.command import Command
from profrun.contract.launch_blocking import BLOCKING_ENV
from profrun.contract.options import ToolOptions
from profrun.contract.private import NAME as PRIVATE
from profrun.contract.profilers import Profiler, candidates
from profrun.contract.public_command import public_command
from profrun.contract.recording import Rank
from profrun.contract.redact import HIDDEN, Redactor
from profrun.contract.schedule import STEADY
from profrun.contract.units import bytes_text, counted
from profrun.contract.wrapping import Limits, Wrapped, WrapRequest
from profrun.in_job.repository import Repositories
from profrun.in_job.sampling import sampler_argv
from profrun.plans.model import Plan
from profrun.plans.public import redactor_of
from profrun.runner.scripts import need_programs
from profrun.runner.trial_files import command
from profrun.store.runs import Run


@dataclass(frozen=True)
class WrappedCommand:
    """How one profiler wraps a trial's command; see ``contract.wrapping.Wrapped``."""

    profiler: str
    argv: tuple[str, ...]
    passes: tuple[tuple[str, ...], ...]
    env: dict[str, str]
    notes: tuple[str, ...]
    limits: Limits | None


@dataclass(frozen=True)
class DryTrial:
    """One trial.

    Attributes:
        command: what its ``command.json`` would hold.
        wrapped: one for each profiler that its collector may become: two of ``timeline`` and ``counters``
            while the vendor is not known.
        sampler: how the wrapper starts the sampler beside the program; empty where the job wants none.
        trace: what makes its trace when it has ended; empty where profrun does it itself.
    """

    trial: str
    variant: str
    collector: str
    blocking: bool
    repeat: int
    command: Command
    wrapped: tuple[WrappedCommand, ...]
    sampler: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()


@dataclass(frozen=True)
class DryRun:
    """A run that is not made. ``requests`` are what the backend's engine would be asked.

    Attributes:
        run: its name; the real one holds the time and a random part.
        left_out: what of the job is left out, one sentence each.
    """

    job: str
    backend: str
    run: str
    path: str
    left_out: tuple[str, ...]
    requests: tuple[Request, ...]
    trials: tuple[DryTrial, ...]


def dry_run(plan: Plan, backend: str, root: Path, cwd: Path) -> DryRun:
    """The requests and the trials of a plan. Nothing is written and nothing is started.

    Raises:
        UsageError, UnavailableError: what ``submit`` would refuse before it makes anything.
    """
    need_programs(plan, cwd, backend)
    engine = load(backend)
    run = Run((root / f"{plan.job.name}-dry-run").absolute())
    prepared = engine.prepare(plan, plan.trials, run, cwd, ask=False)
    redactor = redactor_of(plan)
    trials, repositories = [], Repositories("submit")
    for trial in plan.trials:
        told = command(run, prepared, trial, engine, repositories)
        trials.append(
            DryTrial(
                trial=trial.id,
                variant=trial.variant,
                collector=trial.collector,
                blocking=trial.blocking,
                repeat=trial.repeat,
                command=public_command(told, redactor),
                wrapped=tuple(_public(way, redactor) for way in wrapped(told)),
                sampler=sampler(told),
                trace=_trace(engine.trace_words(prepared.plan, trial.site), run, trial.id),
            )
        )
    return DryRun(
        job=plan.job.name,
        backend=backend,
        run=run.name,
        path=str(run.path),
        left_out=(*plan.left_out, *prepared.left_out),
        requests=tuple(public_request(one, redactor) for one in engine.render(prepared, plan.trials, run)),
        trials=tuple(trials),
    )


def _public(way: WrappedCommand, redactor: Redactor) -> WrappedCommand:
    """A wrapped command with its secrets hidden."""
    return replace(
        way,
        argv=redactor.arguments(way.argv),
        passes=tuple(redactor.arguments(argv) for argv in way.passes),
        env=redactor.environment(way.env),
    )


def public_request(request: Request, redactor: Redactor) -> Request:
    """A request with its secrets hidden, as it is shown."""
    body = cast("dict[str, object]", redactor.value(dict(request.body)))
    return Request(redactor.text(request.text), body)


def wrapped(told: Command) -> tuple[WrappedCommand, ...]:
    """How each profiler that the collector may become wraps the command.

    Which flags a profiler gets may still depend on its version, which only the job sees; here it is what the
    job's ``version`` option says, if anything.
    """
    found = []
    for profiler in candidates(told.profiler or told.collector):
        done = _wrap(profiler, told)
        found.append(
            WrappedCommand(
                profiler.name, done.argv, done.passes, dict(done.env), tuple(done.notes), done.limits
            )
        )
    return tuple(found)


def sampler(told: Command) -> tuple[str, ...]:
    """How the sampler is started; paths are relative to the run's folder, the vendor is that of the plan."""
    if not told.sample:
        return ()
    folder = Path("trials") / told.trial
    own = Rank(0, 0, told.ranks)
    return tuple(sampler_argv("python3", Path("bundle"), folder, told.sample, told.vendor, own))


def _wrap(profiler: Profiler, told: Command) -> Wrapped:
    block = told.options if told.profiler else told.options.get(profiler.name, {})
    options = block if isinstance(block, dict) else {}
    tool = from_json(ToolOptions, options)
    request = WrapRequest.of(
        told,
        options,
        out="raw/rank0",
        tool=tool.path or next(iter(profiler.tools), ""),
        version=_version(tool.version),
        vendor=profiler.vendors[0] if told.vendor == "auto" and profiler.tools else told.vendor,
    )
    done: Wrapped = profiler.part("wrap").wrap(request)
    return done


def _version(text: str | None) -> tuple[int, ...] | None:
    """The profiler's version as the job states it for dry runs."""
    return tuple(int(part) for part in text.split(".")) if text else None


_STEADY = "schedule.wait is steady: which steps are recorded is known only while the program runs"


_HIDDEN = (
    f"{HIDDEN} stands for a secret of the job; a real run keeps it in {PRIVATE}, which only you "
    "may read, and nowhere else"
)


def dry_text(run: DryRun) -> str:
    """The same for a person: a shell-like block per trial, then the requests."""
    lines = [f"# {run.job} on {run.backend}: {counted(len(run.trials), 'trial')}, nothing is started"]
    lines += [f"# note: {text}" for text in run.left_out]
    if any(trial.command.schedule.wait == STEADY and not trial.command.ranges.whole for trial in run.trials):
        lines.append(f"# note: {_STEADY}")
    if any(HIDDEN in line for trial in run.trials for line in _trial_lines(trial)):
        lines.append(f"# note: {_HIDDEN}")
    one_each = len(run.requests) == len(run.trials)
    for number, trial in enumerate(run.trials):
        lines += ["", *_trial_lines(trial)]
        if one_each:
            lines += ["# asked of the backend:", run.requests[number].text]
    if not one_each:
        for request in run.requests:
            lines += ["", "# asked of the backend:", request.text]
    return "\n".join(lines)


def _trial_lines(trial: DryTrial) -> list[str]:
    told = trial.command
    lines = [f"## {trial.trial}", f"cd {shlex.quote(told.cwd)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(told.env.items())]
    if trial.blocking and told.vendor == "auto":
        lines += [f"# set by the wrapper when it knows the GPU: {_blocking_words()}"]
    changes = told.changes or ()
    lines += [f"# changed in the program: {change}: {parse(change).what}" for change in changes]
    lines += [shlex.join(told.argv)]
    for way in trial.wrapped:
        argvs = way.passes or (way.argv,)
        if argvs == (told.argv,):
            continue  # this profiler starts nothing else
        sets = "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(way.env.items()))
        lines += [f"# under {way.profiler}:", *(sets + shlex.join(argv) for argv in argvs)]
        if way.limits is not None:
            lines += [f"# when {_limits_words(way.limits)} are recorded: {sets}{shlex.join(way.limits.stop)}"]
    if trial.sampler:
        lines += [f"# beside it, by the wrapper: {shlex.join(trial.sampler)}"]
    if trial.trace:
        lines += [f"# its trace, when it has ended: {shlex.join(trial.trace)}"]
    return lines


def _limits_words(limits: Limits) -> str:
    time = "" if limits.seconds is None else f"{limits.seconds:g} s or "
    return time + bytes_text(limits.size)


def _blocking_words() -> str:
    """What the wrapper sets on each vendor's GPUs for a launch-blocking trial."""
    return ", ".join(
        f"{' '.join(f'{name}={value}' for name, value in block.items())} ({vendor})"
        for vendor, block in BLOCKING_ENV.items()
    )


def _trace(words: Sequence[str], run: Run, trial: str) -> tuple[str, ...]:
    """What makes the trace of a trial where that is another process."""
    if not words:
        return ()
    from profrun.runner.make_trace import trace_command

    return tuple(trace_command(words, run, trial))
