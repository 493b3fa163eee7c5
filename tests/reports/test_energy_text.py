"""Energy and the states of GPUs in words."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.energy import StepEnergy
from profrun.analysis.trace.gpu_state import Part, StateOfGpu
from profrun.contract.sampling import Reason
from profrun.reports.energy_text import energy_line, state_lines

MS = 1_000_000
ENERGY = StepEnergy(2.354, 0.0204, 690.4, 1000, 3410 * MS * 3, 1, 2.36)

PLAIN = "energy 2.354 J per step: 690 W over 1000 steady steps (10.23 s), uncertain by 2.0 %"
SHORT = "400 ms of steady steps; 4 s are needed: run at least 42 steady steps"


@pytest.mark.parametrize(
    ("energy", "per_work", "line"),
    [
        (None, None, None),
        (
            ENERGY,
            None,
            PLAIN,
        ),
        (
            ENERGY,
            {"token": 2.354 / 2048, "gflop": 2.354 / 550},
            PLAIN + "; 1.149 mJ per token; 4.28 mJ per gflop",
        ),
        (
            StepEnergy(2.0, 0.01, 1380, 10, 20_000 * MS, 2),
            None,
            "energy 2 J per step: 1380 W of 2 GPUs over 10 steady steps (20 s), uncertain by 1.0 %",
        ),
        (
            StepEnergy(None, why=SHORT),
            {},
            f"energy per step is not known: {SHORT}",
        ),
    ],
)
def test_the_energy_in_one_line(
    energy: StepEnergy | None, per_work: dict[str, float] | None, line: str | None
) -> None:
    assert energy_line(energy, per_work) == line


def _state(part: Part, watts: float | None, mhz: float | None, celsius: float | None) -> StateOfGpu:
    slowed: dict[Reason, float] = {"power cap": 0.8, "thermal": 0.02} if part == "run" else {}
    return StateOfGpu(0, part, 0, 1, watts, "counter" if watts else None, mhz, celsius, slowed)


def test_window_and_run_stand_beside_each_other() -> None:
    states = [
        _state("window", 400, 1980, 40.2),
        _state("run", 640.2, 1580, 56),
        _state("steady", 700, 1480, 60),
    ]
    (line,) = state_lines(states, {0: "GPU 0"})
    assert line == (
        "GPU 0: 640 W, 1580 MHz, 56 C in the run; 400 W, 1980 MHz, 40.2 C in the window; "
        "slowed down by power cap in 80.0 %, thermal in 2.0 % of the run"
    )
    assert state_lines([_state("window", None, 1980, None)], {}) == ["GPU 0: 1980 MHz in the window"]
    assert state_lines([], {}) == []
