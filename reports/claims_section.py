"""The claims of a job in its report: what was claimed, by whom, and what the run says of it."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.reports.claims_text import details, tally_text
from profrun.reports.html import Html, chip, el
from profrun.reports.html_table import Column, table
from profrun.store.run_claims import ClaimResult

_CLASSES = {"held": "held", "refuted": "failed", "not checked": "unknown"}


def claims_html(claims: Sequence[ClaimResult]) -> Html | None:
    """A table with a row per claim; None where the job claims nothing."""
    if not claims:
        return None
    columns: list[Column[ClaimResult]] = [
        Column("state", lambda row: chip(row.state, _CLASSES[row.state])),
        Column("claim", _claim),
        Column("about", lambda row: row.where, note="variants and phase"),
        Column(
            "measured",
            lambda row: "; ".join(details(row)),
            note="per step, or of the run; by the traces of this run",
        ),
    ]
    return table("claims", columns, claims, caption=tally_text(claims), limit=400, whole=True)


def _claim(row: ClaimResult) -> Html | str:
    """The words of the claim, and below where it was claimed."""
    return el("span", row.claim, el("br"), el("small", row.source)) if row.source else row.claim
