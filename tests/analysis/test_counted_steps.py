"""Which steps of a run count: those of the steady phase, and at most a thousand of them."""

from __future__ import annotations

import numpy as np
import pytest

from profrun.analysis.counted_steps import Phase, chosen, counted, phase_named
from profrun.errors import UsageError


@pytest.mark.parametrize(
    ("phase", "first", "stop"), [("steady", 20, 100), ("recorded", 0, 20), ("window", 5, 10), ("all", 0, 100)]
)
def test_a_boost_at_the_begin_is_not_the_steady_phase(phase: Phase, first: int, stop: int) -> None:
    """20 steps of 2.94 ms, then 80 of 3.31 ms, as a loop on an H200; the window is 5 to 9."""
    durs = np.where(np.arange(100) < 20, 2_940_000, 3_310_000) + np.arange(100) % 3 * 1000
    window = (np.arange(100) >= 5) & (np.arange(100) < 10)
    assert np.flatnonzero(counted(durs, window, phase)).tolist() == list(range(first, stop))


def test_few_steps_count_the_window_and_all_where_there_is_none() -> None:
    durs = np.array([900, 100, 101, 99, 100])
    window = np.array([False, False, True, True, True])
    assert counted(durs, window, "steady").tolist() == window.tolist()
    assert counted(durs, np.zeros(5, dtype=np.bool_), "steady").all()


def test_of_many_steps_one_of_each_stretch_is_looked_at() -> None:
    mask = np.ones(100_000, dtype=np.bool_)
    mask[:50] = False
    places = chosen(mask)
    assert len(places) == 1000
    assert places[0] >= 50
    assert np.diff(places).min() > 0
    assert np.diff(places).max() < 200
    special = places % 100 == 0  # not all of what happens at every hundredth step, and not none
    assert 0 < special.sum() < 50
    assert chosen(mask[:500]).tolist() == list(range(50, 500))


def test_only_phases_that_a_user_may_ask_for_have_a_name() -> None:
    assert phase_named("window") == "window"
    with pytest.raises(UsageError, match="no phase 'recorded'"):
        phase_named("recorded")
