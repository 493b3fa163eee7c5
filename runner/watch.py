"""Looking at a run, and ending it, from a process that does not drive it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping

from profrun.backends.base import Backend, PreparedPlan, load
from profrun.backends.local import LocalBackend
from profrun.contract.states import TERMINAL, Status
from profrun.errors import ProfrunError, UsageError
from profrun.store.documents import read_command
from profrun.store.events import Handle
from profrun.store.files import write_json
from profrun.store.lock import driving, is_held
from profrun.store.origin import foreign, need_plain
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord, outcome, read_state

_LOOK_S = 0.2


def observed_state(run: Run) -> RunState:
    """The run's state, with the backend asked about trials that the folder alone does not settle.

    While somebody drives the run its log is up to date and nobody is asked. Nor is an engine asked about the
    trials of a run that came from elsewhere: its files may name any job or container.
    """
    state = read_state(run)
    handles = _open_handles(state)
    if state.driven or not handles:
        return state
    if state.backend != LocalBackend.name and (came := foreign(run)) is not None:
        return dataclasses.replace(state, notes=(*state.notes, f"{state.backend} was not asked: {came.why}"))
    try:
        found = load(state.backend).status(handles, run)
    except ProfrunError as error:
        return dataclasses.replace(state, notes=(*state.notes, f"the backend was not asked: {error}"))
    return dataclasses.replace(state, trials=tuple(_told(record, found) for record in state.trials))


def _told(record: TrialRecord, found: Mapping[str, Status]) -> TrialRecord:
    status = found.get(record.id)
    if status is None:
        return record
    return dataclasses.replace(record, state=status.state, reason=status.reason, exit_code=status.exit_code)


def _open_handles(state: RunState) -> dict[str, Handle]:
    return {
        record.id: record.handle or Handle(state.backend, {})
        for record in state.trials
        if record.attempt and not record.ended
    }


def pick_trial(run: Run, wanted: str | None, *, wait: bool = False) -> TrialRecord:
    """The trial of this id, beginning of an id, or number; without one, what runs now, else what ran last.

    Args:
        wait: for the first trial to start, as long as somebody drives the run.

    Raises:
        UsageError: there is none, or several begin like that.
    """
    records = observed_state(run).trials
    while wait and not any(record.attempt for record in records) and is_held(run.lock):
        time.sleep(_LOOK_S)
        records = read_state(run).trials
    if wanted is None:
        started = [record for record in records if record.attempt]
        running = [record for record in started if not record.ended]
        if not started:
            raise UsageError(
                f"no trial of {run.name} has started yet", fix=f"see `profrun status {run.name}`"
            )
        return (running or started)[-1]
    matches = [record for record in records if record.id == wanted]
    matches = matches or [record for record in records if wanted.isdigit() and record.index == int(wanted)]
    matches = matches or [record for record in records if record.id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    raise UsageError(
        f"{len(matches) or 'no'} trials of {run.name} match {wanted!r}",
        fix=f"`profrun status {run.name}` lists them; give an id or its number",
    )


def log_lines(run: Run, record: TrialRecord, *, follow: bool) -> Iterator[str]:
    """What the trial printed: from its files once it ended, from the backend while it runs."""
    state = read_state(run)
    from_files = record.ended or foreign(run) is not None
    backend = load("local" if from_files else state.backend)
    handle = record.handle or Handle(backend.name, {})
    yield from backend.logs(handle, run, record.id, follow=follow and not record.ended)


def cancel_run(run: Run, *, now: bool, wait: bool) -> RunState:
    """End a run: ask its driver, or do it here when nobody drives it.

    Raises:
        UsageError: the run has ended already, or it came from elsewhere: the processes, jobs or containers
            that its files name may be others here.
    """
    state = read_state(run)
    if state.driven:
        write_json(run.cancel_request, {"grace": 0 if now else None, "requested_ns": time.time_ns()})
        while wait and is_held(run.lock):
            time.sleep(_LOOK_S)
        return read_state(run)
    handles = _open_handles(state)
    if not handles:
        raise UsageError(f"nothing of {run.name} is running", why=f"it is {state.phase}")
    if (came := foreign(run)) is not None:
        raise UsageError(
            f"{run.name} was not made here by you, so nothing of it is ended",
            why=came.why,
            fix="cancel it where it was started; `profrun resume --yes` makes it yours",
        )
    need_plain(run)
    with driving(run.lock, run.name):
        _cancel_here(run, state, load(state.backend), handles, now=now)
    return read_state(run)


def _cancel_here(
    run: Run, state: RunState, backend: Backend[PreparedPlan], handles: Mapping[str, Handle], *, now: bool
) -> None:
    """End the orphans of a killed driver and write down how each ended."""
    log = run.log()
    grace = 0.0 if now else _grace(run, state)
    log.append("cancelled", by="profrun cancel", grace_s=grace)
    backend.cancel(handles, run, grace=grace)
    for trial_id, status in backend.status(handles, run).items():
        killed = status.state == "lost" or status.state not in TERMINAL
        how = "cancelled" if killed else status.state
        log.append("finished", trial_id, state=how, reason=status.reason, exit_code=status.exit_code)
    log.append("done", state=outcome(read_state(run).trials))


def _grace(run: Run, state: RunState) -> float:
    """Seconds the trial's own command.json grants."""
    for record in state.trials:
        if record.attempt and not record.ended:
            told = read_command(record.paths)
            return told.grace_s if told is not None else 60.0
    return 60.0
