"""Every rule: found where it is, silent where it is not, with its words and a known severity."""

from __future__ import annotations

import re

import pytest

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.context import Context
from profrun.contract.finding import SEVERITIES
from tests.analysis.kit import memory_trace
from tests.analysis.rules.cases import CASES, Case

RULES = {rule.id: rule for rule in all_rules()}


def ask(rule: str, case: Case) -> list[str]:
    trace = memory_trace(case.rows, **case.options)
    hits = list(RULES[rule].find(Context(trace, case.provenance, case.unprofiled)))
    assert len(hits) < 2, "several things are rows of one finding"
    size = len(case.rows)
    for hit in hits:
        assert hit.numbers, "a finding has evidence"
        assert (hit.gain is None) == (RULES[rule].severity != "by gain")
        assert all(0 <= one < size for one in hit.slices), "slices exist"
        assert re.search(r"\d", hit.what) or hit.names or hit.numbers
    return [hit.what for hit in hits]


@pytest.mark.parametrize("rule", CASES)
def test_found_where_it_is(rule: str) -> None:
    found = ask(rule, CASES[rule][0])
    assert found
    assert any(CASES[rule][0].says in message for message in found), found


@pytest.mark.parametrize("rule", CASES)
def test_silent_where_it_is_not(rule: str) -> None:
    assert ask(rule, CASES[rule][1]) == []


def test_every_rule_has_its_two_cases_its_words_and_a_known_severity() -> None:
    assert set(CASES) == set(RULES)
    for rule in RULES.values():
        assert rule.severity in (*SEVERITIES, "by gain")
        assert (rule.severity == "by gain") == bool(rule.bound), "a gain has a bound"
        assert not rule.bound or rule.bound.endswith(".")
        assert rule.meaning.endswith(".")
        assert rule.threshold.endswith(".")
        assert rule.advice.endswith(".")
        assert re.fullmatch(r"[a-z0-9-]+", rule.id)


def test_every_rule_that_can_gain_says_in_a_few_words_what_to_change() -> None:
    for rule in RULES.values():
        assert bool(rule.remedy) == (rule.severity == "by gain"), rule.id
        assert len(rule.remedy) <= 48, "it must fit beside the gain in 80 columns"
