"""States of runs, as values."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from profrun.contract.paths import TrialPaths
from profrun.store.documents import Steps
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord

STEPS = Steps("optimizer", "cuda_event", 8, (1_200_000, 1_250_000, 1_300_000), ())


def state_of(*trials: TrialRecord) -> RunState:
    """A run that failed, with these trials."""
    return RunState(Run(Path("/r/t-1")), "t", "local", Path("/"), 5, "failed", False, trials)


def trial_record(index: int, collector: str, blocking: bool, factor: float, **more: object) -> TrialRecord:
    """A trial of variant base that finished; its steps took ``factor`` times as long."""
    slower = tuple(round(ns * factor) for ns in STEPS.measured)
    name = f"{index:03d}-base-{collector}{'-blocking' if blocking else ''}-r1"
    plain = TrialRecord(
        name,
        index,
        "base",
        collector,
        blocking,
        1,
        "finished",
        TrialPaths(Path("/r/t-1/trials") / name),
        attempt=1,
        steps=dataclasses.replace(STEPS, measured=slower),
    )
    return dataclasses.replace(plain, **more)  # type: ignore[arg-type]


STATE = state_of(
    trial_record(0, "none", False, 1, trace=Path("/r/t-1/trials/000/trace")),
    trial_record(1, "none", True, 1.5),
    trial_record(2, "torch", False, 1.1, normalise_error="it is torn"),
    trial_record(3, "torch", True, 2, state="failed", exit_code=3, reason="the command ended with code 3"),
    trial_record(4, "nsys", False, 1, state="planned", attempt=0, steps=Steps()),
)
