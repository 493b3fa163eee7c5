"""May two sides be compared? ``reasons`` is given their trials and returns what speaks against it.

A reason of severity critical stops the comparison: there is no number, unless the caller allows its code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions
from profrun.analysis.compare.model import Reason
from profrun.analysis.compare.same_work import AMOUNT, differing_values, kernel_launches, work_difference
from profrun.contract.finding import Severity, gravest_first
from profrun.contract.profilers import COUNTERS, TIMELINE, candidates

STOPS = {
    "same_recording": "both sides hold the same recording",
    "work": "different work per step, or nothing tells that it is the same",
    "mixed": "the trials of one side do different work or were recorded differently",
    "profiled": "one side is profiled, the other is not",
    "collector": "the sides were recorded by different profilers",
    "clock": "step time is not the same quantity on both sides",
    "blocking": "launch blocking on one side only",
    "throttled": "a GPU was throttled on one side only",
    "replayed": "kernels were replayed or serialised to read counters, or are known as means only",
    "ranks": "different numbers of ranks",
    "unreliable": "the trace's step or kernel numbers are wrong",
    "no_steps": "no steps, and not the same kernels",
    "no_times": "a trial has no whole step",
}
"""Code -> why it stops a comparison. A caller may allow each, and the result marks it."""
DIVIDED_AWAY = frozenset({"work", "ranks"})
"""Codes that do not stop a comparison of times per amount of work."""
FEW_STEPS = 10
Trials = Sequence[ComparedTrial]


def reasons(a: Trials, b: Trials, *, allow: Collection[str] = (), per: bool = False) -> list[Reason]:
    """Everything that speaks against a comparison, gravest first, allowed ones last.

    Args:
        allow: codes of ``STOPS`` that shall not stop it; their reasons are marked.
        per: step time is divided by an amount of work, so that different work does not stop it.
    """
    passed = {*allow, *(DIVIDED_AWAY if per else ())}
    found: list[Reason] = []
    for check in (
        _same_recording,
        _times,
        _unreliable,
        _recorded,
        _mixed,
        _states,
        _machines,
        _samples,
        _work,
    ):
        for one in check(a, b):
            allowed = one.severity == "critical" and one.code in passed
            found.append(replace(one, allowed=allowed))
    return sorted(gravest_first(found), key=lambda one: one.allowed)


def stopped(found: Iterable[Reason]) -> bool:
    """Does any reason prevent the comparison?"""
    return any(one.stops for one in found)


def recorded_alike(one: RecordingConditions, two: RecordingConditions) -> bool:
    """Were both recorded in the same way: by one tool, and not once for a timeline and once for counters?

    Of a trial whose job names the tool itself, only the tool is known.
    """
    neutral = {each.collector for each in (one, two) if each.collector != each.tool}
    return one.tool == two.tool and len(neutral) < 2


def _differ(
    code: str, severity: Severity, what: str, a: Iterable[object], b: Iterable[object]
) -> list[Reason]:
    left, right = ("/".join(sorted(set(map(str, side)))) for side in (a, b))
    if left == right:
        return []
    return [Reason(code, severity, f"{what}: {left or 'none'} against {right or 'none'}")]


def _same_recording(a: Trials, b: Trials) -> list[Reason]:
    seen = {trial.conditions.fingerprint: trial.conditions.label for trial in a}
    both = [trial.conditions for trial in b if trial.conditions.fingerprint in seen]
    texts = [f"{seen[one.fingerprint]} and {one.label} are the same recording, on both sides" for one in both]
    found = [Reason("same_recording", "critical", text) for text in texts[:1]]
    for side, trials in (("a", a), ("b", b)):
        for one, two in combinations([trial.conditions for trial in trials], 2):
            if one.fingerprint == two.fingerprint:
                text = f"{one.label} and {two.label} of side {side} are the same recording"
                return [*found, Reason("same_recording", "critical", text, "it would count twice")]
    return found


def _times(a: Trials, b: Trials) -> list[Reason]:
    return [
        Reason("no_times", "critical", f"{trial.conditions.label} has no whole step with a time above 0")
        for trial in (*a, *b)
        if not trial.times
    ]


def _unreliable(a: Trials, b: Trials) -> list[Reason]:
    found = []
    for trial in (*a, *b):
        one = trial.conditions
        if one.replayed:
            text = f"{one.label}: kernels ran one by one, were replayed to read counters or are means"
            found.append(Reason("replayed", "critical", text, "such a recording has no timeline"))
        else:
            found += [Reason("unreliable", "critical", f"{one.label}: {text}") for _, text in one.doubts]
        if one.total_gpu_ns and one.outside_ns / one.total_gpu_ns > 0.01 and one.measure == "span":
            share = 100 * one.outside_ns / one.total_gpu_ns
            text = (
                f"{one.label}: {share:.1f} % of its GPU time was launched by no whole step and is in no row"
            )
            why = "it belongs to steps at the edges of the window, or lies outside of steps"
            found.append(Reason("window_edge", "warning", text, why))
    return found


def _recorded(a: Trials, b: Trials) -> list[Reason]:
    left, right = [one.conditions for one in a], [one.conditions for one in b]
    profiled = {one.profiled for one in left}, {one.profiled for one in right}
    if profiled[0] != profiled[1]:
        names = "/".join(sorted({one.collector for one in (*left, *right) if one.profiled}))
        text = f"one side was profiled ({names}), the other not"
        return [Reason("profiled", "critical", text, "the difference holds the overhead of the profiler")]
    found = []
    tools = {one.tool for one in left}, {one.tool for one in right}
    if tools[0] != tools[1] and all(_records_timeline(one) for one in (*left, *right)):
        found += _differ("collector", "warning", "profilers with overheads of their own", *tools)
    elif not all(recorded_alike(one, two) for one in left for two in right):
        recorders = map(_recorder, left), map(_recorder, right)
        found += _differ("collector", "critical", "different profilers", *recorders)
    measures = {one.measure for one in left}, {one.measure for one in right}
    return found + _differ("clock", "critical", "what the time of a step is", *measures)


def _records_timeline(one: RecordingConditions) -> bool:
    """Is the tool the timeline profiler of a vendor? Two vendors can only be compared with two tools."""
    return one.collector != COUNTERS and one.tool in {found.name for found in candidates(TIMELINE)}


def _recorder(one: RecordingConditions) -> str:
    return one.tool if one.collector == one.tool else f"{one.tool} for {one.collector}"


def _mixed(a: Trials, b: Trials) -> list[Reason]:
    """Trials of one side must be repeats of one thing."""
    found = []
    for side, trials in (("a", a), ("b", b)):
        for other in trials[1:]:
            found += [
                Reason("mixed", "critical", f"side {side} {text}") for text in _no_repeat(trials[0], other)
            ]
    return found[:4]


def _no_repeat(first: ComparedTrial, other: ComparedTrial) -> list[str]:
    """Why a trial is no repeat of the first of its side, in words."""
    one, two = first.conditions, other.conditions
    pairs: list[tuple[str, object, object]] = [
        ("ranks", one.ranks, two.ranks),
        ("GPU", one.devices, two.devices),
        ("launch blocking", one.launches_block, two.launches_block),
    ]
    if not recorded_alike(one, two):
        pairs.insert(0, ("collector", _recorder(one), _recorder(two)))
    found = [
        f"mixes {what}: {one.label} {left}, {two.label} {right}"
        for what, left, right in pairs
        if left != right
    ]
    difference = work_difference(first, other)
    if difference is not None and difference.different:
        found.append(f"mixes work: {one.label} and {two.label} do different work: {difference.what}")
    return found


def _states(a: Trials, b: Trials) -> list[Reason]:
    found = []
    blocking = [{trial.conditions.launches_block for trial in side} - {None} for side in (a, b)]
    if blocking[0] and blocking[1] and blocking[0] != blocking[1]:
        text, fix = "launches block on one side only", "`profrun blocking` compares such trials"
        found.append(Reason("blocking", "critical", text, fix=fix))
    throttled = [{reason for trial in side for reason in trial.conditions.throttled} for side in (a, b)]
    if throttled[0] != throttled[1]:
        names = ", ".join(sorted(throttled[0] ^ throttled[1]))
        found.append(Reason("throttled", "critical", f"a GPU was throttled on one side only: {names}"))
    elif throttled[0]:
        text = f"GPUs were throttled on both sides: {', '.join(sorted(throttled[0]))}"
        found.append(Reason("throttled", "warning", text))
    a_mhz, b_mhz = (
        min((one.conditions.sm_mhz for one in side if one.conditions.sm_mhz is not None), default=0.0)
        for side in (a, b)
    )
    low, high = sorted((a_mhz, b_mhz))
    if low > 0 and high / low > 1.1:
        text = f"SM clocks after the trials differ: {a_mhz:.0f} against {b_mhz:.0f} MHz"
        found.append(Reason("clocks", "warning", text))
    return found


def _machines(a: Trials, b: Trials) -> list[Reason]:
    left, right = a[0].conditions, b[0].conditions
    found = []
    if left.ranks != right.ranks:
        text = f"{left.ranks} ranks against {right.ranks}"
        found.append(Reason("ranks", "critical", text, "a step of more ranks is more work"))
    found += _differ("vendor", "info", "vendors", [left.vendor], [right.vendor])
    found += _differ("device", "info", "GPUs", left.devices, right.devices)
    for key in sorted({*left.software, *right.software} - {"host"}):
        if left.software.get(key) != right.software.get(key):
            pair = f"{left.software.get(key, 'unknown')} against {right.software.get(key, 'unknown')}"
            found.append(Reason("software", "info", f"{key}: {pair}"))
    return found


def _samples(a: Trials, b: Trials) -> list[Reason]:
    found = []
    for side, trials in (("a", a), ("b", b)):
        fewest = min(len(trial.times) for trial in trials)
        if fewest < FEW_STEPS and trials[0].conditions.measure != "recording":
            text = f"side {side}: only {fewest} whole step{'s' * (fewest != 1)} in a trial"
            found.append(Reason("few_steps", "info", text, "one slow step moves the median"))
        unsteady = [trial.conditions.label for trial in trials if not trial.work.steady]
        if unsteady:
            text = f"side {side}: the steps of {unsteady[0]} do not all launch the same kernels"
            found.append(Reason("unsteady", "warning", text))
    return found


def _work(a: Trials, b: Trials) -> list[Reason]:
    difference = work_difference(a[0], b[0])
    left, right = a[0].conditions, b[0].conditions
    found = []
    if difference is None:
        text = "nothing tells whether both sides do the same work per step"
        why = "there are no shapes and no declared values, and the kernels differ"
        found.append(Reason("work", "critical", text, why))
    elif difference.different:
        text = f"different work per step: {difference.what}"
        found.append(Reason("work", "critical", text, fix=difference.fix))
    elif difference.what:
        found.append(Reason("work_note", "info", difference.what))
    others = [key for key in sorted({*left.values, *right.values}) if not AMOUNT.match(key)]
    for key, text in differing_values(left, right, others).items():
        found.append(Reason("variant", "info", f"{key}: {text}"))
    if "recording" in (left.measure, right.measure) and kernel_launches(a[0]) != kernel_launches(b[0]):
        text = "there are no steps, and the recordings hold different kernels"
        found.append(Reason("no_steps", "critical", text, "that is more or less work, not faster or slower"))
    return found
