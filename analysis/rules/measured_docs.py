"""What ``profrun improve`` measured of the rules, as Markdown: for two pages of the docs.

The documents that it is made of are what ``profrun improve --json`` printed, one file per program in a folder
for each machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from profrun.analysis.rules.measured import MeasuredRow, Precision, measured_rows, precision
from profrun.contract.codec import from_json
from profrun.contract.units import percent_text, signed_percent_text
from profrun.store.improvement import Improvement


def read_measured(folder: Path) -> list[MeasuredRow]:
    """The rows of all documents in a folder.

    Args:
        folder: has a folder for each machine, with a file for each program; its name is that of the program.

    Raises:
        DocumentError: a file is no such document.
    """
    rows: list[MeasuredRow] = []
    for path in sorted(folder.glob("*/*.json")):
        rows += measured_rows(read_document(path), path.stem)
    return rows


def read_document(path: Path) -> Improvement:
    """What ``profrun improve --json`` printed into a file.

    Raises:
        DocumentError: it is no such document.
    """
    return from_json(Improvement, json.loads(path.read_text(encoding="utf-8")))


def precision_section(rows: Sequence[MeasuredRow]) -> str:
    """How often the remedy of each rule helped: a section of the page of all rules; empty without rows."""
    if not rows:
        return ""
    lines = "".join(_precision_row(one) for one in precision(rows))
    return _PRECISION + lines + "\n"


def _precision_row(one: Precision) -> str:
    most = f"{percent_text(min(one.gains))} to {percent_text(max(one.gains))}" if one.gains else "-"
    typical = "-" if one.typical is None else percent_text(one.typical)
    counts = f"{one.remedied} of {one.findings} | {one.helped} of {one.asked} | {one.hurt}"
    gains = f"{typical} | {most} | {one.broken}"
    return f"| [{one.rule}](rules/{one.rule}.md) | {counts} | {gains} | {', '.join(one.programs)} |\n"


def measured_page(rows: Sequence[MeasuredRow]) -> str:
    """What each finding promised beside what its experiment gave, the worst case first."""
    text = f"{_HEAD}\n| program | GPU | rule | change | promised | measured | interval 95 % | verdict |\n"
    text += "|---|---|---|---|---:|---:|---:|---|\n"
    for row in sorted(rows, key=_badness):
        promised = "-" if row.promised is None else percent_text(row.promised)
        low, high = (signed_percent_text(-gain) for gain in reversed(row.interval))
        text += (
            f"| {row.program} | {', '.join(row.gpus) or 'none'} | [{row.rule}](rules/{row.rule}.md) "
            f"| `{row.change}` | {promised} | {signed_percent_text(-row.gain)} | {low} to {high} "
            f"| {row.state} |\n"
        )
    return text


def _badness(row: MeasuredRow) -> tuple[float, str, str]:
    """What was gained beyond the promise, else how much of the promise was missing: the worst first."""
    if row.promised is None:
        return 2.0, row.program, row.change
    if row.excess is not None and row.excess > 0:
        return -1.0 - row.excess, row.program, row.change
    return row.gain - row.promised, row.program, row.change


_PRECISION = """## How often the remedy helped

`profrun improve` tried the changes that findings of each rule ask for ([improve.md](improve.md)).
*Findings*: of how many findings one of their changes was proven to help. *Changes*: how many of all changes
that they asked for. *Slower*: how many made the step longer. The gain is that of the changes that helped, as
a part of the step. *Broken*: promises ("at most") that the measured gain exceeds with its whole interval;
where several findings asked for the change, their promises count together.
[rules-measured.md](rules-measured.md) has every experiment.

| rule | findings | changes | slower | typical gain | gains | broken | programs |
|---|---:|---:|---:|---:|---:|---:|---|
"""
_HEAD = """<!-- made by `python -m profrun.analysis.rules.docs docs tests/data/improve` -->
# What findings promised, and what was measured

Each row is an experiment of `profrun improve` that a finding asked for. *Promised* is the most that the
finding said could be gained, as a part of the step. *Measured* is the change of the step time. Promises that
were exceeded come first, then those of which most was missing: a finding says what could be gained at most,
so much less may be right, but a finding whose change gives nothing is no help. Where several findings asked
for one change, it may give what all of them promised together.
"""
