"""``profrun.compare``: given two sides as traces or their folders, it returns a ``Comparison``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.comparing import compare as compare_trials
from profrun.analysis.compare.model import By, Comparison
from profrun.analysis.compare.ratio import THRESHOLD
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.compare.stats import Statistic
from profrun.traces.trace import Trace

Given = str | Path | Trace


def compare(
    a: Given | Sequence[Given],
    b: Given | Sequence[Given],
    *,
    by: By = "kernel",
    statistic: Statistic = "median",
    threshold: float = THRESHOLD,
    per: str | None = None,
    allow: Collection[str] = (),
) -> Comparison:
    """Compare two sides, each one trace or several repeats (trace folders or open traces); ``a`` is the base.

    Args:
        by: what ``rows`` of the result are about: kernel, op, range, module, category or step.
        statistic: of the step times of each trial: median, mean or p99.
        threshold: practical threshold as a fraction: smaller changes are 'same'.
        per: divide times by an amount of work: 'token', 'gflop', the name of a variant value, a product of
            such names, or two amounts ('2048,65536').
        allow: codes of differences in spite of which the sides are compared (``docs/compare.md``).

    Raises:
        InputError: something is no trace.
        UsageError: an argument is wrong.
    """
    return compare_trials(
        _trials(a), _trials(b), by=by, statistic=statistic, threshold=threshold, per=per, allow=allow
    )


def _trials(side: Given | Sequence[Given]) -> list[ComparedTrial]:
    found = []
    for one in [side] if isinstance(side, (str, Path, Trace)) else side:
        if isinstance(one, Trace):
            found.append(read_trial(one))
        else:
            with Trace(one) as trace:
                found.append(read_trial(trace))
    return found
