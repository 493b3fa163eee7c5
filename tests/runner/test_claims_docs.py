"""The claims of a run as a document, and the table of the kept ones."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.contract.codec import to_json
from profrun.jobs.load import load_job
from profrun.runner.claims_docs import (
    PAGE,
    ROOT,
    ClaimsDocument,
    claims_document,
    keep,
    read_kept,
    renewed,
    table,
)
from profrun.store.run_claims import CheckResult, ClaimResult
from tests.runner.scripted import new_run

JOB = """name: small
command: python x.py
collectors: [none, torch]
expect:
  - {claim: It is fast., source: 'A page: https://example.org/a', step_ms: 1}
"""


def test_the_page_is_that_of_the_kept_claims() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page, read_kept()), "run `python -m profrun.runner.claims_docs`"
    assert "| job | claim | source | state | measured |" in page


def test_a_document_names_the_command_and_no_path(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "runs", JOB)
    run.resolved.write_text(JOB.replace("[none, torch]", "[torch]") + "repeats: 3\n")
    document = claims_document(run)
    assert document.command == "profrun submit jobs/small.yaml --collectors torch --repeats 3"
    (claim,) = document.claims
    assert (claim.claim, claim.state, claim.checks[0].why) == (
        "It is fast.",
        "not checked",
        "no trace of default",
    )
    assert str(tmp_path) not in json.dumps(to_json(document))
    run.resolved.write_text(JOB + "repeats: {none: 3}\n")
    assert claims_document(run).command == "profrun submit jobs/small.yaml --set 'repeats={none: 3}'"
    run.resolved.write_text(JOB.replace("[none, torch]", "[torch]") + "repeats: 3\n")
    keep([run.path], tmp_path / "kept")
    assert read_kept(tmp_path / "kept") == [document]


def test_the_table_has_a_row_per_claim(tmp_path: Path) -> None:
    held = CheckResult("ratio", "at most 1", "held", "0.5 times", 0.5, (0.4, 0.6), "ratio")
    refuted = CheckResult("dtype", "fp16", "refuted", "bf16 | 100 %")
    claims = (
        ClaimResult(0, "It is faster.", "held", (held,), "Page: https://example.org/a", ("b",)),
        ClaimResult(1, "It is fp16.", "refuted", (held, refuted), None, ("a", "b")),
    )
    (tmp_path / "small.md").touch()
    found = table([ClaimsDocument("small", "profrun submit x", ("H200",), claims, "2.11", "0.2.0")], tmp_path)
    assert found.splitlines() == [
        "2 claims of 1 job: 1 held, 1 refuted.",
        "",
        "| job | claim | source | state | measured |",
        "|---|---|---|---|---|",
        "| [small](small.md) | It is faster. | [Page](https://example.org/a) | held | b: 0.5 times |",
        "| [small](small.md) | It is fp16. |  | refuted | bf16 \\| 100 % |",
        "",
        "| job | ran on | torch | profrun | command |",
        "|---|---|---|---|---|",
        "| [small](small.md) | H200 | 2.11 | 0.2.0 | `profrun submit x` |",
    ]


def test_claims_are_judged_as_the_job_states_them_now(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "runs", JOB.replace("name: small", "name: linear"))
    now = load_job(ROOT / "jobs" / "linear.yaml").expect
    assert [one.claim for one in claims_document(run).claims] == [one.claim for one in now]
