"""What the time of an improvement is enough for: ``Budget``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profrun.analysis.rules.experiments import Experiment
from profrun.contract.profilers import UNPROFILED
from profrun.contract.rounds import FIRST
from profrun.store.state import RunState

_TOGETHER_TRIALS = 12
"""Trials of the last stage that the budget keeps time for: four rounds of two, and two that are recorded. Of
a short budget it keeps half of what is left."""


@dataclass(frozen=True)
class Budget:
    """The time of an improvement, and what its trials probably take.

    Attributes:
        total_s: seconds for all stages.
        trials_s: seconds that each trial of the base without a profiler took; at least one.
        rounds: the most trials of each variant in a stage.
    """

    total_s: float
    trials_s: Sequence[float]
    rounds: int

    def choose(self, asked: Sequence[Experiment], spent_s: float) -> tuple[list[Experiment], dict[str, str]]:
        """The experiments for which there probably is time, at least one; name -> why another is not tried.

        The shortest trial of the base counts: the first one also reads files that no cache holds yet, and
        others may use the machine. If the trials then take longer, the rounds keep the time for a few
        experiments (``runner.round_time``). But nothing takes up an experiment again that is left out here.

        Args:
            asked: the largest promise first.
            spent_s: seconds that the stages took so far.
        """
        one_round = min(self.trials_s) * min(FIRST, self.rounds)
        count = max(1, int(self.for_rounds(spent_s) / one_round) - 1) if one_round else len(asked)
        short = f"the budget of {self.total_s / 60:.3g} min is too short for it"
        return list(asked[:count]), {one.name: short for one in asked[count:]}

    def for_rounds(self, spent_s: float) -> float:
        """Seconds for the rounds of experiments: at least half of what is left after ``spent_s``."""
        left = self.total_s - spent_s
        return max(1.0, left / 2, left - _TOGETHER_TRIALS * min(self.trials_s))

    def allows_all_rounds(self, spent_s: float) -> bool:
        """Whether there is time for all rounds of the last stage after ``spent_s``."""
        return spent_s + 2 * (self.rounds + 1) * max(self.trials_s) <= self.total_s


def trials_s(state: RunState) -> Sequence[float]:
    """Seconds that each trial of a run without a profiler took; 0 where none has ended."""
    took = [one.took_ns for one in state.trials if one.collector == UNPROFILED]
    return [ns / 1e9 for ns in took if ns is not None] or [0.0]
