"""How often 95 % intervals hold the true ratio: false alarms, coverage and power in simulations.

    python bench/intervals.py [--runs 2000] [--phase-runs 1000] [--write docs/statistics.md]

Every cell simulates ``runs`` comparisons of two sides whose true ratio is known. A trial has a level of its
own (normal on the log scale, standard deviation ``between``), its steps scatter round it (``within``), and
in the cold shape the first step of every trial takes ten times as long. An alarm is an interval that
excludes 1, whatever the practical threshold.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from phases import BEGIN
from phases_and_drift import pairing_rows, phase_rows

from profrun.analysis.compare.rows import EstimateOf, Limits, judged, new_row
from profrun.analysis.compare.stats import Estimate, estimate, verdict
from profrun.analysis.step_time import Statistic


@dataclass(frozen=True)
class World:
    """What is true in a simulation."""

    trials: int
    steps: int
    between: float
    within: float
    shape: str
    statistic: Statistic = "median"


WORLDS = (
    *(World(trials, 20, 0.01, 0.03, "normal") for trials in (2, 3, 5, 10)),
    World(5, 100, 0.01, 0.03, "normal"),
    World(5, 20, 0.0, 0.03, "normal"),
    World(5, 20, 0.03, 0.03, "normal"),
    World(5, 20, 0.01, 0.03, "heavy tail"),
    World(5, 20, 0.01, 0.03, "cold first step"),
    World(5, 20, 0.01, 0.03, "normal", "mean"),
    World(5, 100, 0.01, 0.03, "normal", "p99"),
)


def side(rng: np.random.Generator, world: World, base: float) -> list[list[float]]:
    """One side's trials: lists of step times around ``base``."""
    trials = []
    for level in base * np.exp(rng.normal(0, world.between, world.trials)):
        if world.shape == "heavy tail":
            noise = world.within * rng.standard_t(3, world.steps)
        else:
            noise = rng.normal(0, world.within, world.steps)
        steps = level * np.exp(noise)
        if world.shape == "cold first step":
            steps[0] *= 10
        trials.append(steps.tolist())
    return trials


def share(world: World, truth: float, runs: int, seed: int) -> tuple[float, float]:
    """(share of intervals that exclude 1, share that hold the true ratio)."""
    rng = np.random.default_rng(seed)
    excludes = holds = 0
    for _ in range(runs):
        result = estimate(
            side(rng, world, 1.0),
            side(rng, world, truth),
            statistic=world.statistic,
        )
        low, high = result.ci95 or (0.0, float("inf"))
        excludes += not low <= 1 <= high
        holds += low <= truth <= high
    return excludes / runs, holds / runs


def table(runs: int) -> Iterator[str]:
    """Markdown rows, one per world."""
    yield (
        "| trials per side | steps per trial | between trials | within a trial | shape | statistic "
        "| false alarms | coverage | power at 2 % | power at 5 % |"
    )
    yield "|---:|---:|---:|---:|---|---|---:|---:|---:|---:|"
    for number, world in enumerate(WORLDS):
        alarm, _ = share(world, 1.0, runs, number)
        two, _ = share(world, 1.02, runs // 2, number + 100)
        five, cover = share(world, 1.05, runs, number + 200)
        yield (
            f"| {world.trials} | {world.steps} | {world.between:.0%} | {world.within:.0%} | {world.shape} "
            f"| {world.statistic} | {alarm:.1%} | {cover:.1%} | {two:.0%} | {five:.0%} |"
        )


TRUTHS = (1.0, 1.005, 1.02, 1.05, 1.10)
VERDICTS = ("faster", "same", "inconclusive", "slower")


def verdict_rows(runs: int) -> Iterator[str]:
    """Markdown rows: how often each verdict is given at a known true ratio, threshold 1 %."""
    yield "| trials per side | between trials | true ratio | faster | same | inconclusive | slower |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for trials, between in ((3, 0.002), (5, 0.002), (5, 0.01), (10, 0.01)):
        world = World(trials, 50, between, 0.01, "normal")
        for number, truth in enumerate(TRUTHS):
            rng = np.random.default_rng(number)
            given = [verdict(estimate(side(rng, world, 1.0), side(rng, world, truth))) for _ in range(runs)]
            shares = " | ".join(f"{given.count(word) / runs:.1%}" for word in VERDICTS)
            yield f"| {trials} | {between:.1%} | {truth:.3f} | {shares} |"


ROWS = 40
CHANGED = (0, 1, ROWS)
"""How many of the rows of a table are 5 % slower in b."""


def row_tables(runs: int) -> Iterator[str]:
    """Markdown rows: how often a table calls a row changed that has not, and finds those that have."""
    yield (
        "| trials per side | between trials | rows that are 5 % slower | false word, each row by itself "
        "| false word | found |"
    )
    yield "|---:|---:|---:|---:|---:|---:|"
    for trials, between in ((2, 0.01), (3, 0.01), (5, 0.01), (3, 0.002)):
        world = World(trials, 10, between, 0.01, "normal", "mean")
        for changed in CHANGED:
            alone, together, found = row_table(world, changed, runs)
            shown = f"{found:.0%}" if changed else "-"
            shares = f"{alone:.1%} | {together:.1%} | {shown}"
            yield f"| {trials} | {between:.1%} | {changed} of {ROWS} | {shares} |"


def row_table(world: World, changed: int, runs: int) -> tuple[float, float, float]:
    """(share of tables with a false word by each row's own interval, the same as it is, share found)."""
    alone = together = found = 0
    rng = np.random.default_rng(changed)
    for _ in range(runs):
        estimates = {str(number): _estimated(rng, world, number < changed) for number in range(ROWS)}
        rows = [new_row(name, (1e6, 1e6 * one.ratio), (1.0, 1.0)) for name, one in estimates.items()]
        words = judged(rows, _of(estimates), Limits(0.01))
        equal, other = words[changed:], words[:changed]
        alone += any(verdict(estimates[row.name]) in ("faster", "slower") for row in equal)
        together += any(row.status in ("faster", "slower") for row in equal)
        found += sum(row.status == "slower" for row in other)
    return alone / runs, together / runs, found / runs / max(1, changed)


def _of(estimates: dict[str, Estimate]) -> EstimateOf:
    return lambda row: estimates[row.name]


def _estimated(rng: np.random.Generator, world: World, changed: bool) -> Estimate:
    a, b = side(rng, world, 1.0), side(rng, world, 1.05 if changed else 1.0)
    return estimate(a, b, statistic=world.statistic)


PAGE = """# How far the verdicts can be trusted

Two sides are compared by the ratio of their step times. Each trial counts by one number, the median of its
steps (`--statistic` has others), because only trials are independent repeats: the steps of one trial share
a process, a clock and a neighbour on the machine. The interval of the ratio is that of Student's t for two
sides that scatter differently (Welch); `analysis/compare/log_difference.py` names the sources. This page
measures it against known truth, in simulations that are written by

    python bench/intervals.py --runs {runs} --phase-runs {phase_runs} --verdict-runs {verdict_runs} \\
        --row-runs {row_runs} --write docs/statistics.md

*False alarms*: both sides are the same, and the 95 % interval excludes 1, before any practical threshold
(at most 5 % is promised). *Coverage*: how often the interval holds the true ratio (95 % is nominal; more
means that the interval is wider than it had to be). *Found*, or *power*: the share of comparisons in which
the interval shows a true difference. *+-*: the median half width of the interval. A share near 5 % of
{phase_runs} comparisons is known to about {phase_error:.1f} points, one of {runs} to about {error:.1f}
points. *Coverage* and *found* in the first table are of half as many.

## Which steps count: runs with phases and drift

A loop on an H200 takes 2.94 ms per step for its first 6 to 30 steps and 3.3 ms ever after, because the GPU
boosts until it reaches its power cap. The jump comes at another step in each trial. profrun 0.1 looked at
the five steps of the schedule, so some trials of one side were fast and some slow. Now a trial without a
profiler counts the steps of its *steady phase*: the level at which the program lives
(`analysis/run_phases.py` names the method).

Each simulated run has two sides whose trials were run in turns (A B A B). A trial has 60 to 600 steps,
which scatter by 0.3 % and resemble their neighbours (rho = 0.5). Trials differ by 0.3 % where nothing else
is said. With *boost* the first 6 to 30 steps are 12 % faster, and the schedule records steps 10 to 14. All
three ways see the same runs: *0.1* is the window of five steps with the interval of profrun 0.1, *steady*
is the steady phase with each side by itself, and *today* takes out drift, too.

{phases}

* Where no trial has phases, the steady phase holds some 300 steps instead of 5, and the intervals are
  narrower by the scatter of the steps that is gone.
* With a boost the window of 0.1 is useless, and the steady phase is as good as without a boost.
* Steps that resemble their neighbours very much (rho = 0.9) make no false alarms: their number is never
  counted as a number of repeats.
* With so many rows some are off by chance: two rows with a boost and 10 repeats have 7.2 % and 6.2 %. 3000
  more runs of each had 5.8 % and 5.2 %.

## Trials that were run in turns

A machine drifts while a run goes on. `profrun submit` runs the trials in turns, so both sides drift alike.
Three ways to use that, on one number per trial with trials that differ by 0.5 %:

{pairing}

* *Each side by itself* is always honest, but a drift of 5 % makes its intervals 3 to 4 times wider than
  no drift does.
* *Differences of pairs* (repeat i of b less repeat i of a) are **not used**. In each pair b is the later
  one, so drift in one direction is taken for a difference: up to 30 % false alarms. Without drift they cost
  the most, too.
* *Trend* is what profrun does from 3 trials per side: a straight line over the order of the trials is
  fitted with the difference. Without drift it costs 17 % of the width at 3 trials and 6 % at 5. With two
  trials per side nothing is left to fit it, and each side counts by itself.

What decides is the order of the trials alone. To look at both intervals and take the narrower one would
raise false alarms. Trials that were not run in turns (a baseline of last week) count each side by itself. A
neighbour whose load has just the rhythm of the trials cannot be told from a difference by any of these.

## Scatter of trials and of steps

{runs} comparisons per row. The scatter of the steps inside a trial is not added to the spread between
trials: the trials differ by it already. profrun 0.1 added it, which gave 0.2 % false alarms and 8 % power
at 2 % in the second row. It only sets a least spread: two trials may agree by chance better than their
steps allow.

{table}

## What is said at a known truth

{verdict_runs} comparisons per row, threshold 1 %, 50 steps per trial that scatter by 1 %. `same` is an
equivalence: the whole interval lies within 1 %. So a true change of 2 % should hardly ever be called
`same`, and one of 0.5 % may be. A true change of exactly the threshold is called `slower` at most every
second time: the ratio that is measured is as often below the threshold as above it.

{verdicts}

One trial per side has no interval: nothing in one trial tells how much trials differ. `compare` then says
`inconclusive`, and that at least 3 trials per side are needed. More than 50 trials per side are never
proposed: nobody runs them. A longer steady phase or a quieter machine helps then.

## Real recordings

    python bench/recorded.py FILE

judges recorded step times of trials of one program (false verdicts) and of programs that differ (found
changes) by all three ways; its `--help` says what the file holds.

{recorded}## Words in a table of rows

A table of what changed has many rows, and each row has a ratio with an interval of its own. A row is called
`faster` or `slower` only when that is proven among all rows of the table (the procedure of Benjamini &
Hochberg, `stats.proven_below`): where nothing has changed, at most 5 % of all tables have such a word; where
something has, at most 5 % of the words are false. The quantities beside the step time (GPU work, host, ...)
are such a table too. Without two trials on each side no row has a word about time.

{row_runs} tables of {rows} independent rows for each line, threshold 1 %, 10 steps per trial that scatter
by 1 %. *A false word*: the share of tables that call an equal row faster or slower; "each row by itself" is
what the rows' own intervals would have said. *Found*: of the rows that are 5 % slower, the share
that is called slower.

{row_tables}

Real recordings, judged by the estimator of profrun 0.2, on 2026-11-22 with torch 2.11 on one H200: 28
processes of one training step (38 rows by kernel) and 28 of one inference step (3 rows), 12 recorded steps
each. They were divided at random into two sides of the same program, 300 times per line, so the pairs of one
line share recordings.

{measured}
"""

RECORDED = Path(__file__).with_name("recorded_tables.md").read_text(encoding="utf-8").rstrip("\n")
"""Tables of recordings, by ``bench/recorded.py``."""

MEASURED = """\
| program | trials per side | pairs | a row called faster or slower | another quantity | the step time |
|---|---:|---:|---:|---:|---:|
| training step | 2 | 300 | 0 | 0 | 4 (1.3 %) |
| training step | 3 | 300 | 0 | 4 (1.3 %) | 6 (2.0 %) |
| training step | 5 | 300 | 2 (0.7 %) | 13 (4.3 %) | 14 (4.7 %) |
| inference step | 2 | 300 | 1 (0.3 %) | 0 | 1 (0.3 %) |
| inference step | 3 | 300 | 1 (0.3 %) | 0 | 2 (0.7 %) |
| inference step | 5 | 300 | 1 (0.3 %) | 2 (0.7 %) | 3 (1.0 %) |"""


def _error(runs: int) -> float:
    """Standard error, in points, of a share near 5 % of so many comparisons."""
    return 100 * math.sqrt(0.05 * 0.95 / runs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--phase-runs", type=int, default=1000)
    parser.add_argument("--verdict-runs", type=int, default=500)
    parser.add_argument("--row-runs", type=int, default=200)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    rows = "\n".join(table(options.runs))
    verdicts = "\n".join(verdict_rows(options.verdict_runs))
    tables = "\n".join(row_tables(options.row_runs))
    phases = "\n".join(phase_rows(options.phase_runs))
    pairing = "\n".join(pairing_rows(options.phase_runs))
    page = PAGE.format(
        phases=phases,
        pairing=pairing,
        phase_runs=options.phase_runs,
        phase_error=_error(options.phase_runs),
        error=_error(options.runs),
        recorded=f"{RECORDED}\n\n",
        row_runs=options.row_runs,
        rows=ROWS,
        row_tables=tables,
        measured=MEASURED,
        runs=options.runs,
        table=rows,
        verdicts=verdicts,
        verdict_runs=options.verdict_runs,
    )
    if options.write:
        old = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        _, begin, rest = old.partition(BEGIN)  # bench/phases.py writes that section
        options.write.write_text(f"{page}\n{begin}{rest}" if begin else page, encoding="utf-8")
    print(phases, pairing, rows, verdicts, tables, sep="\n\n")


if __name__ == "__main__":
    main()
