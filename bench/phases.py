"""How often step times without phases are cut, and how well planted phases are found, in simulations.

    python bench/phases.py [--runs 200] [--write docs/statistics.md]

``--write`` puts the section between its two markers in the page; the rest of the page stays as it is.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.phase_cuts import Cut
from profrun.analysis.run_phases import cut_phases, steady_level

Floats = NDArray[np.float64]
Rng = np.random.Generator

BEGIN = "<!-- phases: written by bench/phases.py -->"
END = "<!-- phases: end -->"


def white(rng: Rng, steps: int, noise: float) -> Floats:
    """Independent normal noise on the logarithms."""
    return np.exp(rng.normal(0, noise, steps))


def heavy(rng: Rng, steps: int, noise: float) -> Floats:
    """Student's t with 3 degrees of freedom."""
    return np.exp(noise * rng.standard_t(3, steps))


def correlated(rho: float) -> Callable[[Rng, int, float], Floats]:
    """Noise in which a step resembles the one before: AR(1)."""

    def make(rng: Rng, steps: int, noise: float) -> Floats:
        fresh = rng.normal(0, 1, steps)
        made = np.empty(steps)
        made[0] = fresh[0]
        for place in range(1, steps):
            made[place] = rho * made[place - 1] + np.sqrt(1 - rho * rho) * fresh[place]
        return np.exp(noise * made)

    return make


def outliers(rng: Rng, steps: int, noise: float) -> Floats:
    """1 % of the steps take three times as long."""
    return white(rng, steps, noise) * np.where(rng.random(steps) < 0.01, 3.0, 1.0)


def tenth(rng: Rng, steps: int, noise: float) -> Floats:
    """Every tenth step takes twice as long."""
    return white(rng, steps, noise) * np.where((np.arange(steps) + rng.integers(10)) % 10 == 0, 2.0, 1.0)


def two_kinds(rng: Rng, steps: int, noise: float) -> Floats:
    """40 % of the steps, by chance, take 1.3 times as long."""
    return white(rng, steps, noise) * np.where(rng.random(steps) < 0.4, 1.3, 1.0)


STEADY: dict[str, Callable[[Rng, int, float], Floats]] = {
    "independent": white,
    "heavy tail (t, 3 degrees)": heavy,
    "AR(1), rho 0.5": correlated(0.5),
    "AR(1), rho 0.9": correlated(0.9),
    "1 % of steps 3x longer": outliers,
    "every 10th step 2x longer": tenth,
    "40 % of steps 1.3x longer": two_kinds,
}
NOISES = (0.001, 0.01, 0.05)
LENGTHS = (20, 60, 200, 600, 5000)


def false_rows(runs: int) -> Iterator[str]:
    """Markdown rows: share of steady runs that get more than one phase."""
    yield "| noise | scatter | " + " | ".join(f"{steps} steps" for steps in LENGTHS) + " |"
    yield "|---|---:|" + "---:|" * len(LENGTHS)
    for number, (name, make) in enumerate(STEADY.items()):
        for noise in NOISES:
            shares = []
            for steps in LENGTHS:
                rng = np.random.default_rng([number, steps])
                count = max(runs // 4, 1) if steps > 1000 else runs
                more = sum(len(cut_phases(make(rng, steps, noise))) > 1 for _ in range(count))
                shares.append(f"{more / count:.1%}")
            yield f"| {name} | {noise:.1%} | {' | '.join(shares)} |"


def jump_rows(runs: int) -> Iterator[str]:
    """Markdown rows: how often one jump in 600 steps is found, and how far off."""
    yield "| change | scatter | at step | exactly two phases | steps off, 95 % of the cuts |"
    yield "|---:|---:|---:|---:|---:|"
    for change, noise in ((0.01, 0.003), (0.03, 0.01), (0.12, 0.01)):
        for at in (6, 10, 30, 300):
            rng = np.random.default_rng(at)
            off = []
            for _ in range(runs):
                durs = white(rng, 600, noise)
                durs[at:] *= 1 + change
                cuts = cut_phases(durs)
                if len(cuts) == 2:
                    off.append(abs(cuts[1].first - at))
            worst = f"{np.quantile(off, 0.95):.0f}" if off else "-"
            yield f"| {change:.0%} | {noise:.1%} | {at} | {len(off) / runs:.0%} | {worst} |"


def warm_up(rng: Rng) -> tuple[int, bool]:
    """1 to 5 first steps take 2 to 50 times as long, in 1 %."""
    durs, count = white(rng, 200, 0.01), int(rng.integers(1, 6))
    durs[:count] *= np.exp(rng.uniform(np.log(2), np.log(50), count))
    cuts = cut_phases(durs)
    return len(cuts), [(cut.warm_up, cut.stop) for cut in cuts] == [(True, count), (False, 200)]


def drift(size: float, noise: float) -> Callable[[Rng], tuple[int, bool]]:
    """Times that grow evenly over 600 steps: right is one phase with a drift."""

    def make(rng: Rng) -> tuple[int, bool]:
        durs = white(rng, 600, noise) * np.linspace(1, 1 + size, 600)
        cuts = cut_phases(durs)
        return len(cuts), len(cuts) == 1 and cuts[0].drift is not None

    return make


def disturbed(make: Callable[[Rng, int, float], Floats]) -> Callable[[Rng], tuple[int, bool]]:
    """20 % longer, and noisy, in the middle 30 %: right are cuts within 10 steps, and the calm level."""

    def one(rng: Rng) -> tuple[int, bool]:
        durs = make(rng, 600, 0.03)
        durs[210:390] *= 1.2 * np.exp(rng.normal(0, 0.08, 180))
        cuts = cut_phases(durs)
        level = steady_level(cuts)
        bounds = [cut.first for cut in cuts[1:]]
        found = all(any(abs(bound - at) <= 10 for bound in bounds) for at in (210, 390))
        return len(cuts), found and cuts[0].level == level == cuts[-1].level

    return one


def by_turns(rng: Rng) -> tuple[int, bool]:
    """A, B, A, B of 200 steps each, B 20 % longer: right are two levels, and the faster is the steady one."""
    durs = white(rng, 800, 0.02)
    durs[200:400] *= 1.2
    durs[600:] *= 1.2
    cuts = cut_phases(durs)
    return len(cuts), [cut.level for cut in cuts] == [0, 1, 0, 1] and steady_level(cuts) == 0


def power_cap(rng: Rng) -> tuple[int, bool]:
    """The loop on an H200: 2.94 ms for 6 to 30 steps, 3.31 to 3.54 ms after, 60 to 600 steps.

    In half of the runs the first step is 20 times as long. Right is: the median of the steady level is that
    of the steps after the jump within 1 %.
    """
    steps, at, slow = int(rng.integers(60, 601)), int(rng.integers(6, 31)), rng.uniform(3.31, 3.54)
    durs = slow * white(rng, steps, 0.01)
    durs[:at] *= 2.94 / slow
    durs[0] *= rng.choice([1, 20])
    cuts = cut_phases(durs)
    return len(cuts), abs(steady_median(cuts, durs) / slow - 1) < 0.01


def wandering(rng: Rng) -> tuple[int, bool]:
    """The same loop, 600 steps, whose capped level goes up and down by 2 % every 30 steps.

    Right is: the median of the steady level is that of all steps after the jump within 0.5 %.
    """
    at = int(rng.integers(6, 31))
    level = np.repeat(rng.normal(0, 0.02, 22), 30)[rng.integers(30) :][:600]
    durs = 3.42 * np.exp(level) * white(rng, 600, 0.002)
    durs[:at] = 2.94 * white(rng, at, 0.002)
    cuts = cut_phases(durs)
    return len(cuts), abs(steady_median(cuts, durs) / float(np.median(durs[at:])) - 1) < 0.005


def steady_median(cuts: Sequence[Cut], durs: Floats) -> float:
    """Median of the steps at the steady level."""
    level = steady_level(cuts)
    return float(
        np.median(np.concatenate([durs[cut.first : cut.stop] for cut in cuts if cut.level == level]))
    )


PLANTED: dict[str, Callable[[Rng], tuple[int, bool]]] = {
    "warm-up: 1 to 5 first steps 2x to 50x longer, of 200, scatter 1 %: cut to the step": warm_up,
    "drift of 3 % over 600 steps, scatter 0.3 %: one phase, marked": drift(0.03, 0.003),
    "drift of 3 %, scatter 1 %: the same": drift(0.03, 0.01),
    "drift of 10 %, scatter 1 %: the same": drift(0.1, 0.01),
    "load: the middle 30 % of 600 steps 20 % longer and noisy, scatter 3 %: both cuts, calm level": disturbed(
        white
    ),
    "the same, heavy tail": disturbed(heavy),
    "the same, AR(1) with rho 0.5": disturbed(correlated(0.5)),
    "load that comes and goes, 20 %, scatter 2 %: two levels, the faster is steady": by_turns,
    "power cap as on an H200, 60 to 600 steps: the capped level": power_cap,
    "the same with a level that wanders by 2 % every 30 steps: the whole capped stretch": wandering,
}


def planted_rows(runs: int) -> Iterator[str]:
    """Markdown rows: how often planted phases are found, and how many phases there are then."""
    yield "| planted: what is right | right | numbers of phases |"
    yield "|---|---:|---|"
    for number, (name, make) in enumerate(PLANTED.items()):
        rng = np.random.default_rng(number)
        counts: Counter[int] = Counter()
        right = 0
        for _ in range(runs):
            phases, found = make(rng)
            right += found
            counts[phases] += 1
        shares = ", ".join(f"{count}: {counts[count] / runs:.1%}" for count in sorted(counts))
        yield f"| {name} | {right / runs:.1%} | {shares} |"


def seconds(steps: int = 100_000) -> float:
    """Time to cut a run of so many steps with a jump in it, s."""
    durs = white(np.random.default_rng(1), steps, 0.02)
    durs[steps // 3 :] *= 1.05
    begin = time.perf_counter()
    cut_phases(durs)
    return time.perf_counter() - begin


SECTION = """\
{begin}
## Phases of a run

A *phase* is a stretch of the run whose steps take equally long. Phases are cut from the logarithms of the
times of all steps of the run, recorded or not (`analysis/run_phases.py`):

- Change-points are those of the least penalised cost with the biweight loss (Fearnhead & Rigaill,
  "Changepoint Detection in the Presence of Outliers", JASA 114, 2019, doi 10.1080/01621459.2017.1385466):
  a step that is further than 3 standard deviations from its level costs no more than one at 3, so rare long
  steps make no phase. The penalty of a change-point is 3 log(steps) squared standard deviations.
- The noise, and how much a step resembles the one before (rho), come from differences over one and two steps
  (Chakar et al., Bernoulli 23, 2017, doi 10.3150/15-BEJ782). The penalty is times (1 + rho) / (1 - rho), with
  rho at most 0.8, and so is the most that a step costs.
- A phase has at least 10 % of the steps, or it is a disturbance and joined to the neighbour that is more
  alike. The first phase may be shorter: a GPU runs faster until its power cap acts.
- Neighbours are one phase where their medians differ by less than 0.8 % (so a change of 1 % is found) or by
  less than 4 standard errors, or where one has fewer than 5 steps. Phases whose medians agree in the same
  sense share a *level*.
- Up to 10 first steps are *warm-up* when each is longer than 98 % of the 200 steps after, by 10 % at least.
- A drift is not a jump: neighbours within 10 % that pass into each other gradually are one phase with a
  drift, and so is a run of several phases within 10 % that a line explains better than levels do (Schwarz's
  criterion). Larger drifts are cut into several phases.
- A level that wanders (a GPU's clock at its power cap) is one phase: where 4 phases or more have more than
  three levels and go up and down, the change from phase to phase is noise itself, and only larger jumps are
  cuts. A first phase stays a phase of its own where its median lies outside of the middle 96 % of the later
  steps, by 0.8 % more, and at least twice as many steps follow it. If it is faster, later neighbours are
  joined where they differ by less than 5 % and by less than half as much as the first phase differs from what
  follows.
- Fewer than 8 steps are not cut: all of them count. More than 4096 steps are cut by the medians of at most
  4096 buckets, and each cut is then moved to the step; phases then have at least 5 buckets.

The *steady phase* is the level in which the program lives. Warm-up is left out. Of the other levels the one
with the most steps is taken. A level with at least half as many that begins after it has ended is taken
instead: a boost ends for good when the power cap begins. Of levels that come and go by turns the faster one
is taken, when it has at least half as many steps: load comes and goes.

Steps that a profiler records, or warms up for, take no part in the cutting; they lie in a phase by their
position. Why a phase is slower is told only by what the sampler read in it
(`analysis/trace/phase_causes.py`).

{runs} simulated runs per cell ({few} for 5000 steps), seeds fixed.

Steady runs that get more than one phase. Independent steps, heavy tails, outliers, alternation and rho 0.5
stay below 5 %. With rho 0.9 the level truly wanders for tens of steps, and some of that is told as phases:

{false}

A jump in 600 steps:

{jumps}

Other phases:

{planted}

100 000 steps are cut in less than a second.
{end}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the section, or write it into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    section = SECTION.format(
        begin=BEGIN,
        end=END,
        runs=options.runs,
        few=max(options.runs // 4, 1),
        false="\n".join(false_rows(options.runs)),
        jumps="\n".join(jump_rows(options.runs)),
        planted="\n".join(planted_rows(options.runs)),
    )
    print(section)
    print(f"100 000 steps: {seconds():.2f} s")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(with_section(page, section, BEGIN, END), encoding="utf-8")


def with_section(page: str, section: str, begin: str, end: str) -> str:
    """The page with the section in place of the one that it has, else at its end.

    Args:
        begin, end: the lines with which the section begins and ends.
    """
    before, found, rest = page.partition(begin)
    if not found:
        return f"{page.rstrip()}\n\n{section}"
    return f"{before}{section}{rest.partition(end)[2].lstrip(chr(10))}"


if __name__ == "__main__":
    main()
