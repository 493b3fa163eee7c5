"""What the estimator says of recorded step times: false verdicts of A/A, and found changes.

    python bench/recorded.py FILE [--sides 2,3,5] [--pairs 200] [--threshold 1] [--base LABEL] [--seed 0]

FILE is a folder that ``bench/trials.py`` wrote, or has one JSON object on each line, one for each trial:

    {"label": "base", "order": 3, "repeat": 2, "steps_ns": [...], "window": [first, last], "energy_j": 12.5}

``order``: place in the run. ``window``: places of the steps that the schedule records, both included.
``energy_j`` may be missing. Trials of one label did the same work.

A/A: of the trials of one label, 2 n are drawn at random, put in the order of the run and dealt out in turns:
A B A B. A/B: n repeats that both labels have are drawn. So the pairs of one row share trials. The number in
brackets is that of pairs without a trial in common: where it is small, shares are of these trials alone.
The table is Markdown. A true change of just the threshold is called so by half of the pairs: its ratio is as
often below as above. 'excludes 1' has no threshold.

The ways: ``0.1``: the steps of the window, by resampling. ``steady``: the steps of the steady phase, each
side by itself. ``today``: these, with drift taken out (``compare.log_difference``). ``energy``: J of a trial,
likewise.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from resampling import Interval, resampled_interval

from profrun.analysis.compare.stats import Estimate, estimate, verdict
from profrun.analysis.counted_steps import Ints, chosen, counted
from profrun.store.documents import read_steps
from profrun.store.runs import TrialPaths

WORDS = ("faster", "slower", "same", "inconclusive")


@dataclass(frozen=True)
class Trial:
    """One recorded trial; ``window`` and ``steady`` are ns of steps, ``energy`` is J or None."""

    label: str
    order: int
    repeat: int
    window: list[float]
    steady: list[float]
    energy: float | None


Pair = tuple[list[Trial], list[Trial]]


def read(path: Path) -> list[Trial]:
    """The trials of a file, or of a folder that ``bench/trials.py`` wrote, in the order of the run."""
    if path.is_dir():
        return _of_folder(path)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return sorted((_trial(json.loads(line)) for line in lines), key=lambda one: one.order)


def _of_folder(path: Path) -> list[Trial]:
    """Trials by the names of their folders, ``<order>-<label>``, if they measured steps."""
    found: list[Trial] = []
    for folder in sorted(one.parent for one in path.glob("*-*/command.json")):
        steps = read_steps(TrialPaths(folder))
        order, _, label = folder.name.partition("-")
        inside = [place for place, active in enumerate(steps.in_window) if active]
        if inside and min(steps.all_ns) > 0:
            repeat = sum(one.label == label for one in found)
            row = {"label": label, "order": int(order), "repeat": repeat, "steps_ns": steps.all_ns}
            found.append(_trial(row | {"window": (inside[0], inside[-1])}))
    return found


def _trial(row: dict[str, object]) -> Trial:
    durs: Ints = np.asarray(row["steps_ns"], dtype=np.int64)
    window = np.zeros(len(durs), dtype=np.bool_)
    first, last = row["window"]  # type: ignore[misc]
    window[int(first) : int(last) + 1] = True
    energy = row.get("energy_j")
    return Trial(
        label=str(row["label"]),
        order=int(str(row["order"])),
        repeat=int(str(row["repeat"])),
        window=durs[window].tolist(),
        steady=durs[chosen(counted(durs, window, "steady"))].tolist(),
        energy=None if energy is None else float(str(energy)),
    )


def same_sides(trials: Sequence[Trial], size: int, pairs: int, rng: np.random.Generator) -> Iterator[Pair]:
    """Pairs of sides of one label, dealt out in turns; which side begins is drawn, too."""
    for _ in range(pairs):
        places = np.sort(rng.choice(len(trials), 2 * size, replace=False))
        dealt = [trials[place] for place in places]
        first = int(rng.integers(2))
        yield dealt[first::2], dealt[1 - first :: 2]


def other_sides(
    base: Sequence[Trial], other: Sequence[Trial], size: int, pairs: int, rng: np.random.Generator
) -> Iterator[Pair]:
    """Pairs of the same repeats of two labels."""
    repeats = sorted({one.repeat for one in base} & {one.repeat for one in other})
    for _ in range(pairs if len(repeats) > size else 1 if len(repeats) == size else 0):
        drawn = set(rng.choice(repeats, size, replace=False).tolist())
        yield [one for one in base if one.repeat in drawn], [one for one in other if one.repeat in drawn]


def of_resampling(pair: Pair, seed: int, threshold: float) -> tuple[Interval, str]:
    """Way of 0.1: the steps of the window."""
    a, b = ([one.window for one in side] for side in pair)
    ratio, low, high = resampled_interval(a, b, seed=seed)
    size = (len(a), len(b))
    word = verdict(Estimate("median", ratio, (low, high), None, size, size, None), threshold)
    return (ratio, low, high), word


def of_estimate(
    pair: Pair, threshold: float, times: Callable[[Trial], Sequence[float]], *, turns: bool
) -> tuple[Interval, str]:
    """Today's way, with or without drift taken out."""
    a, b = ([times(one) for one in side] for side in pair)
    order = [[one.order for one in side] for side in pair] if turns else None
    found = estimate(a, b, threshold=threshold, order=order)
    assert found.ci95 is not None
    return (found.ratio, *found.ci95), verdict(found, threshold)


def rows(trials: Sequence[Trial], options: argparse.Namespace) -> Iterator[str]:
    """The table: a row for each pair of labels, number of trials and way."""
    yield (
        "| sides | trials per side | pairs | way | faster | slower | same | inconclusive | excludes 1 "
        "| median change | median +- |"
    )
    yield "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    labels = dict.fromkeys(one.label for one in trials)
    base = options.base or next(iter(labels))
    by_label = {label: [one for one in trials if one.label == label] for label in labels}
    for size in map(int, options.sides.split(",")):
        for label in labels:
            rng = np.random.default_rng((options.seed, size))
            mine = by_label[label]
            if len(mine) >= 2 * size:
                pairs = list(same_sides(mine, size, options.pairs, rng))
                apart = len(mine) // (2 * size)
                yield from _rows(f"{label}, A/A", size, pairs, apart, options.threshold / 100)
            if label != base:
                pairs = list(other_sides(by_label[base], mine, size, options.pairs, rng))
                apart = min(len(mine), len(by_label[base])) // size
                yield from _rows(f"{base} -> {label}", size, pairs, apart, options.threshold / 100)


def _rows(name: str, size: int, pairs: Sequence[Pair], apart: int, threshold: float) -> Iterator[str]:
    if not pairs:
        return
    ways: dict[str, Callable[[Pair, int], tuple[Interval, str]]] = {
        "0.1": lambda pair, seed: of_resampling(pair, seed, threshold),
        "steady": lambda pair, _: of_estimate(pair, threshold, lambda one: one.steady, turns=False),
        "today": lambda pair, _: of_estimate(pair, threshold, lambda one: one.steady, turns=True),
    }
    if all(one.energy for pair in pairs for side in pair for one in side):
        ways["energy"] = lambda pair, _: of_estimate(
            pair, threshold, lambda one: [one.energy or 0.0], turns=True
        )
    for way, of in ways.items():
        found = [of(pair, seed) for seed, pair in enumerate(pairs)]
        words = Counter(word for _, word in found)
        excluded = sum(not low <= 1 <= high for (_, low, high), _ in found)
        ratio = float(np.median([ratio for (ratio, _, _), _ in found]))
        half = float(np.median([math.sqrt(high / low) - 1 for (_, low, high), _ in found]))
        counts = " | ".join(f"{words[word]} ({words[word] / len(found):.1%})" for word in WORDS)
        shown = f"{len(found)} ({apart})"
        yield (
            f"| {name} | {size} | {shown} | {way} | {counts} | {excluded / len(found):.1%} "
            f"| {ratio - 1:+.2%} | {half:.2%} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--sides", default="2,3,5", help="trials per side")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of sides that are drawn for each row")
    parser.add_argument("--threshold", type=float, default=1.0, help="practical threshold in percent")
    parser.add_argument("--base", help="label that the others are compared with; the first one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for row in rows(read(options.file), options):
        print(row, flush=True)


if __name__ == "__main__":
    main()
