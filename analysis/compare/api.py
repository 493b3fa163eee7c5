"""``profrun.compare``: two sides as traces or their folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profrun.analysis.compare.core import compare as compare_trials
from profrun.analysis.compare.model import Comparison
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.compare.trial import Trial
from profrun.traces.trace import Trace

Given = str | Path | Trace


def compare(a: Given | Sequence[Given], b: Given | Sequence[Given], **options: Any) -> Comparison:
    """Compare two sides, each one trace or several repeats (trace folders or open traces); ``a`` is the base.

    Args:
        options: as ``profrun.analysis.compare.compare``: by, statistic, threshold, per, allow.

    Raises:
        InputError: something is no trace.
        UsageError: an option is wrong.
    """
    return compare_trials(_trials(a), _trials(b), **options)


def _trials(side: Given | Sequence[Given]) -> list[Trial]:
    found = []
    for one in [side] if isinstance(side, (str, Path, Trace)) else side:
        if isinstance(one, Trace):
            found.append(read_trial(one))
        else:
            with Trace(one) as trace:
                found.append(read_trial(trace))
    return found
