"""Simulated runs with phases and drift: false alarms, coverage, power and width of three estimators.

Used by ``bench/intervals.py``, which writes docs/statistics.md.

A run holds n trials of each side, run in turns: A B A B. A trial has 60 to 600 steps. In the worlds with
phases its first 6 to 30 steps are 12 % faster (a GPU that boosts until its power cap holds); their number is
another one in each trial. Steps scatter by 0.3 % and resemble their neighbours (AR(1) with rho = 0.5). Each
trial has a level of its own. Drift is shared by both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from resampling import Interval, Times, resampled_interval

from profrun.analysis.compare.log_difference import log_difference
from profrun.analysis.compare.stats import estimate
from profrun.analysis.compare.student_t import t_quantile
from profrun.analysis.counted_steps import Ints, counted
from profrun.analysis.step_time import Floats

BOOST = 0.88
WINDOW = (10, 15)
"""Places of the steps that the schedule records: warm-up first, then five."""
POOL = 300
"""Trials that are made for each kind; a run draws from them."""


@dataclass(frozen=True)
class World:
    """What is true in a simulated run.

    Attributes:
        name: what is told of it. between: standard deviation of the levels of trials.
        boost: whether the first steps are faster. drift: its kind. size: of the drift, as a share.
        rho: how much a step resembles its neighbour. heavy: levels of trials with heavy tails (Student, 3).
    """

    name: str
    between: float = 0.003
    boost: bool = False
    drift: str = "none"
    size: float = 0.0
    rho: float = 0.5
    within: float = 0.003
    heavy: bool = False


WORLDS = (
    World("no drift, no phases"),
    World("trials with heavy tails", heavy=True),
    World("steps scatter by 3 %, rho 0.9", rho=0.9, within=0.03),
    World("boost", boost=True),
    World("boost, trials differ by 0.1 %", boost=True, between=0.001),
    World("boost, drift 1 %", boost=True, drift="linear", size=0.01),
    World("drift 1 %", drift="linear", size=0.01),
    World("drift 5 %", drift="linear", size=0.05),
    World("random walk, 2 %", drift="walk", size=0.02),
    World("warms up by 3 %", drift="warm", size=0.03),
    World("load comes and goes, 2 %", drift="load", size=0.02),
)
REPEATS = (3, 5, 10)
FOUND: dict[int, float] = {3: 1.03, 5: 1.01, 10: 1.01}
"""Repeats -> the true ratio that shall be found."""


@dataclass(frozen=True)
class Trial:
    """The steps of a simulated trial: those of the window, and those of the phase that is found steady."""

    window: Floats
    steady: Floats


@lru_cache
def pool(boost: bool, rho: float, within: float) -> tuple[Trial, ...]:
    """Trials of level 1."""
    rng = np.random.default_rng(7)
    return tuple(_trial(rng, rho, within, boost=boost) for _ in range(POOL))


def _trial(rng: np.random.Generator, rho: float, within: float, *, boost: bool) -> Trial:
    count = int(rng.integers(60, 601))
    noise = rng.normal(0, within, count)
    for place in range(1, count):
        noise[place] = rho * noise[place - 1] + math.sqrt(1 - rho**2) * noise[place]
    steps = np.exp(noise)
    if boost:
        steps[: int(rng.integers(6, 31))] *= BOOST
    window = np.zeros(count, dtype=np.bool_)
    window[slice(*WINDOW)] = True
    durs: Ints = np.round(steps * 3e6).astype(np.int64)
    return Trial(durs[window] / 3e6, durs[counted(durs, window, "steady")] / 3e6)


def drift(world: World, trials: int, rng: np.random.Generator) -> Floats:
    """Log levels of the trials of a run in their order, both sides together, shape (trials,)."""
    place = np.arange(trials) / (trials - 1)
    if world.drift == "linear":
        return place * world.size
    if world.drift == "walk":
        return np.cumsum(rng.normal(0, world.size / math.sqrt(trials), trials))
    if world.drift == "warm":
        return world.size * np.exp(-5 * place)
    if world.drift == "load":
        return world.size * np.sin(2 * np.pi * (place / rng.uniform(0.7, 2.0) + rng.uniform()))
    return np.zeros(trials)


Run = tuple[list[Trial], list[Trial], list[Floats]]


def run(world: World, repeats: int, truth: float, rng: np.random.Generator) -> Run:
    """Trials of both sides, and the level of each."""
    made = pool(world.boost, world.rho, world.within)
    trials = [made[place] for place in rng.integers(0, POOL, 2 * repeats)]
    own = rng.standard_t(3, 2 * repeats) / math.sqrt(3) if world.heavy else rng.normal(0, 1, 2 * repeats)
    levels = np.exp(drift(world, 2 * repeats, rng) + world.between * own)
    return trials[::2], trials[1::2], [levels[::2], levels[1::2] * truth]


def intervals(found: Run, seed: int) -> tuple[Interval, Interval, Interval]:
    """Of the window by resampling (profrun 0.1), of the steady steps, and of these with drift taken out."""
    a, b, levels = found
    old = resampled_interval(
        _times([one.window for one in a], levels[0]), _times([one.window for one in b], levels[1]), seed=seed
    )
    sides = _times([one.steady for one in a], levels[0]), _times([one.steady for one in b], levels[1])
    plain = estimate(*sides)
    turns = estimate(*sides, order=(range(0, 2 * len(a), 2), range(1, 2 * len(a), 2)))
    assert plain.ci95 is not None
    assert turns.ci95 is not None
    return old, (plain.ratio, *plain.ci95), (turns.ratio, *turns.ci95)


def _times(trials: Sequence[Floats], levels: Floats) -> Times:
    return [trial * level for trial, level in zip(trials, levels, strict=True)]  # type: ignore[misc]


HEAD = (
    "| | repeats | true change | 0.1: false alarms | found | +- | steady: false alarms | found | +- "
    "| today: false alarms | coverage | found | +- |"
)


def phase_rows(runs: int) -> Iterator[str]:
    """Markdown rows: each world at 3, 5 and 10 repeats."""
    yield HEAD
    yield "|---|" + "---:|" * 12
    for number, world in enumerate(WORLDS):
        for repeats in REPEATS:
            rng = np.random.default_rng((number, repeats))
            truth = FOUND[repeats]
            same = [intervals(run(world, repeats, 1.0, rng), seed) for seed in range(runs)]
            other = [intervals(run(world, repeats, truth, rng), seed) for seed in range(runs // 2)]
            cells = []
            for way in range(3):
                alarms = float(np.mean([not one[way][1] <= 1 <= one[way][2] for one in same]))
                power = float(np.mean([one[way][1] > 1 for one in other]))
                cover = float(np.mean([one[way][1] <= truth <= one[way][2] for one in other]))
                half = float(np.median([math.sqrt(one[way][2] / one[way][1]) - 1 for one in same]))
                cells += [
                    f"{alarms:.1%}",
                    *([f"{cover:.1%}"] if way == 2 else []),
                    f"{power:.0%}",
                    f"{half:.2%}",
                ]
            yield f"| {world.name} | {repeats} | {truth - 1:.0%} | {' | '.join(cells)} |"


PAIRING = (
    ("no drift", "none", 0.0),
    ("drift 1 %", "linear", 0.01),
    ("drift 5 %", "linear", 0.05),
    ("random walk, 2 %", "walk", 0.02),
    ("warms up by 3 %", "warm", 0.03),
    ("load comes and goes, 2 %", "load", 0.02),
)


def pairing_rows(runs: int) -> Iterator[str]:
    """Markdown rows: three ways to use that the trials were run in turns, on one number per trial."""
    yield (
        "| | repeats | each side by itself: false alarms | +- | differences of pairs: false alarms | +- "
        "| trend: false alarms | +- |"
    )
    yield "|---|" + "---:|" * 7
    for number, (name, kind, size) in enumerate(PAIRING):
        world = World(name, 0.005, drift=kind, size=size)
        for repeats in (2, 3, 4, 5, 10):
            rng = np.random.default_rng((number, repeats, 1))
            found: list[list[tuple[float, float]]] = [[], [], []]
            for _ in range(runs):
                levels = drift(world, 2 * repeats, rng) + rng.normal(0, world.between, 2 * repeats)
                sides = levels[::2], levels[1::2]
                order = range(0, 2 * repeats, 2), range(1, 2 * repeats, 2)
                apart = log_difference(sides)
                trend = log_difference(sides, order=order, trend_from=2)
                found[0].append((apart.value, t_quantile(0.975, round(apart.freedom, 2)) * apart.se))
                found[1].append(_of_pairs(sides[1] - sides[0]))
                found[2].append((trend.value, t_quantile(0.975, round(trend.freedom, 2)) * trend.se))
            cells = []
            for way in found:
                cells.append(f"{np.mean([abs(value) > half for value, half in way]):.1%}")
                cells.append(f"{np.median([half for _, half in way]):.2%}")
            yield f"| {name} | {repeats} | {' | '.join(cells)} |"


def _of_pairs(differences: Floats) -> tuple[float, float]:
    count = len(differences)
    half = t_quantile(0.975, count - 1) * float(differences.std(ddof=1)) / math.sqrt(count)
    return float(differences.mean()), half
