"""The first section of a report: what a step costs, where it goes, what would help most, what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from profrun.analysis.compare.model import is_too_wide
from profrun.contract.units import energy_text, rate_text, signed_change_text, time_text
from profrun.reports.answer_text import (
    MOST,
    as_sentence,
    best_findings,
    comparison_lines,
    doubts,
    gains_per,
    nothing_to_gain,
    percent,
    range_of,
    step_of,
    waiting,
    where,
    whole_runs,
)
from profrun.reports.charts import legend, stacked_bar
from profrun.reports.html import Html, chip, el
from profrun.reports.step_charts import IntervalRow, interval_chart
from profrun.reports.verdict_section import finding_id
from profrun.store.run_answer import FindingAnswer, UseAnswer, VariantAnswer
from profrun.store.run_result import PairResult

VARIANTS_NOTE = (
    "Dot: {time} of the variant. Wide bar: its range over trials{one_trial}. Dashed line: the first variant. "
    "Thin line: 95 % interval of the comparison with the first."
)


def overview_html(
    answers: Sequence[VariantAnswer],
    pairs: Sequence[PairResult],
    tabs: Mapping[str, str] | None = None,
) -> Html | None:
    """The answers of a run; None before its end.

    Args:
        answers: of each variant.
        pairs: the comparisons of the run.
        tabs: id of a trial -> id of its tab in the page; findings of these are links.
    """
    if not answers:
        return None
    lines = comparison_lines(pairs)
    compared = el("ul", (el("li", str(line)) for line in lines), class_="plain") if lines else None
    helps = _helps(answers, tabs or {})
    runs = [el("p", as_sentence(line), class_="note") for line in whole_runs(answers)]
    if len(answers) == 1:
        return el("div", _variant(answers[0], named=False), runs, helps, compared)
    each = (_variant(answer, named=True) for answer in answers)
    return el("div", _variants(answers, pairs), runs, compared, helps, each)


class _Number(NamedTuple):
    """A number of a variant as text, and what it is of."""

    title: str
    value: str
    of: str


def _variant(answer: VariantAnswer, *, named: bool) -> Html:
    """A variant's step, as large numbers and as a bar; of several (``named``), in one line and as a bar."""
    tiles = []
    if answer.step is not None:
        tiles.append(
            _Number(
                answer.step.denominator.title,
                time_text(answer.step.ns),
                f"{where(answer.step)}; {range_of(answer.step)}",
            )
        )
    if answer.energy_j is not None:
        tiles.append(_Number("energy", energy_text(answer.energy_j), "per step, of the GPU boards"))
    if answer.gpu_share is not None:
        tiles.append(
            _Number("GPU busy", percent(answer.gpu_share), f"{time_text(answer.gpu_ns)} of {step_of(answer)}")
        )
    if answer.use is not None:
        tiles.append(_Number("MFU", percent(answer.use.mfu), _use(answer.use, answer)))
    if answer.parts:
        whose = "the GPU's time" if answer.side == "gpu" else "the CPU time of all operators"
        tiles.append(_Number("mostly", answer.parts[0].name, f"{percent(answer.parts[0].share)} of {whose}"))
    if not tiles:
        shown = el("p", "No time was measured.")
    elif named:  # the chart has the step times of all variants
        told = (f"{one.title} {one.value} ({one.of})" for one in tiles)
        shown = el("p", "; ".join(told), class_="note")
    else:
        shown = el("dl", (_tile(one) for one in tiles), class_="tiles")
    return el(
        "article",
        el("h4", answer.variant) if named else None,
        shown,
        _bar(answer),
        el("p", waiting(answer)) if answer.rank_wait_ns else None,
        (el("p", chip("doubt", "warning"), " ", text) for text in doubts(answer)),
    )


def _use(use: UseAnswer, answer: VariantAnswer) -> str:
    """'of 989 TFLOP/s (dense bf16) in the step; HFU 51 %; at the clock that ran, 1440 MHz, MFU 52 %'."""
    text = f"of {rate_text(use.peak_tflops, 'TFLOP/s')} (dense {use.dtype}) in {step_of(answer)}"
    if use.at_least:
        text = f"at least, {text}"
    if percent(use.hfu) != percent(use.mfu):
        text += f"; HFU {percent(use.hfu)}"
    if use.mfu_at_clock is not None and use.clock_mhz is not None:
        text += f"; at the clock that ran, {use.clock_mhz:.0f} MHz, MFU {percent(use.mfu_at_clock)}"
    return text


def _tile(one: _Number) -> Html:
    value, of = el("dd", one.value, class_="big"), el("dd", one.of, class_="of")
    return el("div", el("dt", one.title), value, of, class_="tile")


def _bar(answer: VariantAnswer) -> Html | None:
    """The step as a bar: the GPU's work by what it does, and the time in which it has none."""
    if answer.gpu_share is None or answer.side != "gpu":
        return None
    shares = {f"part{place}": part.share * answer.gpu_share for place, part in enumerate(answer.parts)}
    rest = answer.gpu_share - sum(shares.values())
    if rest > 0.0005:
        shares["rest"] = rest
    shares["idle"] = 1 - answer.gpu_share
    names = [part.name for part in answer.parts] + (["other GPU work"] if "rest" in shares else [])
    texts = [
        (role, f"{name} {percent(share)}")
        for (role, share), name in zip(shares.items(), [*names, "GPU idle"], strict=True)
    ]
    label = "; ".join(text for _, text in texts)
    bar = stacked_bar(shares, 1.0, f"{answer.denominator.the}: {label}")
    return el("div", bar, legend(texts))


def _variants(answers: Sequence[VariantAnswer], pairs: Sequence[PairResult]) -> Html | None:
    """The step times of several variants as a chart."""
    compared = {pair.b_variant: pair for pair in pairs if pair.kind == "variant"}
    base = next((pair.a_ns for pair in compared.values() if pair.a_ns is not None), None)
    rows = []
    for answer in answers:
        if answer.step is None:
            continue
        pair, step = compared.get(answer.variant), answer.step
        interval = None
        if pair is not None and pair.a_ns is not None and pair.ci95 is not None:
            ends = (pair.ci95[0], pair.ci95[1])
            interval = None if is_too_wide(ends) else (pair.a_ns * ends[0], pair.a_ns * ends[1])
        text = time_text(step.ns)
        if pair is not None and pair.ratio is not None:
            text += f" ({signed_change_text(pair.ratio)})"
        rows.append(IntervalRow(answer.variant, step.ns, (step.low_ns, step.high_ns), interval, text))
    if len(rows) < 2:
        return None
    of = {answer.step.denominator for answer in answers if answer.step is not None}
    times = sorted({one.time for one in of}, reverse=True)
    one_trial = "; with one trial, the middle half of its steps" if any(one.several for one in of) else ""
    return el(
        "figure",
        el("figcaption", VARIANTS_NOTE.format(time=" or ".join(times), one_trial=one_trial)),
        interval_chart(rows, f"{' or '.join(times)} of each variant", base=base),
    )


def _helps(answers: Sequence[VariantAnswer], tabs: Mapping[str, str]) -> Html | None:
    """What would help most, as a table with bars."""
    found = best_findings(answers)
    if not found:
        judged = any(answer.trial is not None for answer in answers)
        return el("p", as_sentence(nothing_to_gain(answers))) if judged else None
    several = len(answers) > 1
    titles = (
        "what would help most",
        *(("in",) if several else ()),
        f"at most {gains_per(one for one, _ in found)}",
        "",
        "change",
    )
    head = el("tr", (el("th", title, scope="col") for title in titles))
    body = (_row(answer, finding, several, tabs.get(answer.trial or "")) for answer, finding in found[:MOST])
    more = len(found) - MOST
    return el(
        "div",
        el("table", el("thead", head), el("tbody", body), class_="helps"),
        el("p", f"{more} more in the tabs of the trials.", class_="note") if more > 0 else None,
    )


def _row(answer: VariantAnswer, finding: FindingAnswer, several: bool, tab: str | None) -> Html:
    title = finding.text if tab is None else el("a", finding.text, href=f"#{finding_id(tab, finding.code)}")
    bar = stacked_bar(
        {finding.severity: finding.gain_share},
        1.0,
        f"{percent(finding.gain_share)} of {answer.denominator.one}",
    )
    return el(
        "tr",
        el("th", title, scope="row"),
        el("td", answer.variant, class_="variant", title=answer.variant) if several else None,
        el("td", f"{time_text(finding.gain_ns)} ({percent(finding.gain_share)})", class_="n"),
        el("td", bar, class_="gain"),
        el("td", finding.remedy),
    )
