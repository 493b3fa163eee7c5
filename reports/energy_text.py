"""What a step costs in energy, and the state of the GPUs, as text for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import counted, energy_text, percent_text, rate_text, time_text

if TYPE_CHECKING:
    from profrun.analysis.trace.energy import StepEnergy
    from profrun.analysis.trace.gpu_state import Part, StateOfGpu

PARTS: dict[Part, str] = {"run": "in the run", "window": "in the window"}
"""Parts of a run that are told, in their order, and their words."""


def energy_line(energy: StepEnergy | None, per_work: Mapping[str, float] | None = None) -> str | None:
    """``energy 2.35 J per step: 690 W over 1000 steady steps, uncertain by 2.0 %; 1.15 mJ per token``.

    Args:
        per_work: unit of work ('token', 'gflop') -> energy per unit, J.

    Returns:
        Why the energy is not known where GPUs were sampled; None where they were not.
    """
    if energy is None:
        return None
    if energy.joules is None:
        return f"energy per step is not known: {energy.why}"
    boards = f" of {energy.gpus} GPUs" if energy.gpus > 1 else ""
    text = (
        f"energy {energy_text(energy.joules)} per step: {rate_text(energy.watts, 'W')}{boards} over "
        f"{counted(energy.steps, 'steady step')} ({time_text(energy.length_ns)}), "
        f"uncertain by {percent_text(energy.resolution)}"
    )
    return "; ".join([text, *(f"{energy_text(joules)} per {of}" for of, joules in (per_work or {}).items())])


def state_lines(states: Sequence[StateOfGpu], gpus: Mapping[int, str]) -> list[str]:
    """``GPU 0: 690 W, 1480 MHz, 61 C in the run; ...; slowed down by power cap in 80.0 % of the run``.

    Args:
        gpus: device id -> what the GPU is called.
    """
    found = []
    for device in dict.fromkeys(one.device for one in states):
        mine = {one.part: one for one in states if one.device == device}
        told = [
            f"{means} {words}"
            for part, words in PARTS.items()
            if part in mine and (means := _means(mine[part]))
        ]
        run = mine.get("run")
        slowed = [f"{name} in {percent_text(share)}" for name, share in run.slowed.items()] if run else []
        if slowed:
            told.append(f"slowed down by {', '.join(slowed)} of the run")
        if told:
            found.append(f"{gpus.get(device, f'GPU {device}')}: {'; '.join(told)}")
    return found


def _means(state: StateOfGpu) -> str:
    values = (
        (state.watts, "W"),
        (state.sm_mhz, "MHz"),
        (state.celsius, "C"),
    )
    return ", ".join(rate_text(value, unit) for value, unit in values if value is not None)
