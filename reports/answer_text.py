"""The first screen of a run as text: what a step costs, where it goes, what would help most, what changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profrun.analysis.compare.model import is_too_wide
from profrun.contract.denominator import SET_UP_INCLUDED
from profrun.contract.profilers import under_text
from profrun.contract.units import (
    change_text,
    energy_text,
    signed_change_interval_text,
    signed_change_text,
    time_range_text,
    time_text,
)
from profrun.contract.window_phase import SAID
from profrun.reports.compare_sentence import pair_sentence, start_text
from profrun.reports.terminal_layout import Command, Part, Prose, Table, Toned
from profrun.reports.tones import TONES
from profrun.store.run_answer import FindingAnswer, StepAnswer, VariantAnswer
from profrun.store.run_result import PairResult

MOST = 5
"""Findings that are shown."""
MORE_TRIALS = 3
"""Trials per variant from which an interval is of use: with two it is about twice as wide (t quantiles of 2
and 4 degrees of freedom)."""


def answer_parts(answers: Sequence[VariantAnswer], pairs: Sequence[PairResult]) -> list[Part]:
    """The answers of a run, and its comparisons of variants, profilers and launch blocking in one line each.

    Args:
        answers: of each variant.
        pairs: the comparisons of the run.
    """
    parts: list[Part] = []
    if len(answers) == 1:
        parts += _one(answers[0])
    elif answers:
        parts.append(_several(answers))
        told: dict[str, list[str]] = {}
        for answer in answers:
            for doubt in doubts(answer):
                told.setdefault(doubt, []).append(answer.variant)
        parts += [Prose(f"{', '.join(names)}: {doubt}", indent="  ") for doubt, names in told.items()]
        parts += [Prose(f"{one.variant}: {most_lines(one)}", indent="  ") for one in answers if one.lines]
    parts += [Prose(line, indent="  ") for line in whole_runs(answers)]
    parts += _findings(answers)
    lines = comparison_lines(pairs)
    if lines:
        tones = tones_of_changes(pairs)
        parts.append("")
        parts += [Prose(line, indent="  ", toned=tones) if isinstance(line, str) else line for line in lines]
    return parts


def comparison_lines(pairs: Sequence[PairResult]) -> list[str | Command]:
    """The comparisons of a run in one line each: variants, then all profilers, then launch blocking."""
    steps = [pair for pair in pairs if pair.denominator.several]
    runs = [pair for pair in pairs if not pair.denominator.several]
    return [
        *_variants(pairs),
        *_ratios("overhead", steps),
        *_run_overheads(runs),
        *_ratios("blocking", pairs),
    ]


def tones_of_changes(pairs: Sequence[PairResult]) -> list[Toned]:
    """The changes of comparisons, where there is a verdict, in its tone."""
    return [
        Toned(change_text(pair.ratio), TONES[pair.verdict])
        for pair in pairs
        if pair.verdict in ("faster", "slower")
    ]


def _one(answer: VariantAnswer) -> list[Part]:
    """Sentences for a run with one variant."""
    lines = []
    if answer.step is not None:
        cost = f"{step_time(answer.step)}{energy_of(answer)}"
        lines.append(f"{cost} {where(answer.step)} ({range_of(answer.step)})")
    busy, mostly = _busy(answer), _mostly(answer)
    if busy is not None:
        lines.append(
            f"GPU busy {busy} of {step_of(answer)}" + (f"; {mostly} of the GPU's time" if mostly else "")
        )
    if answer.rank_wait_ns:
        lines.append(waiting(answer))
    if busy is None and mostly is not None:
        lines.append(f"no GPU worked; {mostly} of the CPU time of all operators")
    lines += [most_lines(answer)] if answer.lines else []
    lines += doubts(answer)
    strong = [] if answer.step is None else [Toned(step_time(answer.step), "strong")]
    return [Prose(line, indent="  ", toned=strong) for line in lines]


def most_lines(answer: VariantAnswer) -> str:
    """In which lines of the program the GPU's time goes: 'most GPU time: model.py:12 forward 38 %, ...'."""
    return "most GPU time: " + ", ".join(f"{line.name} {percent(line.share)}" for line in answer.lines)


def whole_runs(answers: Sequence[VariantAnswer]) -> list[str]:
    """That the numbers of variants are of runs without steps, and what one trial of these cannot tell."""
    runs = [answer for answer in answers if answer.step is not None and not answer.step.denominator.several]
    if not runs:
        return []
    who = "" if len(runs) == len(answers) else f"{', '.join(answer.variant for answer in runs)}: "
    found = [f"{who}{SET_UP_INCLUDED}"]
    if len(answers) == 1 and runs[0].step is not None and runs[0].step.trials == 1:
        found.append(f"one trial has no interval: `--repeats {MORE_TRIALS}` gives one")
    return found


def as_sentence(text: str) -> str:
    """The text with a capital at its begin and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:]}."


def waiting(answer: VariantAnswer) -> str:
    """How long a GPU waits for other ranks."""
    return (
        "GPU only waits for other ranks, as recorded: "
        f"{time_text(answer.rank_wait_ns)} {answer.denominator.per}"
    )


def doubts(answer: VariantAnswer) -> list[str]:
    """Why the numbers of an answer may mislead, a sentence each."""
    found = [f"doubtful: {title}" for title in answer.doubts]
    if answer.window is not None and answer.window.matters:
        found.append(answer.window.text)
    step = answer.step
    if step is not None and step.uneven:
        found.append(
            f"steps are uneven: {time_text(step.mean_ns)} on average; record more of them "
            "(`schedule: {active: 20}`)"
        )
    if step is not None and answer.works_longer and not step.uneven:
        found.append(_longer_work(answer, step))
    if step is not None and step.profiled_by is None and answer.basis == "profiled":
        found.append(_other_time(answer))
    elif step is not None and _of_other_steps(answer, step) and answer.step_ns is not None:
        there = f"a step takes {time_text(answer.step_ns)} there"
        found.append(f"shares are of the phase of the run in which steps were recorded: {there}")
    return found


def _of_other_steps(answer: VariantAnswer, step: StepAnswer) -> bool:
    """Whether shares are of another time than the step's: that of the phase that was recorded."""
    if answer.basis != "unprofiled" or not answer.step_ns or not answer.denominator.several:
        return False
    return abs(answer.step_ns / step.ns - 1) > SAID


def _longer_work(answer: VariantAnswer, step: StepAnswer) -> str:
    """Why the GPU's time is longer than the step time of which it is a part."""
    of = answer.denominator
    if of.several and step.mean_ns >= (answer.gpu_ns or 0):
        mean = time_text(step.mean_ns)
        return f"GPU busy is an average and the step time a median: on average {of.one} takes {mean}"
    return f"GPU busy is of {of.recorded}; the GPU works longer in it than {of.one} takes without a profiler"


def _other_time(answer: VariantAnswer) -> str:
    """Why the shares are not of the time that was measured without a profiler."""
    of = answer.denominator
    if of.several:
        return "shares are of the recorded, faster steps"
    if of.cut_ns is not None:
        return f"shares are {of.per}: the rest was not recorded"
    return (
        "shares are of the recorded run, which is shorter: the start of the profiler, or a trial before it, "
        "did a part of the set-up"
    )


def step_time(step: StepAnswer) -> str:
    """'step 22.4 ms', or 'run 3.1 s'."""
    return f"{step.denominator.title} {time_text(step.ns)}"


def energy_of(answer: VariantAnswer) -> str:
    """' and 2.35 J', to stand after the step time; empty where the energy was not measured."""
    return "" if answer.energy_j is None else f" and {energy_text(answer.energy_j)}"


def where(step: StepAnswer) -> str:
    """Whether a profiler ran."""
    return under_text(step.profiled_by)


def range_of(step: StepAnswer) -> str:
    """The range of a step time, and of what."""
    ends = time_range_text(step.low_ns, step.high_ns)
    if step.trials > 1:
        return f"{ends} in {step.trials} trials"
    if not step.denominator.several:
        return "1 trial"
    return f"half of {step.steps} steps: {ends}" if step.steps > 1 else "1 step"


def step_of(answer: VariantAnswer) -> str:
    """What the GPU's time is a part of."""
    if answer.basis == "recording":
        return "the whole recording"
    return answer.denominator.recorded if answer.basis == "profiled" else answer.denominator.the


def _busy(answer: VariantAnswer, between: str = " = ") -> str | None:
    """'18.03 ms = 80 %'."""
    if answer.gpu_ns is None or answer.gpu_share is None:
        return None
    return f"{time_text(answer.gpu_ns)}{between}{percent(answer.gpu_share)}"


def _mostly(answer: VariantAnswer) -> str | None:
    """'fp32 gemm 67 %': the largest part of the work."""
    if not answer.parts:
        return None
    return f"{answer.parts[0].name} {percent(answer.parts[0].share)}"


def percent(share: float) -> str:
    """Whole per cent from 10 on, else with one decimal."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def _several(answers: Sequence[VariantAnswer]) -> Table:
    """A row for each variant."""
    on_gpu = any(answer.gpu_ns is not None for answer in answers)
    with_energy = any(answer.energy_j is not None for answer in answers)
    rows = [
        (
            answer.variant,
            time_text(answer.step.ns if answer.step else None),
            time_range_text(answer.step.low_ns, answer.step.high_ns) if answer.step else None,
            *([energy_text(answer.energy_j)] if with_energy else []),
            *([_busy(answer, " ")] if on_gpu else []),
            _mostly(answer),
        )
        for answer in answers
    ]
    steps = {answer.step.denominator.of for answer in answers if answer.step is not None}
    header = (
        "variant",
        " or ".join(sorted(steps)) or "step",
        "range",
        *(["energy"] if with_energy else []),
        *(["GPU busy"] if on_gpu else []),
        "mostly",
    )
    return Table(header, rows, right=range(1, 3 + with_energy + on_gpu))


def best_findings(answers: Sequence[VariantAnswer]) -> list[tuple[VariantAnswer, FindingAnswer]]:
    """Each finding once, in the variant where it could save the largest part of a step; that part first."""
    best: dict[str, tuple[VariantAnswer, FindingAnswer]] = {}
    for answer in answers:
        for finding in answer.findings:
            known = best.get(finding.code)
            if known is None or finding.gain_share > known[1].gain_share:
                best[finding.code] = (answer, finding)
    return sorted(best.values(), key=lambda pair: (-pair[1].gain_share, pair[1].code))


def nothing_to_gain(answers: Iterable[VariantAnswer]) -> str:
    """That no finding could gain much, in a sentence without its full stop."""
    ofs = {answer.denominator.one for answer in answers if answer.trial is not None}
    return f"no finding could save 5 % of {' or '.join(sorted(ofs))} or more"


def gains_per(answers: Iterable[VariantAnswer]) -> str:
    """What the gains of findings are of: 'per step', 'in the run'."""
    return " or ".join(sorted({answer.denominator.rate for answer in answers}))


def _findings(answers: Sequence[VariantAnswer]) -> list[Part]:
    """What would help most."""
    ordered = best_findings(answers)
    if not ordered:
        judged = any(answer.trial is not None for answer in answers)
        return ["", Prose(nothing_to_gain(answers), indent="  ")] if judged else []
    gains = [f"{time_text(one.gain_ns)} ({percent(one.gain_share)})" for _, one in ordered]
    width = max(map(len, gains))
    lines: list[Part] = [
        "",
        Prose(f"What would help most, at most {gains_per(one for one, _ in ordered)}:", indent="  "),
    ]
    for number, (answer, finding) in enumerate(ordered[:MOST]):
        where = f" [{answer.variant}]" if len(answers) > 1 else ""
        text = f"{gains[number].rjust(width)}  {finding.text}{where}: {finding.remedy}"
        line = Prose(
            f"{number + 1}  {text}",
            indent="  ",
            toned=[Toned(finding.title, "strong")],
            hang=len("1  "),
        )
        lines.append(line)
    more = len(ordered) - MOST
    return [*lines, *([f"     ... and {more} more"] if more > 0 else [])]


def _variants(pairs: Sequence[PairResult]) -> list[str | Command]:
    found = [pair for pair in pairs if pair.kind == "variant"]
    lines: list[str | Command] = []
    for pair in found:
        lines.append(pair_sentence(pair, (pair.a_variant, pair.b_variant)))
        lines += [Command(text, why, indent="  ") for why, text in pair.commands]
    least = min(
        (min(pair.trials) for pair in found if pair.verdict == "inconclusive" and pair.trials), default=0
    )
    if least:
        more = MORE_TRIALS if least < MORE_TRIALS else 2 * least
        lines.append(f"`--repeats {more}` gives {'intervals' if least == 1 else 'narrower intervals'}")
    return lines


def _ratios(kind: str, pairs: Sequence[PairResult]) -> list[str]:
    """One line: how much longer a step takes under each profiler, or with blocking launches."""
    known = [pair for pair in pairs if pair.kind == kind and pair.ratio is not None]
    if not known:
        return []
    if kind == "blocking":
        told = [f"{pair.b_variant} {signed_change_text(pair.ratio)}" for pair in known]
        return [f"launch blocking, {_times(known)}: {', '.join(told)}"]
    found: dict[str, list[float]] = {}
    for pair in known:
        found.setdefault(pair.collector, []).append(pair.ratio or 0.0)
    told = [f"{name} {_span(ratios)}" for name, ratios in found.items()]
    return [f"profilers, {_times(known)}: {', '.join(told)}"]


def _run_overheads(pairs: Sequence[PairResult]) -> list[str]:
    """One line: how much longer a run takes under each profiler, where more than one trial tells it.

    A run is timed once per trial, and the first trial on a machine also loads files that later ones find in
    memory. So the ratio of two single trials does not tell what a profiler costs. Comparisons
    that do not know how long the profiler took to start (those that an earlier version kept) are left out.
    """
    found: dict[str, list[PairResult]] = {}
    for pair in pairs:
        if pair.kind == "overhead" and pair.ratio is not None and pair.start_ns is not None:
            found.setdefault(pair.collector, []).append(pair)
    if not found:
        return []
    texts = {name: _run_overhead(name, group) for name, group in found.items()}
    told = [text for text in texts.values() if text is not None]
    unknown = [name for name, text in texts.items() if text is None]
    if unknown:
        fewest = min((pair.trials for name in unknown for pair in found[name]), key=min)
        more = MORE_TRIALS if min(fewest) < MORE_TRIALS else 2 * min(fewest)
        counts = " + ".join(map(str, fewest))
        told.append(f"{', '.join(unknown)} not known from {counts} trials (`--repeats {more}`)")
    times = _times([pair for group in found.values() for pair in group])
    return [f"profilers, {times}: {'; '.join(told)}"]


def _run_overhead(name: str, pairs: Sequence[PairResult]) -> str | None:
    """'torch +35.0 % [30.0 to 40.0 %]: 13.5 s, of which its start takes 3 s'.

    None where the trials tell nothing.
    """
    known = [pair for pair in pairs if pair.ci95 and not is_too_wide((pair.ci95[0], pair.ci95[1]))]
    if not known:
        return None
    text = f"{name} {_span([pair.ratio or 0.0 for pair in known])}"
    if len(known) == 1 and known[0].ci95:
        low, high = known[0].ci95
        text += f" [{signed_change_interval_text((low, high))}]"
    longest = max(known, key=lambda pair: pair.start_ns or 0)
    start = start_text(longest.start_ns, longest.b_ns)
    which = "" if len(known) == 1 else f" in {longest.b_variant}"
    return f"{text}: {time_text(longest.b_ns)}{which}, of which its start takes {start}" if start else text


def _times(pairs: Sequence[PairResult]) -> str:
    """What is compared: 'step time', 'run time'."""
    return " or ".join(sorted({pair.denominator.time for pair in pairs}))


def _span(ratios: Sequence[float]) -> str:
    low, high = signed_change_text(min(ratios)), signed_change_text(max(ratios))
    return low if low == high else f"{low} to {high}"
