"""Comparing recordings: is it the same work, how sure is the difference, and what changed.

``read_trial`` reduces a trace to a small ``ComparedTrial`` (which is also what a baseline keeps); ``compare``
is given one or more trials per side and returns a ``Comparison``.
"""

from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions, trial_from_json
from profrun.analysis.compare.comparing import compare
from profrun.analysis.compare.model import Comparison, Metric, Part, Reason, Row
from profrun.analysis.compare.reading import read_trial

__all__ = [
    "ComparedTrial",
    "Comparison",
    "Metric",
    "Part",
    "Reason",
    "RecordingConditions",
    "Row",
    "compare",
    "read_trial",
    "trial_from_json",
]
