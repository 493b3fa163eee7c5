"""What a trial says of its changes: the codes of these findings, and the findings themselves.

The hook writes them when a process ends (``in_job/changes``), the wrapper puts those of all processes
together, and ``profrun improve`` reads them in ``exit.json``.
"""

from __future__ import annotations

from .changes import Change, parse
from .finding import Finding

APPLIED = "change-applied"
"""Code of the finding that says what a change was applied to."""

NOT_APPLIED = "change-not-applied"
"""Code of the finding that says that a change had nothing to change, and why."""

FAILED = "change-failed"
"""Code of the finding that an error of a change becomes; the program goes on without the change."""

CODES = (APPLIED, NOT_APPLIED, FAILED)


def applied(change: Change, what: str) -> Finding:
    """The finding of a change that changed something.

    Args:
        what: what it was applied to, with the number: "2 DataLoaders got 4 worker processes".
    """
    return Finding(APPLIED, "info", f"{change.text}: {what}")


def not_applied(change: Change, why: str) -> Finding:
    """The finding of a change that changed nothing.

    Args:
        why: the reason, a sentence without a full stop.
    """
    return Finding(NOT_APPLIED, "warning", f"{change.text} changed nothing", why)


def failed(text: str, why: str) -> Finding:
    """The finding of an error in a change.

    Args:
        text: the change as a job writes it.
        why: the error.
    """
    return Finding(FAILED, "warning", f"{text} failed, and the program went on without it", why)


def change_of(finding: Finding) -> str | None:
    """The change that a finding of this module is about, as a job writes it; None: of no change.

    A finding of another rank may begin with that rank ("rank 1: loader-workers=4 changed nothing").
    """
    if finding.code not in CODES:
        return None
    for word in finding.what.split():
        try:
            return parse(word.rstrip(":")).text
        except ValueError:
            continue
    return None
