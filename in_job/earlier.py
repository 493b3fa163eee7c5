"""What earlier trials of the same run say about the steps of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json
from ..contract.command import Command
from ..contract.exit import Exit
from ..contract.finding import Finding
from ..contract.paths import TrialPaths
from .files import read_json

if TYPE_CHECKING:
    from pathlib import Path


def no_steps_before(command: Command, folder: Path) -> Finding | None:
    """Whether a trial of the same variant has finished without a step: then none is looked for in this one.

    Trials that run at the same time have no exit.json yet, and inside a container the other trials may not
    be there: then nothing is known.

    Args:
        command: of this trial.
        folder: its folder; the other trials lie beside it.

    Returns:
        What is to be said; None where steps are to be looked for.
    """
    try:
        others = sorted(folder.parent.iterdir())
    except OSError:  # a container may see its own folder only
        return None
    for other in others:
        paths = TrialPaths(other)
        if other == folder or not paths.exit.is_file():
            continue
        try:
            variant = from_json(Command, read_json(paths.command)).variant
            ended = from_json(Exit, read_json(paths.exit))
        except DocumentError:
            continue
        if variant != command.variant or ended.state != "finished":
            continue
        if ended.steps.how != "run":
            return None
        what = "no step is looked for, and the run is recorded as a whole"
        return Finding("no-steps-before", "info", what, f"trial {other.name} saw no step in this program")
    return None
