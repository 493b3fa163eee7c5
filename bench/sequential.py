"""Whether stopping early keeps its promises, and how many trials it saves, in simulations.

    python bench/sequential.py [--runs 1000] [--write docs/statistics.md]

Each run has a base and 8 experiments with known effects, and at most 8 rounds. Trials differ by noise, and
the base's trials are shared by all experiments. A run is simulated round by round as profrun runs it: an
experiment that is decided has no more trials. The *fixed plan* runs all 72 trials of the same noise and then
judges by the t interval and Holm's procedure. ``--write`` replaces the section between its two markers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from phases import with_section

from profrun.analysis.compare.sequential import Decision, SequentialPlan, decide, holm, verdicts
from profrun.analysis.compare.stats import difference, p_value_of

BEGIN = "<!-- sequential: written by bench/sequential.py -->"
END = "<!-- sequential: end -->"

NOTHING = (0.0,) * 8
WIDE = (-0.30, -0.10, -0.05, -0.02, 0.0, 0.0, 0.02, 0.10)
USUAL = (-0.20, -0.05, 0.0, 0.0, 0.0, 0.0, 0.03, 0.10)
ROUNDS, EXPERIMENTS = 8, 8
TRIALS = ROUNDS * (EXPERIMENTS + 1)
HALF = ROUNDS // 2


@dataclass(frozen=True)
class World:
    """What is true in a simulation.

    Attributes:
        effects: true change of the step time of each experiment.
        spread: standard deviation between trials of an experiment. base: the same of the base.
        heavy: noise is Student's t with 3 degrees of freedom, of the same standard deviation.
        drift: what is added to the step time, evenly, from the first trial to the last of a full run.
    """

    effects: tuple[float, ...]
    spread: float
    base: float
    heavy: bool = False
    drift: float = 0.0


@dataclass(frozen=True)
class OtherShares(SequentialPlan):
    """A plan that spends the error in other parts: ``weights``, one per look."""

    weights: tuple[float, ...] = ()

    def share(self, look: int) -> float:
        """As of the plan."""
        return self.weights[look - 1] / sum(self.weights)


PLAN = SequentialPlan(rounds=ROUNDS, first=3, worth=0.02, experiments=EXPERIMENTS)
PLANS = {
    "equal": PLAN,
    "growing: 1 to 6": OtherShares(ROUNDS, 3, 0.02, EXPERIMENTS, weights=(1, 2, 3, 4, 5, 6)),
    "half for the last": OtherShares(ROUNDS, 3, 0.02, EXPERIMENTS, weights=(1, 1, 1, 1, 1, 5)),
    "equal, first look after round 2": replace(PLAN, first=2),
    "equal, first look after round 4": replace(PLAN, first=4),
    "equal, never *futile*": replace(PLAN, least_chance=0.0),
}


@dataclass(frozen=True)
class Outcome:
    """One run: decisions and last words, trials used, and what fixed plans of 8 and of 4 rounds prove."""

    decisions: list[Decision]
    words: list[str]
    trials: int
    fixed: list[bool]
    half: list[bool]


def simulated(world: World, plan: SequentialPlan, rng: np.random.Generator) -> Outcome:
    """One run, round by round, and the fixed plans on the same noise."""
    shape = (ROUNDS, len(world.effects) + 1)
    noise = rng.standard_t(3, shape) / math.sqrt(3) if world.heavy else rng.normal(0, 1, shape)
    levels = noise * [world.base, *[world.spread] * len(world.effects)]
    levels += np.log1p([0.0, *world.effects])
    times: list[list[list[float]]] = [[] for _ in range(shape[1])]  # of base and experiments, by round
    order: list[list[float]] = [[] for _ in times]
    decisions = [Decision("go on") for _ in world.effects]
    trials = 0
    for row in levels:
        running = [number for number, one in enumerate(decisions, 1) if one.state == "go on"]
        if not running:
            break
        for number in (0, *running):
            times[number].append([math.exp(row[number] + world.drift * trials / TRIALS)])
            order[number].append(float(trials))
            trials += 1
        for number in running:
            moments = order[0][: len(order[number])], order[number]
            decisions[number - 1] = decide(times[0], times[number], moments, plan)
    fixed, half = (holm(_fixed(levels, rounds, world.drift), plan.alpha) for rounds in (ROUNDS, HALF))
    return Outcome(decisions, list(verdicts(decisions, plan)), trials, fixed, half)


def _fixed(levels: np.ndarray, rounds: int, drift: float) -> list[float]:
    """p values of the experiments after so many full rounds."""
    places = np.arange(levels.size, dtype=np.float64).reshape(levels.shape)[:rounds]
    times = np.exp(levels[:rounds] + drift * places / TRIALS)[:, :, None]
    return [
        p_value_of(
            difference(
                times[:, 0].tolist(),
                times[:, number].tolist(),
                order=(places[:, 0].tolist(), places[:, number].tolist()),
                evenly=False,
            )
        )
        for number in range(1, levels.shape[1])
    ]


@dataclass(frozen=True)
class Summary:
    """Shares over many runs of one world.

    Attributes:
        false_runs: runs in which an experiment is called faster or slower and is not. false_experiments:
            experiments without effect that are called so. fixed_false: runs, by the fixed plan.
        held: of the experiment where it is least: how often the interval at the end holds the true ratio.
        missed: experiments with a gain of at least ``worth`` of which one is excluded.
        found, fixed, half: by experiment, how often the right word is proven.
        trials: mean number of trials. rounds: by experiment, the mean number of rounds.
        ends: how experiments without effect end, in %: no effect, no gain, futile, undecided.
    """

    false_runs: float
    false_experiments: float
    fixed_false: float
    held: float
    missed: float
    found: list[float]
    fixed: list[float]
    half: list[float]
    trials: float
    rounds: list[float]
    ends: str


def _false(word: str, effect: float) -> bool:
    return (word == "faster" and effect >= 0) or (word == "slower" and effect <= 0)


def summary(job: tuple[World, SequentialPlan, int, int]) -> Summary:
    """Simulate a world: ``job`` is world, plan, number of runs, seed."""
    world, plan, runs, seed = job
    rng = np.random.default_rng(seed)
    outcomes = [simulated(world, plan, rng) for _ in range(runs)]
    effects = list(world.effects)
    false = [[_false(w, e) for w, e in zip(one.words, effects, strict=True)] for one in outcomes]
    nulls = [number for number, effect in enumerate(effects) if effect == 0]
    gains = [number for number, effect in enumerate(effects) if effect <= -plan.worth]
    held = [[_holds(d, e) for d, e in zip(one.decisions, effects, strict=True)] for one in outcomes]
    right = [["faster" if e < 0 else "slower" for e in effects] for _ in outcomes]
    missed = [one.words[number] in ("no gain", "no effect") for one in outcomes for number in gains]
    return Summary(
        false_runs=float(np.mean([any(one) for one in false])),
        false_experiments=float(np.mean([one[number] for one in false for number in nulls])),
        fixed_false=float(np.mean([any(one.fixed[number] for number in nulls) for one in outcomes])),
        held=float(np.mean(held, axis=0).min()),
        missed=float(np.mean(missed)) if missed else 0.0,
        found=np.mean(
            [
                [w == r for w, r in zip(o.words, rs, strict=True)]
                for o, rs in zip(outcomes, right, strict=True)
            ],
            axis=0,
        ).tolist(),
        fixed=np.mean([one.fixed for one in outcomes], axis=0).tolist(),
        half=np.mean([one.half for one in outcomes], axis=0).tolist(),
        trials=float(np.mean([one.trials for one in outcomes])),
        rounds=np.mean([[d.rounds for d in one.decisions] for one in outcomes], axis=0).tolist(),
        ends=_ends([one.words[number] for one in outcomes for number in nulls]),
    )


def _ends(words: Sequence[str]) -> str:
    shares = (words.count(word) / len(words) for word in ("no effect", "no gain", "futile", "undecided"))
    return " / ".join(f"{100 * share:.0f}" for share in shares)


def _holds(decision: Decision, effect: float) -> bool:
    assert decision.interval is not None
    return decision.interval[0] <= 1 + effect <= decision.interval[1]


def noises(effects: tuple[float, ...]) -> dict[str, World]:
    """Worlds with these effects, by the name of their noise."""
    plain = {f"{sd:.1%}": World(effects, sd, sd) for sd in (0.002, 0.005, 0.01, 0.02)}
    return plain | {
        "0.5 %, heavy tails": World(effects, 0.005, 0.005, heavy=True),
        "2 %, heavy tails": World(effects, 0.02, 0.02, heavy=True),
        "0.2 %, drift 2 %": World(effects, 0.002, 0.002, drift=0.02),
        "1 %, drift 2 %": World(effects, 0.01, 0.01, drift=0.02),
    }


UNEVEN = {
    "0.2 %, the base 2 %": World(NOTHING, 0.002, 0.02),
    "2 %, the base 0.2 %": World(NOTHING, 0.02, 0.002),
}


def error_rows(runs: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Markdown rows: nothing has an effect."""
    yield (
        "| noise | a false word in a run | per experiment | fixed plan: a false word in a run "
        "| interval holds the truth, at least | trials of 72 | no effect / no gain / futile / undecided (%) |"
    )
    yield "|---|---:|---:|---:|---:|---:|---|"
    worlds = noises(NOTHING) | UNEVEN
    jobs = [(world, PLAN, runs, seed) for seed, world in enumerate(worlds.values())]
    for name, one in zip(worlds, pool.map(summary, jobs), strict=True):
        yield (
            f"| {name} | {one.false_runs:.1%} | {one.false_experiments:.2%} | {one.fixed_false:.1%} "
            f"| {one.held:.1%} | {one.trials:.0f} | {one.ends} |"
        )


def _effects(world: World, values: Sequence[float]) -> str:
    return " / ".join(f"{v:.0%}" for v, e in zip(values, world.effects, strict=True) if e < 0).replace(
        "%", ""
    )


def mix_rows(effects: tuple[float, ...], runs: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Markdown rows: some experiments have an effect."""
    names = " / ".join(f"{-e:.0%}" for e in effects if e < 0)
    yield (
        f"| noise | trials of 72 | saved | rounds of each experiment | found of gains of {names} (%) "
        "| fixed plan "
        "| fixed plan of 4 rounds, 36 trials | a false word in a run | interval holds the truth, at least "
        "| a true gain excluded |"
    )
    yield "|---|---:|---:|---|---|---|---|---:|---:|---:|"
    worlds = noises(effects)
    jobs = [(world, PLAN, runs, seed) for seed, world in enumerate(worlds.values(), 100)]
    for (name, world), one in zip(worlds.items(), pool.map(summary, jobs), strict=True):
        rounds = " ".join(f"{value:.1f}" for value in one.rounds)
        shares = " | ".join(_effects(world, values) for values in (one.found, one.fixed, one.half))
        yield (
            f"| {name} | {one.trials:.0f} | {1 - one.trials / TRIALS:.0%} | {rounds} | {shares} "
            f"| {one.false_runs:.1%} | {one.held:.1%} | {one.missed:.1%} |"
        )


def share_rows(runs: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Markdown rows: other ways to spend the error, on the wide mix."""
    yield "| parts of the error | noise | trials of 72 | found of gains of 30% / 10% / 5% / 2% (%) |"
    yield "|---|---:|---:|---|"
    for spread in (0.005, 0.01):
        world = World(WIDE, spread, spread)
        jobs = [(world, plan, runs, 200) for plan in PLANS.values()]
        for name, one in zip(PLANS, pool.map(summary, jobs), strict=True):
            yield f"| {name} | {spread:.1%} | {one.trials:.0f} | {_effects(world, one.found)} |"


SECTION = """{begin}
## Stopping early

`profrun improve` runs trials in rounds: one of the base, then one of each experiment that is still
undecided. After round 3 and each later one it looks, and an experiment that is decided gets no more trials
(`analysis/compare/sequential.py` names the sources and all states):

* *faster* or *slower*: it is proven that the step time differs, in this direction.
* *no effect*: a gain of 2 % (`worth`) and a loss of 2 % are excluded. *no gain*: only the gain is.
* *futile*: a gain of 2 % is not excluded, but the rounds that are left would prove it (or the gain that was
  measured, if that is greater) with a probability below 5 %. This is asked from round 4 on.
* *undecided*: the rounds are used up.

With `narrow` of a job, as in the last stage of `profrun improve`, what is proven goes on until half of its
interval is at most this part of the measured gain. That costs no error: the intervals of all looks hold
together, so one may stop at any of them for any reason.

Who looks at an ordinary interval after each round, and at 8 experiments, finds a difference by chance much
more often than in 5 % of all runs. So each look may spend 1/6 of the error (8 rounds have 6 looks), and each
experiment 1/8 of that (at the end Holm's procedure allows a little more). In at most 5 % of all runs is any
word *faster* or *slower* false. The interval that is shown is that of one experiment: it holds the true
ratio of at least 95 % of all experiments, whenever and why ever they stopped. These tables are written by

    python bench/sequential.py --runs {runs} --write docs/statistics.md

{runs} runs per row, with 8 experiments and at most 8 rounds. *Noise* is the standard deviation between
trials. *Fixed plan*: all 72 trials of the same noise, judged at the end by the t interval and Holm's
procedure, with the same promise of 5 %. A share near 5 % of {runs} is known to about {error:.1f} points.

No experiment has an effect:

{errors}

Wide mix: the step times change by -30, -10, -5, -2, 0, 0, +2 and +10 %. *Found*: proven to be faster. *A
true gain excluded*: of the experiments with a gain of 2 % or more, the share that ends as *no effect* or *no
gain* (at most 5 % are promised).

{wide}

Usual mix: -20, -5, 0, 0, 0, 0, +3 and +10 %. Most changes do nothing, one or two help, some hurt.

{usual}

* Where trials differ by 0.5 % or less, stopping early saves half of the trials of both mixes and finds what
  the fixed plan finds. A fixed plan of 4 rounds costs as much and finds less. Trials of a loop that is bound
  by the GPU differed by 0.25 to 0.45 % on H200s (the recordings above).
* Where they differ by 1 % or 2 %, as trials of programs with short steps do whose GPU waits for the host
  (three trials each of two such programs on an H200: 1.2 and 3.1 %; `tests/data/h200/transformer`), it saves
  44 to 50 %. It costs power there: a gain that is as small as `worth` is found in 51 % of all runs instead
  of 86 % at a noise of 1 %, and a gain of 5 % in 73 % instead of 96 % at a noise of 2 %. Most experiments
  without effect end as *futile*: a gain of 2 % is not excluded, and more rounds or a greater `worth` are
  needed to know more.
* Where nothing has an effect, it saves 60 % at a noise of 0.2 %, and about half otherwise.
* Fewer false words are said than promised: the bound adds the errors of all looks and experiments as if they
  never came together. This leaves room for noise that is not normal, and for sides that scatter differently:
  with three trials per side, one of which scatters 10 times as much, Welch's t at a level of 0.1 % is wrong
  up to 4 times as often as it says. Over all looks the promise is kept (the last two rows of the first
  table).
* The ratio at which an experiment stops tends to be too far from 1. Its interval allows for that.
* Drift is fitted over the number of the trial in the whole run. `compare` fits it over the places of the
  trials of two sides alone, as if the experiment were run in the middle between two trials of the base. The
  last of 8 experiments is 8 trials behind its base and 1 ahead of the next. A drift of 2 % over 72 trials
  would be taken for a difference of 0.1 % there, half of the noise in the first row.

How the error is spent over the looks, on the wide mix:

{shares}

Equal parts save the most. To keep half of the error for the last look finds more of the gains that are as
small as `worth` where the noise is large, and costs two trials. With two trials per side there is one degree
of freedom at worst, so hardly anything is decided after round 2, and what that look spends is lost: one
trial is saved. *Never futile*: experiments go on where a gain will hardly be proven in the rounds that are
left.
{end}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the section, or write it into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(2) as pool:
        section = SECTION.format(
            begin=BEGIN,
            end=END,
            runs=options.runs,
            error=100 * math.sqrt(0.05 * 0.95 / options.runs),
            errors="\n".join(error_rows(options.runs, pool)),
            wide="\n".join(mix_rows(WIDE, options.runs, pool)),
            usual="\n".join(mix_rows(USUAL, options.runs, pool)),
            shares="\n".join(share_rows(options.runs, pool)),
        )
    print(section)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(with_section(page, section, BEGIN, END), encoding="utf-8")


if __name__ == "__main__":
    main()
