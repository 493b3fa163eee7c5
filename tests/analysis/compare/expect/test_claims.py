"""One result per claim: over repeats, over variants, and where nothing can tell."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.expect import Answer, Check, Told, judge, tell
from profrun.analysis.compare.expect.claims import needs_gpu
from profrun.jobs.expectation import Achieved, DramBytes, Expectation, Ratio, SameKernels
from profrun.store.run_claims import ClaimResult
from tests.analysis.compare.expect.steps import TWO
from tests.analysis.kit import memory_trace, step


def told(label: str, *passed: bool | None, variant: str = "a", trial: ComparedTrial | None = None) -> Told:
    """What a trace says of checks of dtype, one for each claim."""
    checks = [
        Check(
            number,
            "dtype",
            variant,
            Answer(one, f"of {label}", why="" if one is not None else "unknown"),
            (label,),
        )
        for number, one in enumerate(passed)
    ]
    return Told(label, variant, "nvidia", "torch", "torch", False, tuple(checks), {}, Answer(None))


def judged(*traces: Told, variants: tuple[str, ...] = ("a",)) -> ClaimResult:
    (result,) = judge([Expectation(dtype="fp16")], traces, variants)
    return result


def test_one_repeat_that_refutes_a_claim_is_enough_and_is_named() -> None:
    result = judged(told("r1", True), told("r2", False), told("r3", None))
    check = result.checks[0]
    assert (result.state, check.found, check.refuted_on) == ("refuted", "of r2", ("r2",))


def test_a_claim_holds_where_every_trace_that_can_tell_says_so() -> None:
    result = judged(told("r1", None), told("r2", True))
    assert (result.state, result.checks[0].found, result.checks[0].trials) == ("held", "of r2", ("r2",))
    none = judged(told("r1", None))
    assert (none.state, none.checks[0].why) == ("not checked", "unknown")


def test_a_claim_about_several_variants_needs_each_of_them() -> None:
    both = judged(told("r1", True), told("r2", True, variant="b"), variants=("a", "b"))
    assert (both.state, both.variants) == ("held", ("a", "b"))
    assert both.checks[0].found == "a: of r1; b: of r2"
    lacking = judged(told("r1", True), variants=("a", "b"))
    assert (lacking.state, lacking.checks[0].why) == ("not checked", "b: no trace of b")


def test_all_checks_of_a_claim_must_hold() -> None:
    claim = Expectation(claim="It is small.", source="a page", kernels_per_step=(2, 2), dtype="bf16")
    trace = memory_trace(TWO, meta={"job": {"variant": "a"}})
    (result,) = judge([claim], [tell(trace, [claim])], ["a"])
    assert (result.claim, result.source, result.state) == ("It is small.", "a page", "refuted")
    assert [(one.key, one.state) for one in result.checks] == [
        ("kernels_per_step", "held"),
        ("dtype", "refuted"),
    ]
    assert result.telling == (result.checks[1],)


CPU: dict[str, Any] = {"vendor": "none", "job": {"variant": "a", "collector": "torch"}}


@pytest.mark.parametrize(
    ("selects", "why"),
    [
        ({"vendor": "nvidia", "present": ("aten::mm",)}, "no GPU"),
        ({"kernels_per_step": (1, 1)}, "no GPU"),
        ({"achieved": Achieved(occupancy=(0.0, 1.0))}, "no GPU"),
        ({"collector": "nsys", "present": ("aten::mm",)}, "no nsys trial of a"),
        ({"phase": "decode", "present": ("aten::mm",)}, "no range decode in the recorded steps"),
        ({"blocking": "on", "present": ("aten::mm",)}, "no trial of a with launch blocking on"),
        ({"finds": ("no-such-rule",)}, "there is no rule no-such-rule"),
    ],
)
def test_what_a_run_cannot_tell_is_said(selects: dict[str, Any], why: str) -> None:
    rows = [step(0, 0, 1000), ("op", "aten::mm", 10, 5, "main")]
    claim = Expectation(**selects)
    (result,) = judge([claim], [tell(memory_trace(rows, meta=CPU), [claim])], ["a"])
    assert (result.state, result.checks[0].why) == ("not checked", why)


def test_a_claim_about_runs_without_a_gpu_is_not_checked_with_one() -> None:
    claim = Expectation(vendor="none", present=("aten::mm",))
    told_here = tell(memory_trace(TWO, meta={"job": {"variant": "a"}}), [claim])
    (result,) = judge([claim], [told_here], ["a"])
    assert result.checks[0].why == "the trials ran with a GPU"


@pytest.mark.parametrize(
    ("checks", "needs"),
    [
        ({"vendor": "nvidia", "present": ("aten::mm",)}, True),
        ({"vendor": "none", "kernels_per_step": (1, 1)}, False),
        ({"present": ("aten::mm",), "absent": ("aten::add",)}, False),
        ({"present": ("aten::mm",), "kernels_per_step": (1, 1)}, True),
        ({"counts": {"aten::mm": (1, 1)}}, False),
        ({"counts": {"aten::mm": (1, 1), "gemm": (1, 1)}}, True),
        ({"ratio": Ratio(to="b", below=1)}, False),
        ({"ratio": Ratio(to="b", of="cpu_time", below=1)}, False),
        ({"ratio": Ratio(to="b", of="launches", below=1)}, True),
        ({"same_kernels": SameKernels(as_="b")}, True),
        ({"bytes": DramBytes(below=1)}, True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else str(value),
)
def test_a_claim_that_only_a_run_with_a_gpu_can_check(checks: dict[str, Any], needs: bool) -> None:
    claim = Expectation(**{"variant": ("a",), **checks})
    rows = [step(0, 0, 1000), ("op", "aten::mm", 10, 5, "main")]
    traces = [
        memory_trace(rows, meta={**CPU, "job": {"variant": name, "collector": "torch"}}) for name in "ab"
    ]
    (result,) = judge([claim], [tell(trace, [claim]) for trace in traces], ["a", "b"])
    without = any(one.why == "no GPU" for one in result.checks)
    assert (needs_gpu(claim), without) == (needs, needs)
