"""Whether an experiment may stop: intervals and p values that hold however often one looks.

Trials come in rounds: one of the base, then one of each experiment that is still undecided. After round
``first`` and each later one profrun looks at the trials, and stops an experiment that is decided. An ordinary
95 % interval would be wrong in one of 20 cases *at each look*. ``decide`` keeps the rate over all looks:

* Repeated confidence intervals (Jennison & Turnbull, "Repeated confidence intervals for group sequential
  clinical trials", Controlled Clinical Trials 5, 1984; "Interim analyses: the repeated confidence interval
  approach", JRSS B 51, 1989): one interval per look, so wide that all of them hold the truth together in 95
  of 100 experiments. So the interval is valid whenever and why ever one stops, and so is their intersection.
* The error alpha is spent over the looks (Lan & DeMets, "Discrete sequential boundaries for clinical trials",
  Biometrika 70, 1983), the same part at each, and added by the inequality of Bonferroni. This needs nothing
  but the t interval of each look. The usual boundaries assume a known correlation between the looks and many
  trials; here there are three to ten. ``bench/sequential.py`` compares other parts (docs/statistics.md).
* Of m experiments one is proven during the run at alpha / m (Bonferroni), so none that is proven is taken
  back. The last word is that of Holm ("A simple sequentially rejective multiple test procedure", Scandinavian
  Journal of Statistics 6, 1979): ``verdicts``. At most alpha of all runs call an experiment without effect
  faster or slower, whatever is true of the others and however they share the noise of the base.

What is proven may go on so that its size is known better (``narrow``): the intervals of all looks hold.
Stopping without proof costs no part of alpha, because it can prove nothing falsely. One stops where a gain is
excluded, and from half of the rounds on where it is futile to go on (Lan, Simon & Halperin, "Stochastically
curtailed tests in long-term clinical trials", Communications in Statistics C 1, 1982).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from profrun.analysis.compare.log_difference import LogDifference
from profrun.analysis.compare.stats import MIN_TRIALS, difference, p_value_of
from profrun.analysis.compare.student_t import t_quantile
from profrun.contract.rounds import FIRST

Direction = Literal["faster", "slower"]
State = Literal["go on", "faster", "slower", "no effect", "no gain", "futile", "undecided"]
"""What is known of an experiment.

* ``go on``: not decided, and rounds are left. All other states are final.
* ``faster``, ``slower``: proven at alpha / m.
* ``no effect``: the interval excludes a gain of ``worth`` and a loss of ``worth``, whether or not a smaller
  difference is proven (a test of equivalence).
* ``no gain``: it excludes a gain of ``worth``; whether the experiment is slower is open.
* ``futile``: a gain of ``worth`` is not excluded, but the rounds that are left would hardly prove it.
* ``undecided``: all rounds were run.
"""


@dataclass(frozen=True)
class SequentialPlan:
    """What is fixed before the first trial.

    Attributes:
        rounds: most rounds.
        first: round of the first look; at least 2.
        worth: the smallest gain that matters, as a part of the base's step time: 0.02 is 2 %.
        experiments: how many are compared with the base.
        least_chance: from half of the rounds on, an experiment goes on where a gain will be proven after the
            last round with at least this probability.
        alpha: the share of runs in which any word ``faster`` or ``slower`` may be false, and of the
            experiments whose interval may miss the truth.
        narrow: what is proven goes on until half of its interval is at most this part of the difference: 0.2
            is a fifth of the gain. None: it stops when it is proven.

    Raises:
        ValueError: a number is out of range.
    """

    rounds: int
    first: int = FIRST
    worth: float = 0.02
    experiments: int = 1
    alpha: float = 0.05
    least_chance: float = 0.05
    narrow: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not MIN_TRIALS <= self.first <= self.rounds:
            raise ValueError(f"the first look is after round {MIN_TRIALS} to {self.rounds}")
        if not (0 < self.worth < 1 and 0 < self.alpha < 1 and self.experiments >= 1):
            raise ValueError("worth and alpha are between 0 and 1, and there is at least one experiment")
        if self.narrow is not None and self.narrow <= 0:
            raise ValueError("narrow is above 0")

    @property
    def looks(self) -> int:
        """How many looks there are at most."""
        return self.rounds - self.first + 1

    def share(self, look: int) -> float:  # bench/sequential.py has shares that depend on it
        """The part of the error that a look, counted from 1, may spend; all parts together are 1."""
        return 1 / self.looks


@dataclass(frozen=True)
class Decision:
    """What the trials so far say of one experiment.

    Attributes:
        state: see ``State``.
        looks: how many looks decided; 0 before round ``first``.
        rounds: the round of the last of them; later trials do not count. 0 before round ``first``.
        ratio: step time of the experiment to that of the base; None before round ``first``. A ratio at which
            one stops early tends to be too far from 1; the interval allows for that.
        interval: of the ratio, at level 1 - alpha for this experiment alone: what the intervals of all looks
            have in common, or that of the last look where they have nothing in common. None before ``first``.
        p_value: of "both take equally long", valid at this look: the least over the looks of p / share.
        direction: which of both that p value speaks for; None before round ``first``.
    """

    state: State
    looks: int = 0
    rounds: int = 0
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float = 1.0
    direction: Direction | None = None


def decide(
    base: Sequence[Sequence[float]],
    experiment: Sequence[Sequence[float]],
    order: tuple[Sequence[float], Sequence[float]] | None,
    plan: SequentialPlan,
) -> Decision:
    """What the trials say at the first look that decides, or at the last one.

    More trials never change a decision that was final, because later looks are not taken.

    Args:
        base, experiment: for each round the durations of the steps of its trial, in one unit, all above 0.
            Rounds that only one of them has do not count, nor do rounds behind the plan's last.
        order: for each trial when it was run, in any unit in which time passes evenly: seconds, or the number
            of the trial in the whole run. None: not known, so drift is not taken out.

    Raises:
        ValueError: a trial has no step, or a duration is not above 0.
    """
    decision = Decision("go on")
    for decision in _looks(base, experiment, order, plan):
        if decision.state != "go on":
            break
    return decision


def _looks(
    base: Sequence[Sequence[float]],
    experiment: Sequence[Sequence[float]],
    order: tuple[Sequence[float], Sequence[float]] | None,
    plan: SequentialPlan,
) -> Iterator[Decision]:
    """What each look says, with what the looks before it said."""
    low, high, p_value = 0.0, math.inf, 1.0
    direction: Direction | None = None
    for rounds in range(plan.first, min(len(base), len(experiment), plan.rounds) + 1):
        look = rounds - plan.first + 1
        moments = None if order is None else [side[:rounds] for side in order]
        found = difference(base[:rounds], experiment[:rounds], order=moments, evenly=False)
        half = t_quantile(1 - plan.alpha * plan.share(look) / 2, found.freedom) * found.se
        ends = math.exp(found.value - half), math.exp(found.value + half)
        low, high = max(low, ends[0]), min(high, ends[1])
        spent = min(1.0, p_value_of(found) / plan.share(look))
        if direction is None or spent < p_value:
            p_value, direction = spent, "slower" if found.value > 0 else "faster"
        interval = (low, high) if low <= high else ends
        ratio = math.exp(found.value)
        state = _state(interval, p_value, direction, plan)
        if state == direction and rounds < plan.rounds and not _is_narrow(ratio, interval, plan.narrow):
            state = "go on"
        elif state == "go on" and rounds == plan.rounds:
            state = "undecided"
        elif state == "go on" and 2 * rounds >= plan.rounds:
            state = "futile" if _chance(found, rounds, plan) < plan.least_chance else state
        yield Decision(state, look, rounds, ratio, interval, p_value, direction)


def _is_narrow(ratio: float, interval: tuple[float, float], narrow: float | None) -> bool:
    """Whether half of the interval is small enough beside the difference that was measured."""
    return narrow is None or (interval[1] - interval[0]) / 2 <= narrow * abs(1 - ratio)


def _state(
    interval: tuple[float, float], p_value: float, direction: Direction, plan: SequentialPlan
) -> State:
    """What is known, with whatever is left to run."""
    no_gain, no_loss = interval[0] > 1 - plan.worth, interval[1] < 1 + plan.worth
    if no_gain and no_loss:
        return "no effect"
    if p_value <= plan.alpha / plan.experiments:
        return direction
    return "no gain" if no_gain else "go on"


def _chance(found: LogDifference, rounds: int, plan: SequentialPlan) -> float:
    """Conditional power: how probably the trials after the last round prove a gain.

    The gain in the rounds that are left is taken to be ``worth``, or the one that was measured, if it is
    greater. Trials are taken to scatter as they did. The sum of the logarithms is then normal.
    """
    left = 1 - rounds / plan.rounds
    value = found.value * (1 - left) + min(found.value, math.log1p(-plan.worth)) * left
    se = found.se * math.sqrt(1 - left)
    freedom = found.freedom * (plan.rounds - 1) / (rounds - 1)
    level = plan.alpha * plan.share(plan.looks) / plan.experiments
    beyond = (value + t_quantile(1 - level / 2, freedom) * se) / (se * math.sqrt(left))
    return 0.5 * math.erfc(beyond / math.sqrt(2))


def holm(p_values: Sequence[float], alpha: float = 0.05) -> list[bool]:
    """Which of these hypotheses are rejected; in at most ``alpha`` of all cases is any of them true.

    The least p value is compared with alpha / m, the next with alpha / (m - 1), and so on, up to the first
    that is greater. Nothing is assumed of how the tests depend on each other (Holm 1979).
    """
    rejected = [False] * len(p_values)
    for passed, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > alpha / (len(p_values) - passed):
            break
        rejected[place] = True
    return rejected


def verdicts(decisions: Sequence[Decision], plan: SequentialPlan) -> list[State]:
    """The state of each experiment after all are over: what Holm's procedure proves in addition is proven.

    ``no effect`` remains, even where a difference is proven: it is too small to matter. An experiment that
    could not be run has no decision; it counts as one that proves nothing.

    Raises:
        ValueError: there are more decisions than experiments in the plan.
    """
    missing = plan.experiments - len(decisions)
    if missing < 0:
        raise ValueError(f"{len(decisions)} decisions of {plan.experiments} experiments")
    proven = holm([*(one.p_value for one in decisions), *[1.0] * missing], plan.alpha)
    return [_final(one, is_proven) for one, is_proven in zip(decisions, proven, strict=False)]


def _final(decision: Decision, is_proven: bool) -> State:
    if not is_proven or decision.direction is None or decision.state == "no effect":
        return decision.state
    if decision.state == "no gain" and decision.direction == "faster":
        return "no gain"  # the looks contradict each other
    return decision.direction
