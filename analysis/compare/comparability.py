"""May two sides be compared at all? Reasons before any number."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import combinations

from profrun.analysis.compare.align import identity
from profrun.analysis.compare.model import Reason, Severity
from profrun.analysis.compare.trial import Conditions, Trial

STOPS = {
    "same_recording": "both sides hold the same recording",
    "work": "different work a step, or work of which nothing tells that it is the same",
    "mixed": "the trials of one side do different work or were recorded differently",
    "profiled": "one side is profiled, the other is not",
    "collector": "the sides were recorded by different profilers",
    "clock": "step time is not the same quantity on both sides",
    "blocking": "launch blocking on one side only",
    "throttled": "a GPU was throttled on one side only",
    "replayed": "kernels were replayed or serialised to read counters",
    "ranks": "different numbers of ranks",
    "unreliable": "the trace's step or kernel numbers are wrong",
    "no_steps": "no steps, and not the same kernels",
    "no_times": "a trial has no whole step",
}
"""Code -> what it stops for; a caller may allow each, and the result says so."""

AMOUNT = re.compile(
    r"^(?:(?:micro_?|mini_?|global_?|train_?|eval_?)?(?:batch(?:_?size)?|bs)|seq(?:_?len(?:gth)?)?|sequence\w*"
    r"|context\w*|tokens?|samples|rows|dim|d_model|hidden\w*|width|depth|n?_?layers?|n?_?heads?|vocab\w*|size|image\w*"
    r"|resolution|frames|m|n|k|channels|accum\w*|grad_accum\w*|input_len|output_len|prompt\w*|max_new_tokens)$",
    re.IGNORECASE,
)
"""Variant values that say how much work a step is; others (precision, compile, attention) say how it is
done."""
SAME_FLOPS = 0.02
"""Relative difference of matrix FLOPs a step up to which two sides do the same work."""
RECOMPUTE = 1.5
"""Up to this FLOP ratio, declared equal inputs are believed: recomputation and padding explain it."""
FEW_STEPS = 10


def reasons(
    a: Sequence[Trial], b: Sequence[Trial], *, allow: Collection[str] = (), per: bool = False
) -> list[Reason]:
    """Everything that speaks against comparing, gravest first; stops in ``allow`` are marked.

    Args:
        per: step time is divided by an amount of work, so that different work is no stop.
    """
    found: list[Reason] = []
    for check in (_same_recording, _times, _unreliable, _recorded, _mixed, _states, _machines, _samples):
        found += check(a, b)
    found += _work(a, b)
    passed = set(allow) | ({"work", "ranks"} if per else set())
    marked = [
        Reason(one.code, one.severity, one.message, one.severity == "stop" and one.code in passed)
        for one in found
    ]
    rank = {"stop": 0, "care": 1, "note": 2}
    return sorted(marked, key=lambda one: (one.allowed, rank[one.severity]))


def stopped(found: Sequence[Reason]) -> bool:
    """Does anything stop the comparison?"""
    return any(one.severity == "stop" and not one.allowed for one in found)


def _differ(
    code: str, what: str, a: Collection[object], b: Collection[object], severity: Severity
) -> list[Reason]:
    left, right = ("/".join(sorted(map(str, side))) for side in (set(a), set(b)))
    if left == right:
        return []
    return [Reason(code, severity, f"{what}: {left or 'none'} against {right or 'none'}")]


def _same_recording(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    seen = {trial.conditions.fingerprint: trial.conditions.label for trial in a}
    both = [trial.conditions for trial in b if trial.conditions.fingerprint in seen]
    found = [
        Reason(
            "same_recording", "stop",
            f"{seen[one.fingerprint]} and {one.label} are the same recording, on both sides",
        )
        for one in both[:1]
    ]  # fmt: skip
    for side, trials in (("a", a), ("b", b)):
        for one, two in combinations([trial.conditions for trial in trials], 2):
            if one.fingerprint == two.fingerprint:
                text = f"{one.label} and {two.label} of side {side} are the same recording: it counts twice"
                return [*found, Reason("same_recording", "stop", text)]
    return found


def _times(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    return [
        Reason("no_times", "stop", f"{trial.conditions.label} has no whole step with a time above 0")
        for trial in (*a, *b)
        if not trial.times
    ]


def _unreliable(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    found = []
    for trial in (*a, *b):
        one = trial.conditions
        if one.replayed:
            text = f"{one.label}: kernels ran one by one or were replayed to read counters; no timeline"
            found.append(Reason("replayed", "stop", text))
        else:
            found += [Reason("unreliable", "stop", f"{one.label}: {text}") for _, text in one.doubts]
        if one.total_gpu_ns and one.outside_ns / one.total_gpu_ns > 0.01 and one.measure == "span":
            share = 100 * one.outside_ns / one.total_gpu_ns
            text = (
                f"{one.label}: {share:.1f} % of its GPU time was launched by no whole step (stragglers of "
                "the window's edges, or outside of steps) and is in no row"
            )
            found.append(Reason("window_edge", "care", text))
    return found


def _recorded(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    left, right = [one.conditions for one in a], [one.conditions for one in b]
    profiled = {one.profiled for one in left}, {one.profiled for one in right}
    if profiled[0] != profiled[1]:
        names = "/".join(sorted({one.collector for one in (*left, *right) if one.profiled}))
        text = f"one side was profiled ({names}), the other not: the difference holds the profiler's overhead"
        return [Reason("profiled", "stop", text)]
    timeline = {"nsys", "rocprof"}
    collectors = {one.collector for one in left}, {one.collector for one in right}
    found = []
    if collectors[0] != collectors[1]:
        alike = collectors[0] <= timeline and collectors[1] <= timeline
        what = "profilers with overheads of their own" if alike else "different profilers"
        found += _differ("collector", what, *collectors, "care" if alike else "stop")
    measures = {one.measure for one in left}, {one.measure for one in right}
    if measures[0] != measures[1]:
        found += _differ("clock", "what a step's time is", *measures, "stop")
    return found


def _mixed(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    """Trials of one side must be repeats of one thing."""
    found = []
    for side, trials in (("a", a), ("b", b)):
        first = trials[0]
        for other in trials[1:]:
            one, two = first.conditions, other.conditions
            for what, left, right in (
                ("collector", one.collector, two.collector),
                ("ranks", one.ranks, two.ranks),
                ("GPU", one.devices, two.devices),
                ("launch blocking", is_blocking(one), is_blocking(two)),
            ):
                if left != right:
                    text = f"side {side} mixes {what}: {one.label} {left}, {two.label} {right}"
                    found.append(Reason("mixed", "stop", text))
            difference = _work_of_two(first, other)
            if difference is not None and difference[0]:
                text = f"side {side}: {one.label} and {two.label} do different work: {difference[1]}"
                found.append(Reason("mixed", "stop", text))
    return found[:4]


def is_blocking(one: Conditions) -> bool | None:
    """Were launches blocking: what the trial says, else what its launches show; None when neither tells."""
    if one.blocking is not None:
        return one.blocking
    if one.blocking_seen is None:
        return None
    return one.blocking_seen > 0.9


def _states(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    found = []
    blocking = [{is_blocking(trial.conditions) for trial in side} - {None} for side in (a, b)]
    if blocking[0] and blocking[1] and blocking[0] != blocking[1]:
        text = "launches block on one side only: see `profrun blocking`"
        found.append(Reason("blocking", "stop", text))
    throttled = [{reason for trial in side for reason in trial.conditions.throttled} for side in (a, b)]
    if throttled[0] != throttled[1]:
        names = ", ".join(sorted(throttled[0] ^ throttled[1]))
        found.append(Reason("throttled", "stop", f"a GPU was throttled on one side only: {names}"))
    elif throttled[0]:
        text = f"GPUs were throttled on both sides: {', '.join(sorted(throttled[0]))}"
        found.append(Reason("throttled", "care", text))
    clocks = [
        [trial.conditions.sm_mhz for trial in side if trial.conditions.sm_mhz is not None] for side in (a, b)
    ]
    if clocks[0] and clocks[1]:
        low, high = sorted((min(clocks[0]), min(clocks[1])))
        if low > 0 and high / low > 1.1:
            text = f"SM clocks after the trials differ: {min(clocks[0]):.0f} against {min(clocks[1]):.0f} MHz"
            found.append(Reason("clocks", "care", text))
    return found


def _machines(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    left, right = a[0].conditions, b[0].conditions
    found = []
    if left.ranks != right.ranks:
        text = f"{left.ranks} ranks against {right.ranks}: a step of more ranks is more work"
        found.append(Reason("ranks", "stop", text))
    found += _differ("vendor", "vendors", {left.vendor}, {right.vendor}, "note")
    found += _differ("device", "GPUs", left.devices, right.devices, "note")
    for key in sorted({*left.software, *right.software} - {"host"}):
        if left.software.get(key) != right.software.get(key):
            pair = f"{left.software.get(key, 'unknown')} against {right.software.get(key, 'unknown')}"
            found.append(Reason("software", "note", f"{key}: {pair}"))
    return found


def _samples(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    found = []
    for side, trials in (("a", a), ("b", b)):
        steps = [len(trial.times) for trial in trials]
        if steps and min(steps) < FEW_STEPS and trials[0].conditions.measure != "recording":
            fewest = f"{min(steps)} whole step{'s' * (min(steps) != 1)}"
            text = f"side {side}: only {fewest} in a trial: one slow step moves the median"
            found.append(Reason("few_steps", "note", text))
        unsteady = [trial.conditions.label for trial in trials if not trial.work.steady]
        if unsteady:
            text = f"side {side}: the steps of {unsteady[0]} do not all launch the same kernels"
            found.append(Reason("unsteady", "care", text))
    return found


def _work(a: Sequence[Trial], b: Sequence[Trial]) -> list[Reason]:
    difference = _work_of_two(a[0], b[0])
    left, right = a[0].conditions, b[0].conditions
    found = []
    if difference is None:
        text = (
            "nothing tells whether both sides do the same work a step: no shapes, no declared values, and "
            "other kernels"
        )
        found.append(Reason("work", "stop", text))
    elif difference[0]:
        found.append(Reason("work", "stop", f"different work a step: {difference[1]}"))
    elif difference[1]:
        found.append(Reason("work_note", "note", difference[1]))
    others = sorted(
        key
        for key in {*left.values, *right.values}
        if not AMOUNT.match(key) and left.values.get(key) != right.values.get(key)
    )
    for key in others:
        text = f"{key}: {left.values.get(key)} against {right.values.get(key)}"
        found.append(Reason("variant", "note", text))
    if "recording" in (left.measure, right.measure) and _kernels(a[0]) != _kernels(b[0]):
        text = "there are no steps, and the recordings hold different kernels: more or less work, not faster"
        found.append(Reason("no_steps", "stop", text))
    return found


def _work_of_two(a: Trial, b: Trial) -> tuple[bool, str] | None:
    """(is the work different, why); None when nothing tells. What was seen counts before what was said."""
    left, right = a.conditions, b.conditions
    flops = (a.work.matrix_flops, b.work.matrix_flops)
    whole = not (a.work.unknown_ops or b.work.unknown_ops)
    ratio = flops[1] / flops[0] if flops[0] and flops[1] else None
    if left.inputs and right.inputs:
        if _dims(left.inputs) != _dims(right.inputs):
            return True, f"inputs {left.inputs} against {right.inputs}"
        if ratio is None or 1 / RECOMPUTE < ratio < RECOMPUTE:
            return False, "" if ratio is None or abs(ratio - 1) <= SAME_FLOPS else _flops_text(flops)
    if ratio is not None and (whole or abs(ratio - 1) <= SAME_FLOPS):
        if abs(ratio - 1) <= SAME_FLOPS:
            return False, ""
        return True, _flops_text(flops) + _rows_text(a, b)
    if _kernels(a) and _kernels(a) == _kernels(b):
        return False, ""
    amounts = sorted(key for key in {*left.values, *right.values} if AMOUNT.match(key))
    differ = [key for key in amounts if left.values.get(key) != right.values.get(key)]
    if differ:
        pairs = (f"{key} {left.values.get(key)} against {right.values.get(key)}" for key in differ)
        return True, ", ".join(pairs)
    if amounts or (left.job and left.job == right.job and left.variant == right.variant):
        return False, ""
    return None


def _flops_text(flops: tuple[float | None, float | None]) -> str:
    a, b = flops[0] or 0.0, flops[1] or 0.0
    return f"{a / 1e9:.4g} GFLOP of matrix work against {b / 1e9:.4g} ({b / a:.3g} times)" if a else ""


def _rows_text(a: Trial, b: Trial) -> str:
    if a.work.tokens and b.work.tokens and a.work.tokens != b.work.tokens:
        return f"; {a.work.first} against {b.work.first}; `--per token` divides by it"
    return ""


def _dims(text: str) -> list[str]:
    """Dimensions without dtypes: '[2, 128, 512] torch.float32' -> ['[2, 128, 512]']."""
    return re.findall(r"\[[^\]]*\]", text)


def _kernels(trial: Trial) -> dict[str, tuple[float, tuple[tuple[str, float], ...]]]:
    """Kernel launches a typical step by name, with their launch shapes: equal means the same GPU work."""
    units = max(1, len(trial.typical))
    counts: dict[str, int] = {}
    for atom in trial.atoms:
        if atom.role in ("compute", "comm"):  # every tool has its own names for copies and fills
            counts[atom.name] = counts.get(atom.name, 0) + atom.calls
    return {
        identity(name): (
            count / units,
            tuple(sorted((shape, n / units) for shape, n in _shapes(trial, name))),
        )
        for name, count in counts.items()
    }


def _shapes(trial: Trial, name: str) -> tuple[tuple[str, int], ...]:
    fact = trial.facts.get(name)
    return fact.shapes if fact else ()
