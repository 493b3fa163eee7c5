"""Which steps of a run count for its step time: ``counted``, of arrays, and ``chosen`` where they are many.

Under a profiler only the steps that it records count. Without one every step is as good as another, and the
program lives in its steady phase (``run_phases``); the five steps of a schedule may lie in another one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.run_phases import FEWEST, cut_phases, levels_of_steps, steady_level
from profrun.errors import UsageError

Ints = NDArray[np.int64]
Phase = Literal["steady", "window", "all", "recorded"]
"""Which steps of a trial without a profiler count.

``steady``: those at the level in which the program lives (``run_phases.steady_level``). ``window``: those
that the schedule records. ``all``: every step. ``recorded``: those at the level of that window, with
which a profiled trial of the same program is compared.
"""
PHASE_WORDS: dict[Phase, str] = {
    "steady": "the steady phase",
    "window": "the schedule's window",
    "all": "the whole run",
    "recorded": "the phase in which the schedule's window lies",
}
ASKED: tuple[Phase, ...] = ("steady", "window", "all")
"""What a user may ask for."""
MOST_STEPS = 1000
"""So many steps of a trial are looked at. The median of 1000 steps that scatter by 3 % is known to 0.1 %."""
_SEED = 15


def phase_named(text: str) -> Phase:
    """The phase of that name.

    Raises:
        UsageError: there is none.
    """
    found = next((name for name in ASKED if name == text), None)
    if found is None:
        raise UsageError(f"no phase {text!r}", fix=f"use one of {', '.join(ASKED)}")
    return found


def counted(durs: Ints, window: NDArray[np.bool_], phase: Phase) -> NDArray[np.bool_]:
    """Which steps of a run count.

    Args:
        durs: ns of every step in their order, all above 0, int64, shape (steps,).
        window: whether the schedule records the step, bool, shape (steps,).

    Returns:
        bool, shape (steps,). The schedule's window where the steps are too few for phases; every step where
        there is no window.
    """
    if len(durs) < FEWEST and phase != "all":
        phase = "window"
    if phase in ("all", "window"):
        return window if phase == "window" and window.any() else np.ones(len(durs), dtype=np.bool_)
    cuts = cut_phases(durs)
    level = levels_of_steps(cuts)
    if phase == "recorded" and window.any():
        return np.asarray(level == int(np.bincount(level[window]).argmax()), dtype=np.bool_)
    return np.asarray(level == steady_level(cuts), dtype=np.bool_)


def chosen(mask: NDArray[np.bool_], most: int = MOST_STEPS) -> Ints:
    """Places of the steps that count; of more than ``most`` one of each of ``most`` equal stretches.

    The step of a stretch is drawn at random, the same one each time: every hundredth step may be a special
    one.

    Returns:
        int64, shape (at most ``most``,), increasing.
    """
    places = np.flatnonzero(mask).astype(np.int64)
    if len(places) <= most:
        return places
    edges = np.linspace(0, len(places), most + 1).astype(np.int64)
    drawn = np.random.default_rng(_SEED).random(most)
    return places[edges[:-1] + (drawn * np.diff(edges)).astype(np.int64)]
