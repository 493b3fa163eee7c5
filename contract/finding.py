"""One thing that somebody should know, as a value: ``Finding``, with the one scale of severity of profrun.

Preflight, doctor, the warnings of a trial, the quality of a trace, rules and comparisons all give findings.
Code decides by ``code`` and ``severity``; the sentences are for people only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["critical", "warning", "info"]
"""``critical``: what was asked for cannot be had, or the numbers concerned are not shown. ``warning``: it can
be had with a restriction, and the numbers concerned are marked. ``info``: nothing is restricted."""

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""All severities, the gravest first."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        code: stable short name in lower case with hyphens; what programs decide by.
        severity: how grave it is.
        what: what was found, one sentence without a full stop, with its numbers.
        why: the likely reason, or an empty text.
        fix: what the user can do, or an empty text.
    """

    code: str
    severity: Severity
    what: str
    why: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """The finding in one line: what was found, then why, then what to do."""
        text = f"{self.what}: {self.why}" if self.why else self.what
        return f"{text}; {self.fix}" if self.fix else text


@dataclass(frozen=True)
class Passed:
    """A check that has nothing to say against what it found.

    Attributes:
        code: stable short name of the check, as of a finding.
        what: what was found, one sentence without a full stop.
    """

    code: str
    what: str


F = TypeVar("F", bound=Finding)


def gravest_first(findings: Iterable[F]) -> list[F]:
    """The findings sorted by severity; findings of the same severity keep their order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
