"""Claims on a terminal of 80 columns: counts first, then each claim with what was measured."""

from __future__ import annotations

from profrun.reports.claims_text import claim_parts
from profrun.reports.terminal_layout import Style, lay_out
from profrun.store.run_claims import CheckResult, ClaimResult

NO_GPU = CheckResult("dtype", "matrix kernels in fp16", "not checked", why="no GPU")
CLAIMS = (
    ClaimResult(
        0,
        "The compiled step takes at most 0.9 times as long as the eager one, on every GPU.",
        "not checked",
        (
            CheckResult("counts", "3 gemm per step", "held", "gemm 3 per step"),
            CheckResult("ratio", "at most 0.9", "not checked", "0.87 times", why="too wide", fix="repeat it"),
        ),
    ),
    ClaimResult(
        1,
        "It is fused.",
        "refuted",
        (CheckResult("fused", "", "refuted", "gelu runs alone", refuted_on=("001", "002", "003")),),
    ),
    ClaimResult(2, "It is fp16, and nothing else.", "not checked", (NO_GPU, NO_GPU)),
)


def test_claims_fit_a_terminal() -> None:
    assert lay_out(claim_parts(CLAIMS), Style(width=80)).splitlines() == [
        "3 claims: 1 refuted, 2 not checked",
        "  not checked  The compiled step takes at most 0.9 times as long as the eager",
        "               one, on every GPU.",
        "               0.87 times; too wide",
        "               to check it: repeat it",
        "  refuted      It is fused.",
        "               gelu runs alone (001 and 2 more)",
        "  not checked  It is fp16, and nothing else.",
        "               no GPU",
    ]
