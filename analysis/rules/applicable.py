"""Which of a rule's experiments can change the program that was recorded: ``applicable``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profrun.analysis.rules.host_causes import OPTIMIZER_STEP
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.runtime_calls import is_graph_launch
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

SIGNS: Mapping[str, tuple[str, ...]] = {
    "fused-optimizer": (OPTIMIZER_STEP, "Backward", "autograd::"),
    "cudnn-benchmark": ("convol", "cudnn"),
}
"""Change -> parts of names. A change does nothing in a program that has no name with one of its parts. A
backward is a sign of an optimizer, because some programs run many backwards for each step of it."""


def applicable(trace: Trace, experiments: Sequence[str]) -> tuple[str, ...]:
    """The experiments that can change the program that was recorded.

    Args:
        trace: the recording.
        experiments: as a rule names them.
    """
    return tuple(one for one in experiments if one not in _without_effect(trace))


@memoised
def _without_effect(trace: Trace) -> frozenset[str]:
    """The changes of ``SIGNS`` that would do nothing.

    There are none where no operators of torch were recorded, because then the names tell nothing. There are
    none where graphs were launched either: the operators that a graph was made of are not recorded.
    """
    names = frame(trace).names
    if not any(name.startswith("aten::") for name in names) or any(map(is_graph_launch, names)):
        return frozenset()
    return frozenset(
        change for change, parts in SIGNS.items() if not any(part in name for name in names for part in parts)
    )
