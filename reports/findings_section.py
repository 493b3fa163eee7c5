"""The section on the findings of the diagnosis as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import TIME_UNITS, column_text, column_unit, count_text, time_text
from profrun.reports.answer_text import percent
from profrun.reports.evidence import evidence_lines
from profrun.reports.html import Html, chip, el
from profrun.reports.verdict_section import finding_id

if TYPE_CHECKING:
    from profrun.analysis.rules.finding import FindingRow, RuleFinding

_PLACES = ("slices", "lines", "python_lines")
"""Evidence that says where to look."""
TOLD = 0.001
"""Part of a step from which a share is shown."""
SLICES = 5
"""Most slices of a finding that are linked."""


def findings_html(findings: Sequence[RuleFinding], key: str) -> Html:
    """Each finding with what could be gained, meaning, advice and evidence, folded; critical ones are open.

    Args:
        findings: as ``diagnose`` gives them. A finding that another explains is inside of that one.
        key: prefix of ids, unique in the page; ``<key>-slice-<id>`` is a slice of the timeline.
    """
    if not findings:
        return el("p", "No rule's threshold is exceeded.")
    alone = [one for one in findings if one.explained_by is None]
    return el("div", (_finding(one, findings, key) for one in alone), class_="findings")


def _finding(finding: RuleFinding, every: Sequence[RuleFinding], key: str) -> Html:
    quality = None
    if finding.quality:
        quality = el("p", "Rests on doubtful numbers: ", ", ".join(finding.quality), class_="doubtful-line")
    evidence = ((el("dt", name), el("dd", text)) for name, text in evidence_lines(_numbers(finding)))
    gain = finding.gain
    below = [one for one in every if one.explained_by == finding.code]
    return el(
        "details",
        el(
            "summary",
            chip(finding.severity),
            " ",
            el("strong", finding.title),
            _most(finding),
            ": ",
            finding.what,
        ),
        quality,
        el("p", el("b", "Gain: "), f"{gain.text}. {finding.bound}") if gain is not None else None,
        el("p", el("b", "Why it is here: "), finding.because) if finding.because else None,
        el("p", finding.why),
        el("p", el("b", "Advice: "), finding.fix),
        el("dl", evidence, _places(finding, key), class_="evidence"),
        _rows(finding.rows),
        el("p", f"Rule {finding.code}; it fires: {finding.threshold}", class_="note"),
        el("p", el("b", "It explains:")) if below else None,
        (_finding(one, every, key) for one in below),
        open=finding.severity == "critical",
        class_="finding",
        id=finding_id(key, finding.code),
    )


def _most(finding: RuleFinding) -> str | None:
    """The most that could be gained, behind the title."""
    if finding.gain_ns is None or finding.gain_share is None:
        return None
    share = f" = {percent(finding.gain_share)}" if finding.gain_share >= TOLD else ""
    return f" (at most {time_text(finding.gain_ns)}{share})"


def _numbers(finding: RuleFinding) -> dict[str, object]:
    """The evidence without slices and lines of code, which are shown as such."""
    return {name: value for name, value in finding.evidence.items() if name not in _PLACES}


def _places(finding: RuleFinding, key: str) -> list[Html]:
    """Where to look: the lines of code, and links to slices on the timeline."""
    found = []
    lines = [line for name in ("lines", "python_lines") for line in finding.evidence.get(name) or ()]
    if lines:
        found += [el("dt", "in the code"), el("dd", (el("code", line, class_="codeline") for line in lines))]
    slices = finding.evidence.get("slices")
    if slices:
        links = (el("a", str(one), " ", href=f"#{key}-slice-{one}") for one in slices[:SLICES])
        found += [el("dt", "on the timeline"), el("dd", "slice ", links)]
    return found


def _rows(rows: Sequence[FindingRow]) -> Html | None:
    """What a finding is about, as a small table."""
    if not rows:
        return None
    size, unit = column_unit([row.total_ns for row in rows], TIME_UNITS)
    titles = (("what", None), ("calls", "n"), (f"time {unit}", "n"), ("", None))
    head = el("tr", (el("th", title, class_=class_) for title, class_ in titles))
    body = (
        el(
            "tr",
            el("td", row.name),
            el("td", count_text(row.calls), class_="n"),
            el("td", column_text(row.total_ns, size), class_="n"),
            el("td", row.detail),
        )
        for row in rows
    )
    found = el("table", el("thead", head), el("tbody", body), class_="finding-rows")
    return el("div", found, class_="scroll", tabindex="0", role="region", aria_label="what it is about")
