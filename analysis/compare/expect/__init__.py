"""The ``expect`` block of a job: guesses written down before the trace was opened, checked step by step.

``check_trace`` is given a trace and the job's expectations and returns a ``Check`` per guess; ``summarise``
puts the checks of all traces of a run together. A guess that failed tells what was found instead. A guess
that a trace cannot answer (no ops in it, no GPU) is open: ``passed`` is None and ``found`` tells why.
"""

from profrun.analysis.compare.expect.checks import applies, check_trace, expected_text
from profrun.analysis.compare.expect.model import Check, ExpectationResult, summarise

__all__ = ["Check", "ExpectationResult", "applies", "check_trace", "expected_text", "summarise"]
