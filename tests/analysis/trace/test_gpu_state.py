"""Clock, power and what slowed a GPU down, in the window, the run and its steady part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.trace.gpu_state import gpu_states
from profrun.analysis.trace.readings import Readings
from profrun.contract.sampling import REASONS, Quantity
from tests.analysis.sampled_runs import MS, piecewise, read_counter, sampled_run

TIMES = np.arange(-1000, 12_000, 100.0)


def _from(second: float, before: float, after: float) -> Readings:
    """A quantity that changes once."""
    return Readings((TIMES * MS).astype(np.int64), np.where(second * 1e3 <= TIMES, after, before))


def test_the_window_lies_before_the_power_cap_and_the_run_does_not(tmp_path: Path) -> None:
    """Ten seconds: 2 s at 1980 MHz and 400 W, then 8 s at 1480 MHz and 700 W; the window comes first."""
    gpu: dict[Quantity, Readings] = {
        "energy": read_counter(piecewise((-2000, 120), (0, 400), (2000, 700), (10_000, 120)), TIMES),
        "power": _from(2, 400, 700),
        "sm_clock": _from(2, 1980, 1480),
        "temperature": _from(2, 40, 60),
        "reasons": _from(2, 0, REASONS["power cap"] + REASONS["set clocks"]),
    }
    found = {one.part: one for one in gpu_states(sampled_run(tmp_path / "t", {0: gpu}))}
    window, run = found["window"], found["run"]
    assert (window.sm_mhz, window.watts, window.watts_by, window.slowed) == (1980, 400, "readings", {})
    assert run.sm_mhz == pytest.approx(1980 * 0.2 + 1480 * 0.8)
    assert run.celsius == pytest.approx(56)
    assert run.watts == pytest.approx(640, rel=0.02)
    assert run.watts_by == "counter"
    assert run.slowed == {"power cap": pytest.approx(0.8)}
    assert (run.start_ns, run.end_ns) == (0, 10_000 * MS)
    assert found["steady"].start_ns == 0


def test_a_quantity_that_was_not_sampled_is_not_known(tmp_path: Path) -> None:
    (window, run, steady) = gpu_states(sampled_run(tmp_path / "t", {0: {"sm_clock": _from(2, 1980, 1480)}}))
    assert (window.sm_mhz, window.watts, window.watts_by, window.celsius) == (1980, None, None, None)
    assert (run.part, steady.part) == ("run", "steady")


def test_a_run_without_samples_has_no_states(tmp_path: Path) -> None:
    assert gpu_states(sampled_run(tmp_path / "t", {})) == ()
