"""The ``expect`` block of a job: claims written down before the trace was opened, checked step by step.

``tell`` is given a trace and the job's expectations and returns what it ``Told``; ``judge`` puts what all
traces of a run told together to one ``ClaimResult`` per expectation. A claim that is refuted tells what was
found instead. A claim that no trace can answer (no ops in it, no GPU) is not checked, and the result tells
why.
"""

from profrun.analysis.compare.expect.checks import applies, tell
from profrun.analysis.compare.expect.claims import judge
from profrun.analysis.compare.expect.model import Answer, Check, Told
from profrun.analysis.compare.expect.words import expected_text

__all__ = ["Answer", "Check", "Told", "applies", "expected_text", "judge", "tell"]
