"""A comparison and its gate for other tools: Markdown for a pull request, JUnit XML for a CI server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import signed_change_text, signed_time_text
from profrun.reports.compare_sentence import verdict_line
from profrun.reports.compare_text import heads, reason_line, short_name, side_times, status_word
from profrun.reports.point_pairs_text import how_recorded, variants_name

if TYPE_CHECKING:
    from profrun.analysis.compare.gate import Gate
    from profrun.analysis.compare.model import Comparison
    from profrun.analysis.compare.point_pairs import PointPairs


def markdown(found: PointPairs, gate: Gate | None = None, *, top: int = 10) -> str:
    """A section of Markdown: the verdicts, the rules of the gate, the reasons, and ``top`` rows."""
    verdicts = [found.deciding(variants).comparison.verdict for variants in found.variants]
    mark = ", ".join({"slower": "**slower**"}.get(one, one) for one in dict.fromkeys(verdicts))
    lines = [f"### profrun compare: {mark}", ""]
    for variants in found.variants:
        telling = found.telling(variants).comparison
        for pair in found.of(variants):
            how = f"{variants_name(pair.variants)}, {how_recorded(pair)}: " if len(found.pairs) > 1 else ""
            lines += [f"{how}{verdict_line(pair.comparison)}", ""]
            lines += [f"- {one}" for one in pair.comparison.next_steps] + [""]
        lines += [*_reasons(telling), *_rows(telling, top), ""]
    lines += [f"- left out: {one}" for one in found.left_out]
    if gate is not None:
        lines += ["", "| rule | outcome | |", "|---|---|---|"]
        lines += [f"| `{_cell(one.rule)}` | {one.outcome} | {_cell(one.message)} |" for one in gate.results]
    kept = [line for place, line in enumerate(lines) if line or lines[place - 1 : place] != [""]]
    return "\n".join(kept).rstrip() + "\n"


def _reasons(comparison: Comparison) -> list[str]:
    reasons = [reason_line(one) for one in comparison.reasons if one.severity != "info"]
    return [*(f"- {one.label}: {one.text}" for one in reasons), ""]


def _rows(comparison: Comparison, top: int) -> list[str]:
    if not comparison.rows:
        return []
    a, b = map(_cell, heads(comparison))
    lines = [f"| {comparison.by} | | {a} | {b} | change | % |", "|---|---|---:|---:|---:|---:|"]
    for row in comparison.rows[:top]:
        times = (*side_times(row), signed_time_text(row.delta_ns), signed_change_text(row.ratio))
        lines.append(f"| {_cell(short_name(row, 70))} | {status_word(row)} | {' | '.join(times)} |")
    rest = comparison.rows[top:]
    sums = [("not in these rows", comparison.unexplained_ns), ("**total**", comparison.total_delta_ns)]
    if rest:
        sums.insert(0, (f"{len(rest)} more", sum(row.delta_ns for row in rest)))
    return lines + [f"| {name} | | | | {signed_time_text(change or 0.0)} | |" for name, change in sums]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def junit(found: PointPairs, gate: Gate) -> str:
    """JUnit XML with one test case per rule; an inconclusive rule is an error, not a failure."""
    from xml.etree import ElementTree

    outcomes = [one.outcome for one in gate.results]
    suite = ElementTree.Element(
        "testsuite",
        name="profrun compare",
        tests=str(len(outcomes)),
        failures=str(outcomes.count("failed")),
        errors=str(outcomes.count("inconclusive")),
    )
    for one in gate.results:
        case = ElementTree.SubElement(suite, "testcase", classname="profrun.compare", name=one.rule)
        if one.outcome != "passed":
            tag = "failure" if one.outcome == "failed" else "error"
            ElementTree.SubElement(case, tag, message=one.message, type=one.outcome)
    out = ElementTree.SubElement(suite, "system-out")
    out.text = "\n".join(verdict_line(pair.comparison) for pair in found.pairs)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
