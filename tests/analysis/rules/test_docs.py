"""The pages of the rules are made from the rules."""

from __future__ import annotations

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.docs import index_page, rule_page
from profrun.analysis.rules.measured_docs import measured_page, read_measured
from tests.conftest import ROOT

RULES = {rule.id: rule for rule in all_rules()}


def test_the_docs_pages_are_those_of_the_code() -> None:
    docs = ROOT / "docs"
    command = "run `python -m profrun.analysis.rules.docs docs tests/data/improve`"
    measured = read_measured(ROOT / "tests/data/improve")
    assert measured
    assert (docs / "rules.md").read_text(encoding="utf-8") == index_page(measured), command
    assert (docs / "rules-measured.md").read_text(encoding="utf-8") == measured_page(measured), command
    pages = {path.stem: path for path in (docs / "rules").glob("*.md")}
    assert set(pages) == set(RULES), command
    for name, path in pages.items():
        assert path.read_text(encoding="utf-8") == rule_page(RULES[name]), command
