"""Claims in a report: a row per claim, with where it was claimed."""

from __future__ import annotations

from profrun.reports.claims_section import claims_html
from profrun.store.run_claims import CheckResult, ClaimResult
from tests.reports.documents import parse, rows_of


def test_a_row_says_what_was_claimed_measured_and_where() -> None:
    check = CheckResult("counts", "3 gemm per step", "held", "gemm 3 per step")
    claims = (
        ClaimResult(0, "Three <GEMMs>.", "held", (check,), "a page", ("a", "b"), phase="decode"),
        ClaimResult(1, "One.", "not checked", (CheckResult("dtype", "", "not checked", why="no GPU"),)),
    )
    document = parse(str(claims_html(claims)))
    assert rows_of(document, "claims") == [
        ["held", "Three <GEMMs>.a page", "a, b (decode)", "gemm 3 per step"],
        ["not checked", "One.", "", "no GPU"],
    ]


def test_a_job_without_claims_has_no_section() -> None:
    assert claims_html(()) is None
