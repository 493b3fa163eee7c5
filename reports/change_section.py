"""What changed between two sides as HTML: the verdict, where the time went, kernels, steps, modules.

``change_html`` is given the compared points of two sides and the variants to show, and returns one block of
sections. Every number is one of ``profrun compare --json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.analysis.compare.model import ModuleChange, is_too_wide
from profrun.analysis.compare.waterfall import Bar, gpu_waterfall, step_waterfall
from profrun.contract.units import (
    UNKNOWN,
    signed_change_text,
    signed_time_text,
    some_of,
    time_text,
)
from profrun.reports.compare_sentence import go_on
from profrun.reports.compare_text import answer_parts, interval_cell, reason_line, status_word
from profrun.reports.html import Html, chip, el, sections_html
from profrun.reports.html_table import Column, table, table_box
from profrun.reports.point_pairs_text import how_recorded
from profrun.reports.quantities_section import quantities_html
from profrun.reports.step_charts import MOST_DOTS, THINNED_NOTE, bars_span, interval_bar, strip_chart
from profrun.reports.terminal_layout import cut

if TYPE_CHECKING:
    from profrun.analysis.compare.model import Comparison, Row, SideInfo
    from profrun.analysis.compare.point_pairs import PointPair, PointPairs
    from profrun.reports.compare_sentence import Called

NAME_WIDTH = 36
"""Characters of a name beside a bar."""
MOST_ROWS = 300
"""Rows of the table of kernels."""
RUNS_NOTE = "Each dot is the run of a trial."
STEPS_NOTE = (
    "Each dot is a step, each row of dots a trial, each tick a trial's median. Steps at the end of the "
    "window whose work is cut off are left out."
)


@dataclass(frozen=True)
class Change:
    """Two sides, compared.

    Attributes:
        found: their compared points.
        called: the command that compares them; a refusal shows it with what makes it go on.
    """

    found: PointPairs
    called: Called | None = None


def change_html(change: Change, variants: tuple[str | None, str | None], key: str) -> Html:
    """What changed between two variants, or between two sides.

    Args:
        change: the sides.
        variants: which variants of them; one of ``change.found.variants``.
        key: begin of the ids of its sections in the page.
    """
    found = change.found
    pairs = found.of(variants)
    telling = found.telling(variants)
    sections: list[tuple[str, str, Html | None]] = [
        ("verdict", "Verdict", _verdict(pairs, change.called)),
        ("waterfall", "What changed", _waterfalls(telling, pairs[0])),
        ("quantities", "Other quantities", quantities_html(pairs)),
        ("kernels", "Kernels", _kernels(telling)),
        ("modules", "Modules", _modules(telling)),
        ("steps", "Steps" if pairs[0].comparison.denominator.several else "Runs", _steps(pairs)),
        ("sides", "The two sides", _sides(found, pairs)),
    ]
    if view := _view(telling):
        sections.insert(4, ("view", f"By {telling.comparison.by}", view))
    return el("div", sections_html(sections, key, of="the comparison", absent="Not known: "))


def _verdict(pairs: Sequence[PointPair], called: Called | None) -> Html:
    """The answer in words, and a row with its interval for each way of recording."""
    deciding = pairs[0].comparison
    lines = [str(part).strip() for part in answer_parts(deciding)]
    span = bars_span(end for pair in pairs for end in _drawn(pair.comparison))
    a, b = _names(deciding)
    titles = (
        ("recorded", ""),
        (a, "n"),
        (b, "n"),
        ("change", "n"),
        ("95 % interval", "n"),
        ("", ""),
        ("trials", "n"),
    )
    head = el("tr", (_head(title, class_) for title, class_ in titles))
    body = [_pair_row(pair, span) for pair in pairs]
    box = table_box(
        "verdicts", f"{deciding.denominator.time}, by how it was recorded", head, body, class_="comparisons"
    )
    commands = dict.fromkeys(one for pair in pairs for one in go_on(pair.comparison, called))
    return el(
        "div",
        el("p", chip(deciding.verdict), " ", lines[0], class_="lead"),
        el("ul", (el("li", line) for line in lines[1:]), class_="plain note") if lines[1:] else None,
        (el("p", f"{one.why}: ", el("code", one.text)) for one in commands),
        box,
    )


def _head(title: str, class_: str) -> Html:
    return el("th", title or el("span", "interval", class_="unit"), scope="col", class_=class_ or None)


def _names(found: Comparison) -> tuple[str, str]:
    a, b = found.sides
    return a.name, b.name


def _drawn(found: Comparison) -> tuple[float, ...]:
    """The ratio and the ends of its interval, where they are drawn."""
    if not found.ratio or found.ci95 is None or is_too_wide(found.ci95):
        return ()
    return (found.ratio, *(end for end in found.ci95 if end > 0))


def _pair_row(pair: PointPair, span: float) -> Html:
    found = pair.comparison
    a, b = found.sides
    drawn = _drawn(found)
    bar = interval_bar(drawn[0], drawn[1], drawn[2], span=span) if len(drawn) == 3 else None
    return el(
        "tr",
        el("th", how_recorded(pair), scope="row"),
        el("td", time_text(a.step_ns or None), class_="n", data_v=a.step_ns or ""),
        el("td", time_text(b.step_ns or None), class_="n", data_v=b.step_ns or ""),
        el("td", signed_change_text(found.ratio), class_="n", data_v=found.ratio or ""),
        el("td", interval_cell(found.ci95), class_="n"),
        el("td", bar),
        el("td", " + ".join(map(str, found.trials)), class_="n"),
    )


def _waterfalls(pair: PointPair, deciding: PointPair) -> Html | None:
    """The step, and the GPU work in it, from one side to the other."""
    step, gpu = step_waterfall(pair.comparison), gpu_waterfall(pair.comparison)
    if not step:
        return None
    of, per, how = pair.comparison.denominator, pair.comparison.unit, how_recorded(pair)
    what = "GPU work by category" if gpu else "CPU time by op"
    note = f"The {per} {how}: {what}, and the rest of {of.the}."
    if of.several:
        note = f"The mean typical {per} {how}: {what}, and the rest of the step. Outlying steps are left out."
    return el(
        "div",
        el("p", note, class_="note"),
        _other_direction(pair, deciding),
        _waterfall("waterfall-step", f"the {per}", step),
        _waterfall("waterfall-gpu", f"GPU work {pair.comparison.rate}, by kernel", gpu) if gpu else None,
    )


def _other_direction(pair: PointPair, deciding: PointPair) -> Html | None:
    """A doubt where the recorded step got longer and that of the deciding trials shorter, or the reverse."""
    (a, b), (base, new) = ([side.step_ns for side in one.comparison.sides] for one in (pair, deciding))
    if (b - a) * (new - base) >= 0:
        return None
    the = pair.comparison.denominator.the
    text = (
        f"{how_recorded(deciding).capitalize()} {the} changes by {signed_time_text(new - base)}, "
        f"{how_recorded(pair)} by {signed_time_text(b - a)}: the profiler costs the two sides differently. "
        f"Read the GPU work here, not the rest of {the}."
    )
    return el("p", chip("doubt", "warning"), " ", text)


def _waterfall(name: str, caption: str, bars: Sequence[Bar]) -> Html:
    """A row for each bar; the numbers between the two sides add up to their difference."""
    ends = [end for bar in bars for end in (bar.begin_ns, bar.end_ns)]
    top = max(ends) or 1.0
    least = min([bar.end_ns for bar in bars] + [bar.begin_ns for bar in bars[1:-1]])
    low = 0.0 if least < 0.6 * top else least - 0.25 * (top - least)
    low = min(low, least)
    cut_off = f"; the bars begin at {time_text(low)}" if low > 0 else ""
    colours = "longer in red, shorter in green"
    head = el("tr", _head("what", ""), _head("time", ""), _head("change", "n"))
    body = [_bar_row(bar, low, top) for bar in bars]
    total = signed_time_text(bars[-1].end_ns - bars[0].end_ns)
    label = f"{caption}: {total} in all; {colours}{cut_off}"
    return table_box(name, label, head, body, class_="comparisons waterfall")


def _bar_row(bar: Bar, low: float, top: float) -> Html:
    side = bar.kind == "side"
    start, end = (low, bar.end_ns) if side else sorted((bar.begin_ns, bar.end_ns))
    scale = 1000 / ((top - low) or 1.0)
    place = {"x": f"{(start - low) * scale:.1f}", "width": f"{max((end - start) * scale, 1.0):.1f}"}
    role = "role-part0" if side else "role-worse" if bar.delta_ns > 0 else "role-better"
    text = time_text(bar.end_ns) if side else signed_time_text(bar.delta_ns)
    drawn = el(
        "svg",
        el("rect", **place, y="0", height="10", class_=role),
        viewBox="0 0 1000 10",
        class_="flowbar",
        role="img",
        aria_label=f"{bar.name}: {text}",
        preserveAspectRatio="none",
    )
    cell = el("th", _shortened(bar.name), scope="row", class_=None if side else "part", title=bar.name)
    number = el("td", el("b", text) if side else text, class_="n", data_v=bar.delta_ns)
    return el("tr", cell, el("td", drawn, class_="flow"), number, class_="side" if side else None)


def _shortened(name: str) -> str:
    """A name, or both of a replacement, cut in the middle."""
    before, arrow, after = name.partition(" -> ")
    return f"{cut(before, NAME_WIDTH)}{arrow}{cut(after, NAME_WIDTH)}"


def _row_columns(found: Comparison) -> list[Column[Row]]:
    a, b = _names(found)
    per = found.rate
    said = "added, removed, replaced, more or fewer calls; faster and slower only if proven"
    return [
        Column("what", status_word, note=said),
        Column("name", lambda row: _both(row)[0], "name", full=lambda row: row.name),
        Column("replaced by", lambda row: _both(row)[1], "name", full=lambda row: row.replaced_by or ""),
        Column(a, lambda row: row.a_ns or None, "ns", f"time {per} of {a}"),
        Column(b, lambda row: row.b_ns or None, "ns", f"time {per} of {b}"),
        Column("change", lambda row: row.delta_ns, "ns", f"time {per}, {b} less {a}"),
        Column("change", lambda row: _percent(row.a_ns, row.b_ns), "number", f"of the time of {a}", unit="%"),
        Column(f"{a} calls", lambda row: row.a_calls, "number", f"calls {per} of {a}"),
        Column(f"{b} calls", lambda row: row.b_calls, "number", f"calls {per} of {b}"),
        Column(
            "interval",
            lambda row: interval_cell(row.ci95),
            note="95 % interval of the change, of this row alone",
        ),
        Column("category", lambda row: row.category),
        Column("matched by", lambda row: row.by, note="how the kernels of both sides were matched"),
        Column("differs in", lambda row: el("span", "; ".join(row.changes) or UNKNOWN, class_="long")),
    ]


def _both(row: Row) -> tuple[str, str]:
    """What the row is about, and what replaced it."""
    name = row.label or row.name
    if row.status != "replaced":
        return name, ""
    before, _, after = name.partition(" -> ")
    return before, after


def _percent(a_ns: float, b_ns: float) -> float | None:
    """The change of a time in per cent; None for what one side does not have."""
    return 100 * (b_ns / a_ns - 1) if a_ns and b_ns else None


def _kernels(pair: PointPair) -> Html | None:
    """Every kernel of both sides, and which replaced which."""
    found = pair.comparison
    if not found.kernels:
        return None
    caption = f"kernels of both sides {how_recorded(pair)}, largest change first"
    columns = _row_columns(found)
    rows = found.kernels
    made = table("kernel-changes", columns, rows, caption=caption, limit=MOST_ROWS, filterable=True)
    return el("div", made, class_="changes")


def _view(pair: PointPair) -> Html | None:
    """The rows that were asked for with ``--by``, where they are not the kernels."""
    found = pair.comparison
    if not found.rows or found.rows == found.kernels:
        return None
    caption = f"by {found.by} {how_recorded(pair)}, largest change first"
    columns = _row_columns(found)
    made = table("changes", columns, found.rows, caption=caption, limit=MOST_ROWS, filterable=True)
    return el("div", made, class_="changes")


def _modules(pair: PointPair) -> Html | None:
    """Both trees of modules in one table, side by side."""
    found = pair.comparison
    if not found.modules:
        return None
    a, b = _names(found)
    columns: list[Column[ModuleChange]] = [
        Column("module", _module_name, "name", full=lambda row: row.name),
        Column(a, lambda row: row.a_ns or None, "ns", f"GPU work of {a} with the modules inside"),
        Column(b, lambda row: row.b_ns or None, "ns", f"GPU work of {b} with the modules inside"),
        Column("change", lambda row: row.delta_ns, "ns", f"{b} less {a}"),
        Column("change", lambda row: _percent(row.a_ns, row.b_ns), "number", f"of the time of {a}", unit="%"),
        Column(f"{a} own", lambda row: row.a_own_ns or None, "ns", f"without the modules inside, {a}"),
        Column(f"{b} own", lambda row: row.b_own_ns or None, "ns", f"without the modules inside, {b}"),
    ]
    caption = f"GPU work by nn.Module {how_recorded(pair)}, forward and backward; the own times add up"
    return table("module-changes", columns, found.modules, caption=caption, limit=MOST_ROWS, filterable=True)


def _module_name(row: ModuleChange) -> str:
    """Indented by its depth, with how many modules it stands for."""
    one, two = row.modules
    counts = "" if max(one, two) <= 1 else f" x {one}" if one == two else f" x {one} -> {two}"
    return "\u00a0\u00a0" * row.depth + row.label + counts


def _steps(pairs: Sequence[PointPair]) -> Html | None:
    """The steps of both sides as dots."""
    rows: list[tuple[str, list[list[int]]]] = []
    thinned = False
    for pair in pairs:
        for side in pair.comparison.sides:
            trials = [list(map(round, times)) for times in side.times_ns if times]
            thinned |= any(len(times) > MOST_DOTS for times in trials)
            if trials:
                rows.append((f"{side.name}, {_short(pair)}", trials))
    if not rows:
        return None
    of = pairs[0].comparison.denominator
    note = (STEPS_NOTE if of.several else RUNS_NOTE) + (THINNED_NOTE if thinned else "")
    chart = strip_chart(rows, f"{of.time}s of both sides")
    return el("div", el("p", note, class_="note"), el("div", chart, class_="wide"))


def _short(pair: PointPair) -> str:
    one = pair.recorder
    return f"{one.collector if one.profiled else 'no profiler'}{', blocking' if one.blocking else ''}"


def _sides(found: PointPairs, pairs: Sequence[PointPair]) -> Html:
    """What was compared, and what must be known of it."""
    lines = [el("li", chip("left out", ""), " ", str(one)) for one in found.left_out]
    seen: set[str] = set()
    for pair in pairs:
        for reason in pair.comparison.reasons:
            told = reason_line(reason)
            if told.text not in seen:
                seen.add(told.text)
                lines.append(el("li", chip(told.label), " ", told.text))
    of = pairs[0].comparison.denominator
    steps: Column[tuple[PointPair, SideInfo]] = Column(
        "steps", lambda row: row[1].steps, "count", "whole steps in the statistics"
    )
    columns: list[Column[tuple[PointPair, SideInfo]]] = [
        Column("side", lambda row: row[1].name),
        Column("recorded", lambda row: how_recorded(row[0])),
        Column("GPU", lambda row: ", ".join(row[1].devices) or None),
        Column("trials", lambda row: row[1].trials, "count"),
        *([steps] if of.several else []),
        Column(of.time, lambda row: row[1].step_ns or None, "ns", "geometric mean over trials"),
        Column(
            "GPU work", lambda row: row[1].gpu_ns or None, "ns", "per typical step" if of.several else of.per
        ),
        Column("memory peak", lambda row: row[1].memory_peak, "bytes", "of the allocator"),
        Column("of", lambda row: some_of(row[1].labels)),
    ]
    rows = [(pair, side) for pair in pairs for side in pair.comparison.sides]
    return el(
        "div",
        el("div", table("sides", columns, rows, caption="what was compared"), class_="lines"),
        el("ul", lines, class_="quality") if lines else None,
    )


def change_title(found: PointPairs, variants: tuple[str | None, str | None]) -> str:
    """``eager -> compiled: 30.5 % faster``: a title for the page, and the verdict in short."""
    comparison = found.deciding(variants).comparison
    a, b = _names(comparison)
    return f"{a} -> {b}: {comparison.verdict}"
