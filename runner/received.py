"""Runs that came from somebody else: what they would run, and taking one over as one's own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from profrun.backends.base import load
from profrun.contract.codec import to_json
from profrun.contract.units import counted
from profrun.errors import UsageError
from profrun.plans.model import Trial
from profrun.runner.planning import plan_of
from profrun.store.lock import driving
from profrun.store.origin import Foreign, foreign, need_plain
from profrun.store.runs import Run
from profrun.store.seal import place_of
from profrun.store.state import read_state

MOST_COMMANDS = 20
"""So many different commands are shown; a run with more is to be read in its resolved.yaml."""
UNKNOWN_END = "it ran elsewhere, before this folder came here"


@dataclass(frozen=True)
class Received:
    """A run that this user did not make here.

    Attributes:
        why: what tells it.
        would_run: what ``resume`` would run: one line per command, in which nothing controls a terminal.
    """

    run: Run
    why: str
    would_run: tuple[str, ...]


def received(run: Run) -> Received | None:
    """What to show before a run is carried on; None where this user made it here or has accepted it.

    Raises:
        InputError: the folder holds a link or the like, or its documents do not agree.
        UsageError: its resolved.yaml is no job.
    """
    need_plain(run)
    found = foreign(run)
    if found is None:
        return None
    plan, state = plan_of(run), read_state(run)
    load(state.backend)
    commands = list(dict.fromkeys(_line(trial) for trial in plan.trials))
    lines = [
        _printable(f"{counted(len(commands), 'command')} in {state.cwd}, with the backend {state.backend}"),
        *(f"$ {_printable(line)}" for line in commands[:MOST_COMMANDS]),
    ]
    if len(commands) > MOST_COMMANDS:
        lines.append(f"and {len(commands) - MOST_COMMANDS} more")
    lines.append(_printable(f"read all of it, with image, mounts and cluster settings, in {run.resolved}"))
    return Received(run, _printable(found.why), tuple(lines))


def need_own(run: Run) -> None:
    """Refuse to carry on a run that this user did not make here.

    Raises:
        InputError: the folder holds a link or the like.
        UsageError: it is somebody else's.
    """
    need_plain(run)
    found = foreign(run)
    if found is not None:
        raise refusal(found)


def refusal(found: Foreign | Received) -> UsageError:
    """The error of a command that would carry on such a run unasked."""
    return UsageError(
        f"{found.run.name} was not made here by you",
        why=_printable(found.why),
        fix=f"if you trust its commands: `profrun resume {shlex.quote(str(found.run.path))} --yes`",
    )


def accept(run: Run) -> None:
    """Make a run this user's own, at this place.

    What it says of running trials is not believed: the process, job or container that it names may be
    another one here. They count as lost, so that ``resume`` repeats them and ``cancel`` ends nothing.

    Raises:
        UsageError: another process drives the run.
        UnavailableError: the folder cannot be written.
    """
    with driving(run.lock, run.name):
        log = run.log()
        for record in read_state(run).trials:
            if record.attempt and not record.ended:
                log.append("finished", record.id, state="lost", reason=UNKNOWN_END)
        log.append("accepted", **to_json(place_of(run.path)))


def _line(trial: Trial) -> str:
    """A trial's command as a shell line, with the variables that it is given."""
    return " ".join(
        [*(f"{name}={shlex.quote(value)}" for name, value in trial.env.items()), shlex.join(trial.argv)]
    )


def _printable(text: str) -> str:
    """The same on one line, without characters that control a terminal."""
    parts = [one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text]
    return "".join(parts)
