"""The docs pages of the rules, made from the rules: ``python -m profrun.analysis.rules.docs docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.rule import Rule

_HEAD = "<!-- made by `python -m profrun.analysis.rules.docs docs`; edit the rule, not this page -->\n"


def rule_page(rule: Rule) -> str:
    """One rule's page, Markdown."""
    relies = ", ".join(f"`{name}`" for name in rule.relies_on)
    module = rule.find.__module__.removeprefix("profrun.").replace(".", "/")
    text = f"{_HEAD}# {rule.id}: {rule.title}\n\n"
    text += f"Severity: **{rule.severity}**. Code: `{module}.py`, `{rule.find.__name__}`.\n\n"
    text += f"## What it means\n\n{rule.meaning}\n\n## When it fires\n\n{rule.threshold}\n\n"
    text += f"## What to do\n\n{rule.advice}\n"
    if relies:
        text += (
            f"\n## What it rests on\n\n{relies}. The rule does not run when one of them is withheld for the "
            "quality of the recording. When one is only marked, the finding carries the code of the quality "
            "finding ([numbers](../numbers.md#data-quality)).\n"
        )
    return text


def index_page() -> str:
    """The page that lists all rules."""
    rules = all_rules()
    text = f"{_HEAD}# What `profrun diagnose` looks for\n\n"
    text += (
        f"{len(rules)} rules. Each is a small function with a threshold that is stated here, evidence "
        "(numbers with their denominators, slices to open) and advice. Each has a test on a trace that has "
        "the problem and on one that has not (`tests/analysis/rules/test_catalogue.py`). A threshold says "
        "where to start looking.\n\n| rule | severity | what | fires when |\n|---|---|---|---|\n"
    )
    for rule in rules:
        text += f"| [{rule.id}](rules/{rule.id}.md) | {rule.severity} | {rule.title} | {rule.threshold} |\n"
    return text


def write(docs: Path) -> None:
    """Write all pages under a docs folder and remove pages of rules that are gone."""
    folder = docs / "rules"
    folder.mkdir(parents=True, exist_ok=True)
    (docs / "rules.md").write_text(index_page(), encoding="utf-8")
    names = {rule.id for rule in all_rules()}
    for rule in all_rules():
        (folder / f"{rule.id}.md").write_text(rule_page(rule), encoding="utf-8")
    for page in folder.glob("*.md"):
        if page.stem not in names:
            page.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
