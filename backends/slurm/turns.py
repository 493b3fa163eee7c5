"""The turns of trials that share an allocation, as its script writes them down, and what they mean. Pure.

``slurm/allocation<n>.said`` has a line for each event: ``begin ID``, ``end ID CODE`` (of srun), ``skip ID
cancelled|time``, and ``restart`` where Slurm started the job again: what had only begun then begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profrun.contract.exit import Exit
from profrun.contract.states import WAITS_TURN, Status
from profrun.store.documents import status_of, unsettled


@dataclass(frozen=True)
class Turn:
    """What became of one trial's turn.

    Attributes:
        code: exit code of srun, once it has ended.
        why: why it was skipped: ``cancelled``, or ``time`` (too little of it was left).
    """

    state: Literal["begun", "ended", "skipped"]
    code: int | None = None
    why: str = ""


def parse_turns(text: str) -> dict[str, Turn]:
    """The turns that have begun, by trial."""
    found: dict[str, Turn] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        trial, _, more = rest.partition(" ")
        if word == "begin":
            found[trial] = Turn("begun")
        elif word == "end":
            found[trial] = Turn("ended", code=int(more) if more.isdigit() else None)
        elif word == "skip":
            found[trial] = Turn("skipped", why=more)
        elif word == "restart":
            found = {name: turn for name, turn in found.items() if turn.state == "ended"}
    return found


def turn_status(
    job: str, living: Status, turn: Turn | None, ended: Exit | None, *, cancelled: bool
) -> Status | None:
    """The state of a trial while its allocation lives; None where that of its step decides.

    Args:
        job: the allocation's number.
        living: what Slurm says of it.
        ended: the trial's ``exit.json``.
        cancelled: whether somebody asked for the trial's end.
    """
    before = ended is not None and not unsettled(ended)
    if living.state in ("queued", "failed"):  # not started, or to be started again
        return status_of(ended) if before and ended is not None else None
    if turn is None:
        if before and ended is not None:
            return status_of(ended)
        if cancelled:
            return Status("cancelled", "cancelled before it started")
        return Status("queued", f"its turn comes in allocation {job}", code=WAITS_TURN)
    return skipped(turn) if turn.state == "skipped" else None


def skipped(turn: Turn) -> Status:
    """Of a trial that was passed over."""
    if turn.why == "cancelled":
        return Status("cancelled", "cancelled before it started")
    return Status("lost", "too little time of the allocation was left for it; `profrun resume` runs it")


def ended_early(row: str) -> Status:
    """Of a trial whose allocation ended before its turn.

    Args:
        row: what Slurm says of the allocation.
    """
    if row == "CANCELLED":
        return Status("cancelled", "the allocation was cancelled before its turn")
    return Status(
        "lost", f"the allocation ended before its turn (Slurm says {row}); `profrun resume` runs it"
    )


def no_exit(turn: Turn, last_line: str | None) -> Status:
    """Of a trial whose step has ended without ``exit.json``. It is never ``finished``.

    Args:
        last_line: of the step's log.
    """
    reason = f"its step ended with exit code {turn.code} and the wrapper left no exit.json"
    return Status("failed", reason + (f"; the last line of its log: {last_line}" if last_line else ""))
