"""From what the traces of a run tell to one result per claim: ``judge``.

A check holds where every variant that the claim selects has a trace that tells so and none that refutes it.
One trace that refutes it is enough. Everything else is not checked, and the result says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from profrun.analysis.compare.expect.amounts import bytes_of
from profrun.analysis.compare.expect.calls import gpu_categories
from profrun.analysis.compare.expect.checks import ONLY_TIMES, QUESTIONS, applies, collected_by
from profrun.analysis.compare.expect.model import Answer, Asked, Check, Told, untold
from profrun.analysis.compare.expect.pairs import ratio_to, same_kernels_as
from profrun.analysis.compare.expect.words import expected_text
from profrun.contract.denominator import STEP, Denominator
from profrun.jobs.expectation import GPU_QUANTITIES, Expectation
from profrun.store.run_claims import CheckResult, ClaimResult, ClaimState

_Pair = Callable[[Sequence[Told], Sequence[Told], str | None, Any], Asked]
_PAIRS: Mapping[str, _Pair] = {"same_kernels": same_kernels_as, "ratio": ratio_to, "bytes": bytes_of}
_STATES: tuple[tuple[ClaimState, bool | None], ...] = (
    ("refuted", False),
    ("not checked", None),
    ("held", True),
)
"""The states of a claim with the answers that give them, the most telling first."""


def judge(
    expectations: Sequence[Expectation], told: Sequence[Told], variants: Sequence[str | None]
) -> tuple[ClaimResult, ...]:
    """One result per expectation that asks something, in the order of the job.

    Args:
        told: what each trace tells, in the order of the trials.
        variants: all variants of the run, also those without a trace.
    """
    return tuple(
        _claim(number, one, told, variants)
        for number, one in enumerate(expectations)
        if any(value is not False for value in one.checks.values())  # `no_sync_in_step: false` asks nothing
    )


def needs_gpu(claim: Expectation) -> bool:
    """Can no run without a GPU check this claim? One of its checks is then about GPU work."""
    if claim.vendor is not None:
        return claim.vendor != "none"
    return any(_is_of_gpu(key, value) for key, value in claim.checks.items())


def _is_of_gpu(key: str, value: Any) -> bool:
    """Is a check about GPU work, whatever the trace?"""
    if key == "ratio":
        return bool(value.of in GPU_QUANTITIES)
    if key == "counts":
        return bool(gpu_categories(value))
    return key in _PAIRS or QUESTIONS[key].on_gpu


def _claim(
    number: int, claim: Expectation, told: Sequence[Told], variants: Sequence[str | None]
) -> ClaimResult:
    mine = [name for name in variants if claim.selects(name)]
    about = [one for one in told if one.variant in mine]
    checks = tuple(
        _result(key, value, _denominator(key, about), list(_checks(number, claim, key, value, told, mine)))
        for key, value in claim.checks.items()
        if value is not False
    )
    states = [one.state for one in checks]
    state = next(one for one, _ in _STATES if one in states)
    return ClaimResult(
        number=number,
        claim=claim.claim or "; ".join(one.expected for one in checks),
        state=state,
        checks=checks,
        source=claim.source,
        variants=tuple(name for name in mine if name is not None),
        vendor=claim.vendor,
        collector=claim.collector,
        phase=claim.phase,
    )


def _checks(
    number: int,
    claim: Expectation,
    key: str,
    value: Any,
    told: Sequence[Told],
    variants: Sequence[str | None],
) -> Iterator[Check]:
    """The answers to one check: at least one per variant."""
    base = claim.others.get(key)
    for variant in variants:
        if variant is not None and variant == base and claim.blocking != "on":
            continue  # a variant is not compared with itself, but for its twin without launch blocking
        group = [one for one in told if one.variant == variant]
        lacking = _lacking(claim, group, variant)
        if lacking is not None:
            yield Check(number, key, variant, lacking, ())
        elif key in QUESTIONS:
            yield from _telling([one for each in group for one in each.checks if _is(one, number, key)])
        else:
            answer, labels = _between(claim, key, value, told, group, base)
            yield Check(number, key, variant, answer, labels)


def _is(check: Check, number: int, key: str) -> bool:
    return (check.number, check.key) == (number, key)


def _lacking(claim: Expectation, group: Sequence[Told], variant: str | None) -> Answer | None:
    """Why no trace of a variant is one that the claim is about; None where there is one."""
    name = variant or "this"
    if not group:
        return untold(f"no trace of {name}")
    if claim.vendor is not None and all(one.vendor != claim.vendor for one in group):
        return untold(_other_vendor(claim.vendor, group[0].vendor))
    about = [
        one
        for one in group
        if applies(
            claim,
            variant=variant,
            vendor=one.vendor,
            collector=one.collector,
            tool=one.tool,
            blocking=one.blocking,
        )
    ]
    if about:
        return None
    if claim.collector is not None and claim.collector not in [one.collector for one in group]:
        fix = f"run the job with `{claim.collector}` among its collectors"
        return untold(f"no {claim.collector} trial of {name}", fix)
    return untold(f"no trial of {name} with launch blocking {claim.blocking}")


def _other_vendor(wanted: str, seen: str) -> str:
    """Why a claim about one vendor's GPUs is not about these trials."""
    if seen == "none":
        return "no GPU"
    return "the trials ran with a GPU" if wanted == "none" else f"the GPUs are of {seen}, not of {wanted}"


def _telling(checks: Sequence[Check]) -> Sequence[Check]:
    """The answers of the traces that can tell, of those that measured where there are some; else the one that
    says best why none can.
    """
    known = [one for one in checks if one.answer.passed is not None]
    measured = [one for one in known if one.answer.measured]
    return measured or known or sorted(checks, key=lambda one: one.answer.why == ONLY_TIMES)[:1]


def _between(
    claim: Expectation, key: str, value: Any, told: Sequence[Told], group: Sequence[Told], base: str | None
) -> Asked:
    """The answer to a check that compares variants, or that needs all trials of one."""

    def about(traces: Sequence[Told], blocking: str | None) -> list[Told]:
        return [
            one
            for one in traces
            if (claim.vendor is None or claim.vendor == one.vendor)
            and collected_by(claim, vendor=one.vendor, collector=one.collector, tool=one.tool)
            and blocking in (None, "on" if one.blocking else "off")
        ]

    other = about([one for one in told if one.variant == base], claim.blocking and "off")
    if base is not None and not other:
        return untold(f"no such trace of {base}"), ()
    return _PAIRS[key](about(group, claim.blocking), other, claim.phase, value)


def _denominator(key: str, told: Sequence[Told]) -> Denominator:
    """What the numbers of a check are of in these traces: of runs only where none has steps."""
    found = [trial.conditions.denominator for one in told for trial in one.trials.values()]
    if key == "bytes":
        found = [one.dram_of for one in told if one.dram.value is not None]
    return found[0] if found and not any(one.several for one in found) else STEP


def _result(key: str, value: Any, of: Denominator, checks: Sequence[Check]) -> CheckResult:
    """One check over all traces."""
    by_state = {state: [one for one in checks if one.answer.passed is passed] for state, passed in _STATES}
    state = next((state for state, found in by_state.items() if found), _STATES[1][0])
    shown = by_state[state] or [Check(0, key, None, untold("no other variant to compare with"), ())]
    answer = shown[0].answer
    told = by_state["refuted"] + by_state["held"]
    return CheckResult(
        key=key,
        expected=expected_text(key, value, of),
        state=state,
        found=_by_variant(shown, [one.answer.found for one in shown], checks),
        value=answer.value,
        ci95=answer.ci95,
        unit=answer.unit if answer.value is not None else "",
        why=_by_variant(shown, [one.answer.why for one in shown], checks),
        fix=answer.fix,
        trials=tuple(dict.fromkeys(name for one in told for name in one.trials)),
        refuted_on=tuple(dict.fromkeys(name for one in by_state["refuted"] for name in one.trials)),
    )


def _by_variant(shown: Sequence[Check], texts: Sequence[str], checks: Sequence[Check]) -> str:
    """The first text of each variant with its name; the text alone where it is that of all checks."""
    if len({one.variant for one in checks}) == 1 or len(set(texts)) == 1 == len(checks) // len(texts):
        return texts[0]
    first: dict[str | None, str] = {}
    for one, text in zip(shown, texts, strict=True):
        first.setdefault(one.variant, text)
    return "; ".join(f"{variant}: {text}" for variant, text in first.items() if text)
