"""May two sides be compared? ``reasons`` is given their trials and returns what speaks against it.

A reason of severity critical stops the comparison: there is no number, unless the caller allows its code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions
from profrun.analysis.compare.model import Reason
from profrun.analysis.compare.same_work import AMOUNT, compare_work, differing_values, kernel_launches
from profrun.analysis.compare.side_names import side_names
from profrun.analysis.counted_steps import PHASE_WORDS
from profrun.contract.finding import Severity, gravest_first
from profrun.contract.profilers import COUNTERS, TIMELINE, candidates
from profrun.contract.units import counted, some_of

STOPS = {
    "same_recording": "both sides hold the same recording",
    "work": "different work per step",
    "mixed": "the trials of one side do different work or were recorded differently",
    "profiled": "one side is profiled, the other is not",
    "collector": "the sides were recorded by different profilers",
    "clock": "step time is not the same quantity on both sides",
    "phase": "the step times are of different phases of the runs",
    "cut": "a recording ended before the run that it is of",
    "blocking": "launch blocking on one side only",
    "throttled": "a GPU was throttled on one side only",
    "replayed": "kernels were replayed or serialised to read counters, or are known as means only",
    "ranks": "different numbers of ranks",
    "unreliable": "the trace's step or kernel numbers are wrong",
    "no_steps": "steps on one side only, or none and not the same kernels",
    "no_times": "a trial has no whole step",
}
"""Code -> why it stops a comparison."""
ALLOWABLE = tuple(code for code in STOPS if code != "no_times")
"""Codes that a caller may allow; the result marks them. Without a time there is nothing to compare."""
DIVIDED_AWAY = frozenset({"work", "ranks"})
"""Codes that do not stop a comparison of times per amount of work."""
FEW_STEPS = 10
Trials = Sequence[ComparedTrial]
_ANOTHER = "name another recording"
_ONE_PROFILER = (
    "compare trials of one profiler; `--same-kernels` says whether two profilers saw the same kernels"
)
_RECORD_SHAPES = "shapes would prove it: record them, or declare the amounts (`batch`, `seq`) of the variants"


def reasons(
    a: Trials,
    b: Trials,
    *,
    allow: Collection[str] = (),
    per: bool = False,
    other_work: Reason | None = None,
) -> list[Reason]:
    """Everything that speaks against a comparison, gravest first, allowed ones last.

    Args:
        allow: codes of ``STOPS`` that shall not stop it; their reasons are marked.
        per: step time is divided by an amount of work, so that different work does not stop it.
        other_work: the reason "work" of other recordings of the same two programs, whose work differs. It
            counts where these trials do not show whether their work is the same.
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
        _phases,
        _samples,
        _work,
    ):
        for one in check(a, b):
            allowed = one.severity == "critical" and one.code in passed
            found.append(replace(one, allowed=allowed))
    if other_work is not None and any(one.code == "work_unproven" for one in found):
        found = [one for one in found if one.code != "work_unproven"]
        found.append(replace(other_work, allowed="work" in passed))
    return told_too(found)


def told_too(found: Iterable[Reason], more: Iterable[Reason] = ()) -> list[Reason]:
    """All of these reasons, gravest first, allowed ones last."""
    return sorted(gravest_first([*found, *more]), key=lambda one: one.allowed)


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
    code: str, severity: Severity, what: str, a: Iterable[object], b: Iterable[object], *, fix: str = ""
) -> list[Reason]:
    left, right = ("/".join(sorted(set(map(str, side)))) for side in (a, b))
    if left == right:
        return []
    return [Reason(code, severity, f"{what}: {left or 'none'} against {right or 'none'}", fix=fix)]


def _called(a: Trials, b: Trials) -> list[tuple[str, Trials]]:
    """Both sides with their names, which are "side a" and "side b" where nothing tells them apart."""
    return [
        (f"side {name}" if name in ("a", "b") else name, trials)
        for name, trials in zip(side_names(a, b), (a, b), strict=True)
    ]


def _same_recording(a: Trials, b: Trials) -> list[Reason]:
    seen = {trial.conditions.fingerprint: trial.conditions.label for trial in a}
    both = [trial.conditions for trial in b if trial.conditions.fingerprint in seen]
    texts = [f"{seen[one.fingerprint]} and {one.label} are the same recording, on both sides" for one in both]
    found = [Reason("same_recording", "critical", text, fix=_ANOTHER) for text in texts[:1]]
    for side, trials in _called(a, b):
        for one, two in combinations([trial.conditions for trial in trials], 2):
            if one.fingerprint == two.fingerprint:
                text = f"{one.label} and {two.label} of {side} are the same recording"
                return [*found, Reason("same_recording", "critical", text, "it would count twice", _ANOTHER)]
    return found


def _times(a: Trials, b: Trials) -> list[Reason]:
    return [
        Reason(
            "no_times",
            "critical",
            f"{trial.conditions.label} has no whole {trial.conditions.denominator.of} with a time above 0",
            fix="leave that trial out, or record more",
        )
        for trial in (*a, *b)
        if not trial.times
    ]


def _unreliable(a: Trials, b: Trials) -> list[Reason]:
    found = []
    for trial in (*a, *b):
        one = trial.conditions
        if one.replayed:
            text = f"{one.label}: kernels ran one by one, were replayed to read counters or are means"
            fix = "compare trials of a profiler that records a timeline"
            found.append(Reason("replayed", "critical", text, "such a recording has no timeline", fix))
        else:
            fix = "`profrun summary` says more"
            found += [
                Reason("unreliable", "critical", f"{one.label}: {text}", "", fix) for _, text in one.doubts
            ]
        if one.total_gpu_ns and one.outside_ns / one.total_gpu_ns > 0.01 and one.measure == "span":
            share = 100 * one.outside_ns / one.total_gpu_ns
            text = (
                f"{one.label}: {share:.1f} % of its GPU time was launched by no whole {one.denominator.of} "
                "and is in no row"
            )
            why = "it belongs to steps at the edges of the window, or lies outside of steps"
            if not one.denominator.several:
                why = f"it lies outside of {one.denominator.the}"
            found.append(Reason("window_edge", "warning", text, why))
    return found


def _recorded(a: Trials, b: Trials) -> list[Reason]:
    left, right = [one.conditions for one in a], [one.conditions for one in b]
    profiled = {one.profiled for one in left}, {one.profiled for one in right}
    if profiled[0] != profiled[1]:
        names = "/".join(sorted({one.collector for one in (*left, *right) if one.profiled}))
        text = f"one side was profiled ({names}), the other not"
        why = "the difference would hold the overhead of the profiler"
        return [Reason("profiled", "critical", text, why, "compare unprofiled trials of both sides")]
    found = []
    tools = {one.tool for one in left}, {one.tool for one in right}
    if tools[0] != tools[1] and all(records_timeline(one) for one in (*left, *right)):
        found += _differ("collector", "warning", "profilers with overheads of their own", *tools)
    elif not all(recorded_alike(one, two) for one in left for two in right):
        recorders = map(_recorder, left), map(_recorder, right)
        found += _differ("collector", "critical", "different profilers", *recorders, fix=_ONE_PROFILER)
    measures = {one.measure for one in left}, {one.measure for one in right}
    fix = "compare trials that were recorded in one way"
    found += _cut(left, right)
    of = {one.denominator.of for one in left}, {one.denominator.of for one in right}
    if of[0] != of[1]:
        fix = "mark the steps on both sides with `profrun.step()`"
        return found + _differ("no_steps", "critical", "what the time is of", *of, fix=fix)
    return found + _differ("clock", "critical", "what the time of a step is", *measures, fix=fix)


def _phases(a: Trials, b: Trials) -> list[Reason]:
    """Which steps of the runs without a profiler count: the same on both sides."""
    plain = [one for one in (*a, *b) if not one.conditions.profiled]
    if not plain or not all(one.conditions.denominator.several for one in plain):
        return []
    left, right = ([one for one in side if not one.conditions.profiled] for side in (a, b))
    words = [{PHASE_WORDS[one.phase] for one in side} for side in (left, right)]
    if len(words[0] | words[1]) > 1:
        fix = "`--phase window` compares the recorded steps alone; a baseline that is saved again has all"
        text = "steps of different phases of the runs"
        if left and right and words[0] != words[1]:
            return _differ("phase", "critical", text, *words, fix=fix)
        names = ", ".join(sorted(words[0] | words[1]))
        return [Reason("phase", "critical", f"{text}: {names}", "", fix)]
    phase = plain[0].phase
    if phase == "steady":
        return []
    text = f"step times are of {PHASE_WORDS[phase]}, not of the steady phase"
    return [Reason("phase_used", "info", text)]


def _cut(a: Sequence[RecordingConditions], b: Sequence[RecordingConditions]) -> list[Reason]:
    """Recordings that ended before their run: their time is that of the limit, not of the program."""
    cut = [one for one in (*a, *b) if one.denominator.cut_ns is not None]
    if not cut:
        return []
    text = f"{cut[0].label} holds only {cut[0].denominator.the}"
    text += f", and {counted(len(cut) - 1, 'more trial')} only a part" if len(cut) > 1 else ""
    fix = "compare the trials without a profiler, or raise `max_seconds` and `max_size` of the schedule"
    return [Reason("cut", "critical", text, "its time is that of the limit, not of the run", fix)]


def records_timeline(one: RecordingConditions) -> bool:
    """Is the tool the timeline profiler of a vendor? Two vendors can only be compared with two tools."""
    return one.collector != COUNTERS and one.tool in {found.name for found in candidates(TIMELINE)}


def _recorder(one: RecordingConditions) -> str:
    return one.tool if one.collector == one.tool else f"{one.tool} for {one.collector}"


def _mixed(a: Trials, b: Trials) -> list[Reason]:
    """Trials of one side must be repeats of one thing."""
    found = []
    for side, trials in _called(a, b):
        conditions = [trial.conditions for trial in trials]
        if not all(recorded_alike(conditions[0], other) for other in conditions):
            text = _mixture(f"{side} mixes collectors", conditions, _recorder)
            found.append(Reason("mixed", "critical", text, fix=_one_point(conditions[0])))
        for what, of in _REPEATED.items():
            if len({of(one) for one in conditions}) > 1:
                text = _mixture(f"{side} mixes {what}", conditions, of)
                found.append(Reason("mixed", "critical", text, fix="name repeats of one thing"))
        for other in trials[1:]:
            work = compare_work(trials[0], other)
            if work.answer == "different":
                labels = f"{trials[0].conditions.label} and {other.conditions.label}"
                text = f"{side} mixes work: {labels} do different work: {work.what}"
                found.append(Reason("mixed", "critical", text, fix="name repeats of one thing"))
                break
    return found


_REPEATED: dict[str, Callable[[RecordingConditions], object]] = {
    "variants": lambda one: one.variant,
    "numbers of ranks": lambda one: one.ranks,
    "GPUs": lambda one: "/".join(one.devices),
    "trials with and without launch blocking": lambda one: one.launches_block,
}
"""What repeats of one thing have in common beside the collector -> where it is found."""


def _mixture(
    what: str, conditions: Sequence[RecordingConditions], of: Callable[[RecordingConditions], object]
) -> str:
    """'side a mixes collectors: none (000-default-none-r1), torch (001-default-torch-r1 and 2 more)'."""
    labels: dict[object, list[str]] = {}
    for one in conditions:
        labels.setdefault(of(one), []).append(one.label)
    parts = (
        f"{value} ({names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
        for value, names in labels.items()
    )
    return f"{what}: {', '.join(parts)}"


def _one_point(one: RecordingConditions) -> str:
    if not one.job or not one.variant:
        return "name trials of one profiler"
    return f"name one point of each side, such as `{one.job}/{one.variant}-{one.collector}`"


def _states(a: Trials, b: Trials) -> list[Reason]:
    found = []
    blocking = [{trial.conditions.launches_block for trial in side} - {None} for side in (a, b)]
    if blocking[0] and blocking[1] and blocking[0] != blocking[1]:
        text, fix = "launches block on one side only", "`profrun blocking` compares such trials"
        found.append(Reason("blocking", "critical", text, fix=fix))
    throttled = [{reason for trial in side for reason in trial.conditions.throttled} for side in (a, b)]
    if throttled[0] != throttled[1]:
        names = ", ".join(sorted(throttled[0] ^ throttled[1]))
        text, fix = f"a GPU was throttled on one side only: {names}", "let it cool down and record again"
        found.append(Reason("throttled", "critical", text, fix=fix))
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
        why, fix = (
            f"{left.denominator.one} of more ranks is more work",
            "`--per` divides times by an amount of work",
        )
        found.append(Reason("ranks", "critical", text, why, fix))
    found += _differ("vendor", "info", "vendors", [left.vendor], [right.vendor])
    found += _differ("device", "info", "GPUs", left.devices, right.devices)
    nodes = [sorted({node for trial in side for node in trial.conditions.nodes}) for side in (a, b)]
    if all(nodes) and nodes[0] != nodes[1] and not found:  # other GPUs are on other nodes
        text = "other nodes: " + " against ".join(some_of(side, 4) for side in nodes)
        fix = "`cluster.allocation: one` runs all trials on the same nodes"
        found.append(Reason("nodes", "warning", text, "nodes differ in clocks, heat and neighbours", fix))
    for key in sorted({*left.software, *right.software} - {"host"}):
        if left.software.get(key) != right.software.get(key) or (key == "git" and _one_is_dirty(left, right)):
            pair = " against ".join(_version(key, one) for one in (left, right))
            found.append(Reason("software", "info", f"{key}: {pair}"))
    return found


def _one_is_dirty(left: RecordingConditions, right: RecordingConditions) -> bool:
    """Whether the code differs from its commit on one side only."""
    return {left.git.dirty, right.git.dirty} == {True, False}


def _version(key: str, one: RecordingConditions) -> str:
    told = one.git.text if key == "git" and one.git.sha else None
    return told or one.software.get(key, "unknown")


def _samples(a: Trials, b: Trials) -> list[Reason]:
    found = []
    for side, trials in _called(a, b):
        fewest = min(len(trial.times) for trial in trials)
        if fewest < FEW_STEPS and trials[0].conditions.denominator.several:
            text = f"{side}: only {fewest} whole step{'s' * (fewest != 1)} in a trial"
            found.append(Reason("few_steps", "info", text, "one slow step moves the median"))
        unsteady = [trial.conditions.label for trial in trials if not trial.work.steady]
        if unsteady:
            text = f"{side}: the steps of {unsteady[0]} do not all launch the same kernels"
            found.append(Reason("unsteady", "warning", text))
    return found


def _work(a: Trials, b: Trials) -> list[Reason]:
    work = compare_work(a[0], b[0])
    left, right = a[0].conditions, b[0].conditions
    per = left.denominator.rate
    found = []
    if work.answer == "different":
        why = "the traces hold no shapes, but what they hold speaks for other work" if work.signs else ""
        fix = work.fix or "`--per` divides times by an amount of work"
        found.append(Reason("work", "critical", f"different work {per}: {work.what}", why, fix))
    elif work.answer == "unknown":
        speak_for = work.signs.speak_for if work.signs else ()
        text = f"it is not proven that both sides do the same work {per}"
        text += f", but {', and '.join(speak_for)}" if speak_for else ""
        why = f"what speaks against it is that {work.what}" if work.what else ""
        if not speak_for and not work.what:
            why = "there are no shapes and no declared amounts, and the kernels differ"
        found.append(Reason("work_unproven", "warning", text, why, _RECORD_SHAPES))
    elif work.what:
        found.append(Reason("work_note", "info", work.what))
    others = [key for key in sorted({*left.values, *right.values}) if not AMOUNT.match(key)]
    for key, text in differing_values(left, right, others).items():
        found.append(Reason("variant", "info", f"{key}: {text}"))
    if "recording" in (left.measure, right.measure) and kernel_launches(a[0]) != kernel_launches(b[0]):
        text = "there are no steps, and the recordings hold different kernels"
        why = "that is more or less work, not faster or slower"
        found.append(Reason("no_steps", "critical", text, why, "mark the steps with `profrun.step()`"))
    return found
