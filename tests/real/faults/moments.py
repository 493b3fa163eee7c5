"""When a run is in a phase: seen from its files alone, from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.real.faults.desk import Desk
from tests.real.faults.jobs import beats_of
from tests.real.faults.plan import Phase


def reached(desk: Desk, phase: Phase, trial: int, ranks: int) -> bool:
    """Whether the run has come to a phase of a trial; it may be past it already.

    Args:
        ranks: how many processes of the program a trial has.
    """
    run = desk.run
    return run is not None and _PHASES[phase](desk, run, f"{trial:03d}-", ranks)


def _event(run: Path, text: str) -> bool:
    return text.encode() in (run / "events.jsonl").read_bytes()


def _starting(desk: Desk, run: Path, trial: str, ranks: int) -> bool:
    return _event(run, f'"event":"queued","trial":"{trial}')


def _recording(desk: Desk, run: Path, trial: str, ranks: int) -> bool:
    return sum(one.trial.startswith(trial) for one in beats_of(desk.folder)) >= ranks


def _finalising(desk: Desk, run: Path, trial: str, ranks: int) -> bool:
    return sum(one.trial.startswith(trial) and one.ended for one in beats_of(desk.folder)) >= ranks


def _normalising(desk: Desk, run: Path, trial: str, ranks: int) -> bool:
    return any(run.glob(f"trials/{trial}*/exit.json"))


_PHASES: dict[Phase, Callable[[Desk, Path, str, int], bool]] = {
    "planned": lambda desk, run, trial, ranks: True,
    "starting": _starting,
    "recording": _recording,
    "finalising": _finalising,
    "normalising": _normalising,
    "reporting": lambda desk, run, trial, ranks: _event(run, '"event":"done"'),
}
