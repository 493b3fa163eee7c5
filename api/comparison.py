"""``profrun.compare``: two sides, each one trace or several repeats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profrun.analysis.compare import Comparison as ComparisonValue
from profrun.analysis.compare import compare as compare_trials
from profrun.analysis.compare.model import By
from profrun.analysis.compare.ratio import THRESHOLD
from profrun.analysis.counted_steps import Phase, phase_named
from profrun.analysis.step_time import Statistic
from profrun.api.results import STYLE, Result
from profrun.reports.compare_text import comparison_text
from profrun.runner.comparison_sides import find_sides, read_sides
from profrun.store.runs import runs_root
from profrun.traces.trace import Trace

Given = str | Path | Trace


class Comparison(Result, ComparisonValue):
    """The difference between two sides; its tables are rows, kernels, categories, metrics, parts and more."""

    def __str__(self) -> str:
        return comparison_text(self, STYLE)


def compare(
    a: Given | Sequence[Given],
    b: Given | Sequence[Given],
    *,
    by: By = "kernel",
    statistic: Statistic = "median",
    threshold: float = THRESHOLD,
    phase: Phase | None = None,
    per: str | None = None,
    allow: Sequence[str] = (),
    runs: str | Path | None = None,
) -> Comparison:
    """Compare two sides: what changed, by how much, how sure.

    Args:
        a: the base: one trace or several repeats. Each is a folder, an open trace, a file of
            ``profrun baseline save``, or what ``profrun compare`` takes (``last/baseline-none``).
        b: the other side, likewise.
        by: rows of what changed: kernel, op, range, module, line, category or step; by line needs a
            mapping (``ranges: {lines: true}``).
        statistic: of step times: median, mean or p99.
        threshold: smaller changes count as none, as a fraction.
        phase: which steps of trials without a profiler count: steady, window (those that the schedule
            records) or all; None for steady, or for what a baseline keeps.
        per: divide times by work: token, gflop, a variant's value.
        allow: codes of differences in spite of which the sides are compared.
        runs: folder of the runs; None for $PROFRUN_RUNS or ./runs.

    Raises:
        InputError: something is no trace.
        UsageError: an option is wrong, nothing is there, or a trace is named twice.
    """
    left, right = _given(a), _given(b)
    sides = find_sides(_references(left), _references(right), runs_root(runs))
    opened = {one.path.resolve(): one for one in (*left, *right) if isinstance(one, Trace)}
    left_trials, right_trials = read_sides(sides, phase_named(phase) if phase else None, opened, by=by)
    result = compare_trials(
        left_trials,
        right_trials,
        by=by,
        statistic=statistic,
        threshold=threshold,
        per=per,
        allow=allow,
    )
    return Comparison(**vars(result))


def _given(side: Given | Sequence[Given]) -> Sequence[Given]:
    return [side] if isinstance(side, (str, Path, Trace)) else side


def _references(side: Sequence[Given]) -> list[str]:
    return [str(one.path if isinstance(one, Trace) else one) for one in side]
