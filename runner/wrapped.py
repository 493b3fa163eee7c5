"""A folder that ``profrun wrap`` has filled, made into a run like any other.

``profrun wrap`` writes the trials, each begun by a launcher that is not profrun's. What only the driver of a
run writes is missing: the spec, the plan, the log, the traces, the comparisons and the report. ``complete``
adds it. It can be called again when more has come: nothing that is there is made twice.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profrun.backends.base import WRAPPED
from profrun.contract.codec import DocumentError, from_json, given_json, to_json
from profrun.contract.command import Command
from profrun.contract.launch_file import NAME, LaunchFile
from profrun.contract.paths import LAUNCHES
from profrun.contract.profilers import NEUTRAL, all_names
from profrun.contract.states import Status
from profrun.contract.units import rank_list
from profrun.errors import InputError, UsageError
from profrun.jobs.dump import dump_job, yaml_text
from profrun.jobs.load import load_text
from profrun.jobs.model import Job
from profrun.plans.make import plan_file
from profrun.plans.model import Plan, Trial
from profrun.runner.trial_files import normalise
from profrun.store.documents import read_exit, status_of, with_late_answers
from profrun.store.events import EventLog
from profrun.store.files import explained, read_json, write_json, write_text
from profrun.store.lock import driving
from profrun.store.origin import need_plain
from profrun.store.runs import Run, created, is_run
from profrun.store.seal import place_of
from profrun.store.state import RunState, TrialRecord, outcome, read_state
from profrun.version import VERSION

_VALUE = "command"
"""Value of the resolved spec's variants that is the whole command, where variants have different ones."""


@dataclass(frozen=True)
class Launch:
    """One launch: what its ranks agreed on, and which of them have come."""

    document: LaunchFile
    came: tuple[int, ...]

    @property
    def command(self) -> Command:
        """The trial."""
        return self.document.command

    @property
    def missing(self) -> list[int]:
        """The ranks that never came."""
        return sorted(set(range(self.document.world_size)) - set(self.came))


def is_wrapped(folder: Path) -> bool:
    """Whether ``profrun wrap`` has written into this folder."""
    return (folder / LAUNCHES).is_dir()


def launches(folder: Path) -> list[Launch]:
    """The launches in a folder, in the order in which they began; without those whose trial was removed.

    Raises:
        InputError: there is none, or a document is damaged.
    """
    found = []
    places = [path for path in folder.glob(f"{LAUNCHES}/[0-9]*") if path.name.isdecimal()]
    for place in sorted(places, key=lambda path: int(path.name)):
        try:
            document = from_json(LaunchFile, read_json(place / NAME))
            _number(document.command)
        except DocumentError as error:
            raise InputError(f"{place / NAME} is damaged", why=str(error), fix=f"remove {place}") from error
        if not Run(folder).trial(document.command.trial).folder.is_dir():
            continue
        came = sorted(int(path.name[4:]) for path in place.glob("rank*") if path.name[4:].isdecimal())
        found.append(Launch(document, tuple(came)))
    if not found:
        raise InputError(f"nothing was recorded in {folder}", fix="start a command in it with `profrun wrap`")
    return found


def complete(
    folder: Path, tell: Callable[[str], None], progress: Callable[[int, int | None], None] | None = None
) -> tuple[RunState, Plan]:
    """Make a run of what is there: its documents, its log and its traces; not yet its comparisons and report.

    Args:
        folder: what ``profrun wrap --out`` named.
        tell: is told of ranks that are missing.
        progress: is told how far the files of a trial have been read, and of how much, in bytes.

    Raises:
        InputError: nothing was recorded, a document is damaged, or the folder holds a link or the like.
        UsageError: another process does the same, or a backend of profrun made this run.
        UnavailableError: the folder cannot be written.
    """
    run = Run(folder.absolute())
    need_plain(run)
    found = launches(run.path)
    if is_run(run.path) and created(run).get("backend") != WRAPPED:
        raise UsageError(f"{run.path} is a run already", fix=f"see `profrun status {run.name}`")
    with driving(run.lock, run.name):
        plan = _write_documents(run, found)
        log = run.log()
        for launch in found:
            for line in _lacking(run, launch):
                tell(line)
        before = {record.id: record for record in read_state(run).trials}
        for launch in found:
            _end(run, log, launch, before[launch.command.trial])
        for record in read_state(run).trials:
            if record.trace is None:
                _make_trace(run, log, record, progress)
        log.append("done", state=outcome(read_state(run).trials))
    return read_state(run), plan


def _write_documents(run: Run, found: Sequence[Launch]) -> Plan:
    spec = yaml_text(spec_of(found))
    job = job_of(spec)
    trials = tuple(_planned(launch.command) for launch in found)
    plan = Plan(job, trials)
    if not is_run(run.path):
        first = found[0].command
        run.log().append(
            "created",
            run=run.name,
            job=job.name,
            backend=WRAPPED,
            cwd=first.cwd,
            profrun=VERSION,
            **to_json(place_of(run.path)),
        )
    head = (
        "# Written by `profrun normalize`: what `profrun wrap` was told. Another launcher started the trials."
    )
    with explained(run.path):
        write_text(run.job, f"{head}\n{spec}")
        write_text(run.resolved, dump_job(job))
    write_json(run.plan, to_json(plan_file(plan)))
    run.log().append("planned", trials=len(trials))
    return plan


def _number(command: Command) -> int:
    """Number of a trial, with which its id begins.

    Raises:
        DocumentError: it begins otherwise.
    """
    head = command.trial.partition("-")[0]
    if not (head.isdecimal() and len(head) < 10):
        raise DocumentError(f"is {command.trial[:60]!r}", "command.trial")
    return int(head)


def _planned(command: Command) -> Trial:
    """The trial of a plan that a wrapped command was; its number is that of its folder."""
    options = {command.profiler: command.options} if command.profiler else command.options
    return Trial(
        index=_number(command),
        id=command.trial,
        variant=command.variant,
        values=command.values,  # type: ignore[arg-type] # they are what the command line can hold
        collector=command.collector,
        profiler=command.profiler,
        blocking=command.blocking,
        repeat=command.repeat,
        argv=command.argv,
        env=dict(command.env),
        options=options,  # type: ignore[arg-type] # JSON values
    )


def spec_of(found: Sequence[Launch]) -> dict[str, object]:
    """A job spec that says the same as the wrapped commands, as far as a spec can.

    Where launches differ in what a spec has only once (the schedule), it says what the first one said.
    """
    commands = [launch.command for launch in found]
    first = commands[0]
    lines = {command.variant: _template(command.argv) for command in commands}
    same = len(set(lines.values())) == 1
    modes = {command.blocking for command in commands}
    spec: dict[str, object] = {
        "name": first.job,
        "image": "none",
        "command": lines[first.variant] if same else f"{{{_VALUE}}}",
        "variants": {name: {} if same else {_VALUE: shlex.join(_argv(commands, name))} for name in lines},
        "collectors": list(dict.fromkeys(command.collector for command in commands)),
        "launch_blocking": "both" if len(modes) > 1 else "on" if first.blocking else "off",
        "repeats": max(command.repeat for command in commands),
        "schedule": given_json(first.schedule),
        "ranges": given_json(first.ranges),
        "sample": first.sample or "off",
        "workdir": first.cwd,
        "resources": {"timeout": first.timeout_s or 1800, "grace": first.grace_s},
    }
    if first.recorded is not None:
        spec["ranks"] = list(first.recorded)
    for command in commands:
        name = command.collector
        if command.options and name in all_names() and name not in NEUTRAL:
            spec.setdefault(name, dict(command.options))
    return spec


def _argv(commands: Sequence[Command], variant: str) -> tuple[str, ...]:
    return next(command.argv for command in commands if command.variant == variant)


def _template(argv: Sequence[str]) -> str:
    """The command of a spec: no brace in it is a placeholder."""
    return shlex.join(argv).replace("{", "{{").replace("}", "}}")


def job_of(spec: str) -> Job:
    """The job of a spec that ``spec_of`` made."""
    return load_text(spec, "what profrun wrap was told")


def _lacking(run: Run, launch: Launch) -> list[str]:
    """Which ranks of a launch never came, and which have not said how they ended."""
    trial = launch.command.trial
    lines = []
    if launch.missing:
        word = "has" if len(launch.missing) == 1 else "have"
        lines.append(
            f"{trial}: {rank_list(launch.missing)} of {launch.document.world_size} {word} never come"
        )
    silent = _silent(run, launch)
    if silent:
        lines.append(f"{trial}: no word of the end of {rank_list(silent)}: still running, or killed")
    return lines


def _silent(run: Run, launch: Launch) -> list[int]:
    """The ranks that have come and have not said how they ended; rank 0 may have given up on them."""
    paths = run.trial(launch.command.trial)
    ended = read_exit(paths)
    asked = launch.came if ended is None else ended.silent
    return [rank for rank in asked if rank in launch.came and not paths.answer(rank).exists()]


def _end(run: Run, log: EventLog, launch: Launch, record: TrialRecord) -> None:
    """Write down how a trial has begun and ended, where the log does not say it."""
    trial, attempt = launch.command.trial, launch.command.attempt
    if not record.attempt:
        log.append("started", trial, durable=False, attempt=attempt)
    ended = read_exit(run.trial(trial))
    ended = None if ended is None else with_late_answers(run.trial(trial), ended)
    status = status_of(ended) if ended is not None else Status("lost", _why_lost(launch))
    if record.ended and record.state == status.state:
        return
    log.append(
        "finished",
        trial,
        durable=False,
        state=status.state,
        reason=status.reason,
        exit_code=status.exit_code,
        code=status.code,
    )


def _why_lost(launch: Launch) -> str:
    """Why a trial has no end: rank 0 writes it."""
    if 0 not in launch.came:
        return f"rank 0 has never come; {rank_list(launch.came)} did" if launch.came else "no rank has come"
    return "rank 0 has not said how the trial ended: it still runs, or it was killed"


def _make_trace(
    run: Run, log: EventLog, record: TrialRecord, progress: Callable[[int, int | None], None] | None
) -> None:
    event = normalise(run, record, progress).event(run)
    if event is not None:
        log.append(event[0], record.id, **event[1])
