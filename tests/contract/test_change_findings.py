"""Findings about changes, and which change they are about."""

from __future__ import annotations

from dataclasses import replace

from profrun.contract.change_findings import CODES, applied, change_of, failed, not_applied
from profrun.contract.changes import parse
from profrun.contract.finding import Finding


def test_each_finding_names_its_change() -> None:
    change = parse("loader-workers=8")
    found = [
        applied(change, "2 DataLoaders got 8 worker processes"),
        not_applied(change, "the program made no DataLoader"),
        failed(change.text, "ValueError: no"),
    ]
    assert tuple(one.code for one in found) == CODES
    assert [str(one) for one in found] == [
        "loader-workers=8: 2 DataLoaders got 8 worker processes",
        "loader-workers=8 changed nothing: the program made no DataLoader",
        "loader-workers=8 failed, and the program went on without it: ValueError: no",
    ]
    assert {change_of(one) for one in found} == {"loader-workers=8"}
    of_another_rank = replace(found[1], what=f"rank 1: {found[1].what}")
    assert change_of(of_another_rank) == "loader-workers=8"


def test_other_findings_are_about_no_change() -> None:
    assert change_of(Finding("no-steps", "info", "nothing: no step was seen")) is None
    assert change_of(failed("bogus", "there is no change 'bogus'")) is None
