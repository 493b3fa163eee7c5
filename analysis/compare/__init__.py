"""Comparing recordings: is it the same work, how sure is the difference, and what changed.

``read_trial`` reduces a trace to a small ``Trial`` (which is also what a baseline keeps); ``compare`` takes
one or more trials a side and returns a ``Comparison``.
"""

from profrun.analysis.compare.core import compare
from profrun.analysis.compare.model import Comparison, Metric, Part, Reason, Row
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.compare.trial import Conditions, Trial, trial_from_json

__all__ = [
    "Comparison",
    "Conditions",
    "Metric",
    "Part",
    "Reason",
    "Row",
    "Trial",
    "compare",
    "read_trial",
    "trial_from_json",
]
