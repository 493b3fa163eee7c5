"""The run as the one step of a rank, where no process of the program saw a step: its ``steps.json``."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from ..contract.codec import to_json
from ..contract.steps import StepsFile, StepTime
from .files import write_json
from .timing import anchor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract.command import Command
    from .command_end import Outcome
    from .process_note import ProcessNote
    from .ranks import Ranks


def write_run(
    command: Command, profiler: str | None, ranks: Ranks, notes: Sequence[ProcessNote], outcome: Outcome
) -> None:
    """Write ``steps.json`` for each rank of this wrapper that has none, after a program that ended well.

    The run of a rank is that of the process that did its work: one that used a GPU, else one that imported a
    GPU framework; among several the one that used most CPU time. A program of which no process imported a
    framework is timed from outside, from its start to its end.

    Args:
        profiler: what the collector became.
        notes: of the processes of this wrapper's ranks.
        outcome: how the program ended.

    Raises:
        OSError: it cannot be written.
    """
    if any(any(ranks.paths.rank(rank).glob("steps*.json")) for rank in ranks.answered_for()):
        return
    candidates = {note.run.rank for note in notes if note.run is not None}
    runs = {rank: run for rank in candidates if (run := _run_of(rank, notes)) is not None}
    if not runs:
        runs[ranks.own.rank] = _from_outside(command, profiler, ranks, outcome)
    for rank, run in runs.items():
        path = ranks.paths.rank(rank) / "steps.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, to_json(run))


def _run_of(rank: int, notes: Sequence[ProcessNote]) -> StepsFile | None:
    """The run of the process of this rank that did its work."""
    found = [note for note in notes if note.run is not None and note.run.rank == rank]
    chosen = max(found, key=lambda note: (bool(note.process.used_gpu), note.cpu_ns), default=None)
    return None if chosen is None else chosen.run


def _from_outside(command: Command, profiler: str | None, ranks: Ranks, outcome: Outcome) -> StepsFile:
    dur_ns = round(outcome.run_s * 1e9)
    return StepsFile(
        rank=ranks.own.rank,
        pid=outcome.pid,
        how="run",
        clock="wall",
        anchor=anchor(),
        local_rank=ranks.own.local_rank,
        world_size=ranks.own.world_size,
        host=socket.gethostname(),
        collector=command.collector,
        profiler=profiler,
        blocking=command.blocking,
        work=dict(command.values),
        profiler_start_ns=0,  # a tool round the program has started before the program
        steps=(StepTime(0, outcome.began_ns, dur_ns, dur_ns, "active"),),
    )
