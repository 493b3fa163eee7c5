"""Which of a rule's experiments can change the program that was recorded: ``applicable``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profrun.analysis.rules.host_causes import OPTIMIZER_STEP
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.runtime_calls import is_graph_launch

SIGNS: Mapping[str, tuple[str, ...]] = {
    "fused-optimizer": (OPTIMIZER_STEP, "Backward", "autograd::"),
    "cudnn-benchmark": ("convol", "cudnn"),
}
"""Changes that do nothing in many programs, with parts of names of which a program has one that they can
change. A program that trains has a backward in each step, but not always a step of its optimizer."""


def applicable(source: Frame, experiments: Sequence[str]) -> tuple[str, ...]:
    """The experiments that can change what was recorded.

    An experiment of ``SIGNS`` is left out where the recording has operators of torch, and no such name. It is
    kept where graphs are launched, because the operators that made a graph are not recorded.

    Args:
        source: the recording.
        experiments: as a rule names them.
    """
    if SIGNS.keys().isdisjoint(experiments) or not _tells_all(source.names):
        return tuple(experiments)
    return tuple(one for one in experiments if one not in SIGNS or _has(source.names, SIGNS[one]))


def _tells_all(names: Sequence[str]) -> bool:
    return any(name.startswith("aten::") for name in names) and not any(map(is_graph_launch, names))


def _has(names: Sequence[str], parts: Sequence[str]) -> bool:
    return any(part in name for name in names for part in parts)
