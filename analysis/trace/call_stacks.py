"""The Python stacks of calls of the GPU's API, where the profiler recorded them: ``call_stacks``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.contract.code_paths import is_own
from profrun.contract.line_names import Line
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

_AUTOGRAD = "/torch/autograd/"


@dataclass(frozen=True)
class Stack:
    """What a Python stack tells of the work that was launched under it.

    Attributes:
        line: the innermost line of the program's own code; None where no frame is of it, or where Python has
            no line for that frame.
        backward: whether autograd's engine runs in it, or called it.
    """

    line: Line | None
    backward: bool


@dataclass(frozen=True)
class CallStacks:
    """The stacks of a trace.

    Attributes:
        of: index into ``table`` by slice id, int64, shape (slices + 1,); -1 for none, and the last is -1.
        table: the stacks.
    """

    of: NDArray[np.int64]
    table: tuple[Stack, ...]

    def at(self, source: Frame, calls: Index) -> NDArray[np.int64]:
        """Index into ``table`` for each call: its own stack, else that of the nearest call round it.

        No Python code runs between a call and one inside it.

        Args:
            calls: slice ids, shape (n,); -1 for none.
        """
        round_it = source.chase(self.of[:-1] >= 0)
        return np.where(
            self.of[calls] >= 0, self.of[calls], self.of[np.append(round_it, np.int32(-1))[calls]]
        )


@memoised
def call_stacks(trace: Trace) -> CallStacks | None:
    """The stacks of a trace; None where none was recorded."""
    calls = trace.sql("SELECT slice, stack FROM call_stacks").rows
    if not calls:
        return None
    frames: dict[int, list[tuple[str, int | None, str]]] = {}
    rows = trace.sql('SELECT stack, file, "line", "function" FROM stacks ORDER BY stack, frame').rows
    for stack, *one in rows:
        frames.setdefault(stack, []).append((one[0], one[1], one[2]))
    place = {stack: at for at, stack in enumerate(frames)}
    of = np.full(len(frame(trace)) + 1, -1, dtype=np.int64)
    of[[slice_id for slice_id, _ in calls]] = [place[stack] for _, stack in calls]
    return CallStacks(of, tuple(_told(one) for one in frames.values()))


def _told(frames: list[tuple[str, int | None, str]]) -> Stack:
    """What a stack tells. ``frames``: file, line and function, outermost first."""
    own = next((one for one in reversed(frames) if is_own(one[0])), None)
    line = None if own is None or own[1] is None else Line(own[0], own[1], own[2])
    # On a thread of autograd's own, a backward that is written in Python is called through ``apply``. Else
    # the engine runs in the call of ``backward`` (torch/autograd/function.py and graph.py of torch 2.11).
    first, _, function = frames[0]
    backward = (first.endswith(f"{_AUTOGRAD}function.py") and function == "apply") or any(
        name == "_engine_run_backward" and _AUTOGRAD in file for file, _, name in frames
    )
    return Stack(line, backward)
