"""Whether the program is run a second time, recorded as a whole, because the first time recorded no step."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from ..contract.units import elapsed_text
from .hook_errors import LOADED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract.command import Command
    from ..contract.exit import Artefact
    from ..contract.wrapping import Wrapped
    from .command_end import Outcome
    from .process_note import ProcessNote
    from .ranks import Ranks

_WHY = "no step was seen, so the recording never began"
_FIX = "set ranges.steps: off to record the run as a whole at once"


@dataclass(frozen=True)
class FirstRun:
    """What is known when the program has run.

    Attributes:
        command: with which it ran.
        wrapped: how it was wrapped; None when it was refused.
        outcome: how it ended.
        notes: what its processes said.
        artefacts: what it left, as in exit.json.
        critical: whether something critical was found: then a second run would not help.
    """

    command: Command
    wrapped: Wrapped
    outcome: Outcome
    notes: Sequence[ProcessNote]
    artefacts: Sequence[Artefact]
    critical: bool


def second_run(first: FirstRun, ranks: Ranks) -> tuple[bool, Finding | None]:
    """Whether the program runs again, and what is to be said of it.

    It does where it ended well, no step was seen, and the recording has not even a range over the run. With
    several wrappers (srun, mpirun) it does not: all ranks would have to agree. It does not either where the
    rest of the time limit is shorter than the first run was.
    """
    if not _is_wanted(first):
        return False, None
    what = "the program is not run a second time to record it as a whole"
    if ranks.own.world_size > 1:
        return False, Finding("second-run", "info", what, "each rank has a wrapper of its own", _FIX)
    spent, limit = first.outcome.app_s, first.command.timeout_s
    if limit and limit - spent < spent:
        why = f"{elapsed_text(limit - spent)} of the time limit are left, and it took {elapsed_text(spent)}"
        return False, Finding("second-run", "info", what, why, f"{_FIX}, or resources.timeout higher")
    what = "the program was run a second time and recorded as a whole"
    return True, Finding("second-run", "info", what, _WHY, f"{_FIX}, or collect none too, which runs first")


def _is_wanted(first: FirstRun) -> bool:
    outcome, wrapped = first.outcome, first.wrapped
    records = wrapped.hook != "none" or wrapped.emitter is not None
    ended_well = outcome.error is None and outcome.stopped_by is None and outcome.code == 0
    if first.command.ranges.whole or first.critical or not records or not ended_well:
        return False
    if any(note.process.steps for note in first.notes):
        return False
    if wrapped.hook == "in_process" and not any(note.torch is not None for note in first.notes):
        return False
    missing = any(artefact.state == "missing" for artefact in first.artefacts)
    if wrapped.hook == "none":  # it was recorded from the start, but without the range over the run
        return not missing and any(note.run is not None for note in first.notes)
    # rocprofv3 writes its files also where nobody resumed it, and then they hold nothing
    return missing or wrapped.hook == "roctx"


def clear(ranks: Ranks) -> None:
    """Remove what the first run left: it has no step, and the second run leaves the same files."""
    shutil.rmtree(ranks.paths.raw, ignore_errors=True)
    for pattern in ("process.*.json", f"*{LOADED}"):
        for path in ranks.paths.hook.glob(pattern):
            path.unlink(missing_ok=True)
    ranks.prepare()
