"""``profrun.compare``: two sides, each one trace or several repeats."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from pathlib import Path

from profrun.analysis.compare import ComparedTrial, read_trial
from profrun.analysis.compare import Comparison as ComparisonValue
from profrun.analysis.compare import compare as compare_trials
from profrun.analysis.compare.model import By
from profrun.analysis.compare.stats import Statistic
from profrun.traces.trace import Trace

Given = str | Path | Trace


class Comparison(ComparisonValue):
    """A comparison that a notebook shows as the command line prints it."""

    def __str__(self) -> str:
        from profrun.reports.compare_text import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def compare(
    a: Given | Sequence[Given],
    b: Given | Sequence[Given],
    *,
    by: By = "kernel",
    statistic: Statistic = "median",
    threshold: float = 0.01,
    per: str | None = None,
    allow: Sequence[str] = (),
) -> Comparison:
    """Compare two sides: what changed, by how much, how sure.

    Args:
        a: the base: one trace or several repeats, as folders or open traces.
        b: the other side, likewise.
        by: rows of what changed: kernel, op, range, module, category or step.
        statistic: of step times: median, mean or p99.
        threshold: smaller changes count as none, as a fraction.
        per: divide times by work: token, gflop, a variant's value.
        allow: codes of differences in spite of which the sides are compared.

    Raises:
        InputError: something is no trace.
        UsageError: an option is wrong.
    """
    result = compare_trials(
        _trials(a), _trials(b), by=by, statistic=statistic, threshold=threshold, per=per, allow=allow
    )
    fields = {item.name: getattr(result, item.name) for item in dataclasses.fields(result)}
    return Comparison(**fields)


def _trials(side: Given | Sequence[Given]) -> list[ComparedTrial]:
    found = []
    for one in [side] if isinstance(side, (str, Path, Trace)) else side:
        if isinstance(one, Trace):
            found.append(read_trial(one))
        else:
            with Trace(one) as trace:
                found.append(read_trial(trace))
    return found
