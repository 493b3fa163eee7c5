"""The pages of the rules are made from the rules."""

from __future__ import annotations

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.docs import index_page, rule_page
from tests.conftest import ROOT

RULES = {rule.id: rule for rule in all_rules()}


def test_the_docs_pages_are_those_of_the_code() -> None:
    docs = ROOT / "docs"
    command = "run `python -m profrun.analysis.rules.docs docs`"
    assert (docs / "rules.md").read_text(encoding="utf-8") == index_page(), command
    pages = {path.stem: path for path in (docs / "rules").glob("*.md")}
    assert set(pages) == set(RULES), command
    for name, path in pages.items():
        assert path.read_text(encoding="utf-8") == rule_page(RULES[name]), command
