"""What ``profrun doctor`` prints: the short answer, or every check."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.contract.units import some_of
from profrun.doctor.advice import Advice, Answer
from profrun.doctor.model import HOST, CheckResult
from profrun.reports.terminal_layout import Part, Prose, Table


def advice_parts(advice: Advice, checks: Sequence[CheckResult] = ()) -> list[Part]:
    """Where each profiler works, then what to mend, then every check or how to see them all.

    Args:
        advice: the short answer.
        checks: every check; empty: they are not shown.
    """
    about = ", ".join(advice.machine)
    rows = [(answer.profiler, answer.title, _where(answer)) for answer in advice.answers]
    parts: list[Part] = [
        Prose(about[:1].upper() + about[1:]),
        "",
        Table(("profiler", "", "works"), rows),
    ]
    if advice.mend:
        parts += ["", Prose(label="To mend")]
        parts += [Prose(f"{finding.what}; {finding.fix}", finding.code, "  ") for finding in advice.mend]
    more = check_parts(checks, advice) if checks else ["Every check with its reason: profrun doctor -v"]
    return [*parts, "", *more]


def _where(answer: Answer) -> str:
    if answer.obstacle is not None:
        return f"no: {answer.obstacle.what}"
    images = f"in image {some_of(answer.images)}" if answer.images else ""
    return ", ".join(place for place in ("here" if answer.local else "", images) if place)


def check_parts(checks: Sequence[CheckResult], advice: Advice) -> list[Part]:
    """Every check with what it found, what follows from that, and how to mend it.

    What this machine lacks has the severity "info" where the profiler works in an image.
    """
    work = {answer.profiler for answer in advice.answers if answer.obstacle is None}
    parts: list[Part] = []
    for found in checks:
        where = "" if found.where == HOST else f" ({found.where})"
        result = found.result
        said = (result.what, getattr(result, "why", ""), getattr(result, "fix", ""))
        text = f"{result.code}{where}: {'; '.join(part for part in said if part)}"
        harmless = found.where == HOST and result.code in work and found.severity is not None
        parts.append(Prose(text, "info" if harmless else found.severity or "ok"))
    return parts
