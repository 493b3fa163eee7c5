"""Guesses about kernels: how many per step, which ops are fused, in which type, with which share of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from profrun.analysis.compare.compared_trial import KernelGroup
from profrun.analysis.compare.expect.evidence import Evidence, matches
from profrun.analysis.compare.expect.model import Answer, untold
from profrun.analysis.compare.kernel_identity import op_base_name
from profrun.analysis.kernel_names import CATEGORIES, MATRIX_CATEGORIES
from profrun.contract.units import percent_text

KNOWN_TIME = 0.95
"""Share of the time of matrix kernels whose names must tell the type before a guess about it can hold."""
_ROLE_SHARES = ("memcpy", "memset")
"""Categories of GPU work beside those of kernels."""


def kernels_per_step(evidence: Evidence, limits: tuple[int, int]) -> Answer:
    """Does every whole step launch so many kernels, from the lower to the upper limit?"""
    low, high = limits
    counts = {one.step: one.kernels for one in evidence.trial.samples if not one.edge}
    if not counts:
        return untold(f"no whole {evidence.of.of} in this trace")
    wrong = {step: count for step, count in counts.items() if not low <= count <= high}
    numbers = sorted(set(counts.values()))
    text = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    if not wrong:
        value = float(numbers[0]) if len(numbers) == 1 else None
        where = f"in each of {len(counts)} steps" if evidence.of.several else evidence.of.rate
        return Answer(True, f"{text} {where}", value, unit="calls")
    kernels = [group for group in evidence.trial.kernel_groups if group.category not in _ROLE_SHARES]
    most = sorted(kernels, key=lambda group: -group.calls)[:3]
    names = ", ".join(
        f"{group.calls / evidence.samples:g} x {evidence.short_name(group.name)}" for group in most
    )
    where = f" (step {next(iter(wrong))})" if len(numbers) > 1 else ""
    return Answer(False, f"{text} {evidence.of.rate}{where}, most often {names}")


def fused(evidence: Evidence, globs: Sequence[str]) -> Answer:
    """Does no op that matches run as a kernel of its own?"""
    groups = evidence.trial.kernel_groups
    with_ops = any(group.op for group in groups)
    held = []
    for glob in globs:
        alone = [group for group in groups if _runs_alone(evidence, group, glob, with_ops=with_ops)]
        if alone:
            count = sum(group.calls for group in alone) / evidence.samples
            return Answer(
                False,
                f"{glob} runs as {evidence.short_name(alone[0].name)}, {count:g} times {evidence.of.rate}",
            )
        held += [
            fact.short
            for fact in evidence.trial.facts.values()
            if any(matches(op, glob) for op in fact.fused_ops)
        ]
    inside = ", ".join(dict.fromkeys(held))
    return Answer(
        True, f"inside {inside}" if inside else "no kernel is of these ops alone; none names them either"
    )


def _runs_alone(evidence: Evidence, group: KernelGroup, glob: str, *, with_ops: bool) -> bool:
    """Is this kernel the op's own: launched by it, or (without ops in the trace) named after it?"""
    fact = evidence.trial.facts.get(group.name)
    if fact is not None and len(fact.fused_ops) > 1:
        return False
    if fact is not None and len(fact.fused_ops) == 1 and matches(fact.fused_ops[0], glob):
        return True
    if with_ops:
        op = group.op
        return op is not None and (matches(op, glob) or matches(op_base_name(op), glob))
    return fnmatchcase(group.name.lower(), f"*{glob.removeprefix('aten::').lower()}*")


def dtype(evidence: Evidence, wanted: str) -> Answer:
    """Do all matrix kernels work in this type?"""
    time: dict[str, int] = {}
    for group in evidence.trial.kernel_groups:
        fact = evidence.trial.facts.get(group.name)
        if group.category in MATRIX_CATEGORIES and fact is not None:
            name = fact.dtype or "unknown"
            time[name] = time.get(name, 0) + group.ns
    known = {name: ns for name, ns in time.items() if name != "unknown"}
    if not time:
        return Answer(False, "no matrix kernel at all")
    if not known:
        return untold("the names of the matrix kernels do not tell their type")
    whole = sum(time.values())
    shares = sorted(time, key=lambda name: -time[name])
    text = ", ".join(f"{name} {percent_text(time[name] / whole if whole else 0.0)}" for name in shares)
    right = set(known) == {wanted}
    if right and sum(known.values()) < KNOWN_TIME * whole:
        return Answer(  # what is known is as claimed, and too little is known
            None, f"{text} of matrix kernel time", why="too few names of matrix kernels tell their type"
        )
    return Answer(right, f"{text} of matrix kernel time")


def max_share(evidence: Evidence, limits: Mapping[str, float]) -> Answer:
    """Does each kernel (glob) or category have at most its share of the GPU time of the steps?"""
    whole = sum(group.ns for group in evidence.trial.kernel_groups)
    if not whole:
        return untold(f"no GPU time in {evidence.of.every}")
    shares = {name: _time_of(evidence, name) / whole for name in limits}
    text = ", ".join(f"{name} {percent_text(share)}" for name, share in shares.items())
    right = all(share <= limits[name] for name, share in shares.items())
    value = next(iter(shares.values())) if len(shares) == 1 else None
    return Answer(right, f"{text} of the GPU time of {evidence.of.every}", value, unit="share")


def _time_of(evidence: Evidence, name: str) -> int:
    """GPU ns of a category, or of the kernels that match a glob."""
    by_category = name in CATEGORIES or name in _ROLE_SHARES
    return sum(
        group.ns
        for group in evidence.trial.kernel_groups
        if (group.category == name if by_category else _kernel_matches(evidence, group.name, name))
    )


def _kernel_matches(evidence: Evidence, name: str, glob: str) -> bool:
    fact = evidence.trial.facts.get(name)
    return matches(name, glob) or (fact is not None and matches(fact.raw, glob))
