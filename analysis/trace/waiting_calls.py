"""Calls that wait for the GPU, in the order of each thread: ``waiting_calls``, and their lines in a mapping.

``waiting_lines`` gives the line of the program round each of these calls of a mapping. Those of another trial
of the same program are found by their places in its steps (``compare.address_join``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.runtime_calls import is_blocking
from profrun.analysis.trace.steps import step_index, step_of_host
from profrun.contract.line_names import Line, parse_line

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class WaitingCalls:
    """The calls of one step, or of a whole recording without steps, on the threads of one process.

    Attributes:
        rank: of the process.
        ids: the calls, by thread and start: that of the steps first.
        names: of the calls.
    """

    rank: int
    ids: Index
    names: tuple[str, ...]


def waiting_calls(source: Frame) -> list[WaitingCalls]:
    """The calls of each step that wait for the GPU; steps without any are left out."""
    ids = source.of("api")
    ids = ids[source.named(ids, is_blocking)]
    index = step_index(source)
    if len(index.slices):
        step = step_of_host(source, index, ids)
        ids, step = ids[step >= 0], step[step >= 0]
        other = source.track[ids] != source.track[index.slices[step]]
    else:
        step = source.process_of(ids).astype(np.int64)
        other = np.zeros(len(ids), dtype=bool)
    order = np.lexsort((source.ts[ids], source.track[ids], other, step))
    ids, step = ids[order], step[order]
    parts = np.split(ids, np.flatnonzero(np.diff(step)) + 1) if len(ids) else []
    return [
        WaitingCalls(
            source.processes[int(source.process_of(part[:1])[0])]["rank"],
            part,
            tuple(source.text(int(one)) for one in part),
        )
        for part in parts
    ]


def waiting_lines(trace: Trace) -> dict[int, Line]:
    """Slice id of a call of a mapping that waits for the GPU -> the innermost line of the program round it.

    Lines of generated code are not the program's: what they call has the line that runs the compiled code.
    """
    source = frame(trace)
    generated = {file for (file,) in trace.sql("SELECT DISTINCT file FROM generated").rows}
    lines = {
        number: line
        for number, text in enumerate(source.names)
        if (line := parse_line(text)) is not None and line.file not in generated
    }
    ids = np.arange(len(source))
    nearest = source.chase(source.has_name(ids, list(lines)) & source.kinds("range")[source.kind])
    return {
        int(call): lines[int(source.name[nearest[call]])]
        for one in waiting_calls(source)
        for call in one.ids
        if nearest[call] >= 0
    }
