"""Findings ask for experiments: by cause, the largest promise first; what helped is stacked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.experiments import Experiment, excluded, experiments_of, stacked
from profrun.analysis.rules.finding import RuleFinding
from profrun.contract.changes import CHANGES, parse
from profrun.errors import UsageError
from profrun.store.improvement import Promised


def finding(code: str, share: float | None, explained_by: str | None = None) -> RuleFinding:
    gain = None if share is None else round(share * 10_000_000)
    (rule,) = [one for one in all_rules() if one.id == code]
    found = RuleFinding(code, "info", "", gain_ns=gain, step_ns=10_000_000, gain_share=share)
    return replace(found, explained_by=explained_by, experiments=rule.experiments)


FINDINGS = [
    finding("fp32-gemm", 0.4),
    finding("pointwise-chains", 0.1),
    finding("memory-bound", None),
    finding("low-utilization", 0.6, explained_by="dataloader-stall"),
    finding("dominant-kernel", 0.9),
    finding("copies-not-overlapped", 0.001),
]


def test_each_rule_names_changes_that_there_are() -> None:
    named = [text for rule in all_rules() for text in rule.experiments]
    assert [parse(text).text for text in named] == named
    by_name = CHANGES.keys() - {parse(text).kind.name for text in named}
    assert by_name == {"nothing", "attention", "connections", "foreach-optimizer"}


def test_a_finding_asks_and_its_consequences_do_not() -> None:
    found = {one.name: one for one in experiments_of(FINDINGS)}
    assert list(found) == [
        "autocast-bfloat16",
        "tf32",
        "compile-default",
        "fused-optimizer",
    ]
    assert found["autocast-bfloat16"].promises == (
        Promised("fp32-gemm", 4_000_000, 0.4),
        Promised("memory-bound", None, None),
    )
    assert found["compile-default"].promised == 0.1


def test_promises_of_several_findings_for_one_change_decide_its_place() -> None:
    found = [finding("fp32-gemm", 0.4), finding("pointwise-chains", 0.3), finding("unfused-attention", 0.2)]
    first = experiments_of(found)[0]
    assert (first.name, first.promised) == ("compile-default", 0.5)
    assert [one.rule for one in first.promises] == ["pointwise-chains", "unfused-attention"]


def test_only_names_rules_and_changes() -> None:
    assert [one.name for one in experiments_of(FINDINGS, ["fp32-gemm"])] == ["autocast-bfloat16", "tf32"]
    (one,) = experiments_of(FINDINGS, ["loader-workers=2"])
    assert (one.changes, one.promises) == (("loader-workers=2",), ())
    (asked,) = experiments_of(FINDINGS, ["tf32"])
    assert asked.promised == 0.4
    with pytest.raises(UsageError, match="--only fp32-gem: there is no change") as caught:
        experiments_of(FINDINGS, ["fp32-gem"])
    assert "fp32-gemm" in str(caught.value)
    with pytest.raises(UsageError, match=r"^--only autocast=fp8: .*; write autocast=bfloat16$"):
        experiments_of([], ["autocast=fp8"])


def test_what_the_base_has_is_not_tried_again() -> None:
    names = [one.name for one in experiments_of(FINDINGS, have=["tf32"])]
    assert names == ["compile-default", "fused-optimizer"]


def test_of_what_excludes_each_other_the_better_is_kept() -> None:
    best = [
        Experiment("autocast-bfloat16", ("autocast=bfloat16",)),
        Experiment("tf32", ("tf32",)),
        Experiment("mine", (), {"workers": 4}),
        Experiment("pinned-memory", ("pinned-memory",)),
        Experiment("yours", (), {"workers": 8}),
    ]
    kept = stacked(best, "together")
    assert kept == Experiment("together", ("autocast=bfloat16", "pinned-memory"), {"workers": 4})
    assert [one.name for one in excluded(best, kept)] == ["tf32", "yours"]
