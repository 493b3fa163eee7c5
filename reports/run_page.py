"""The part of a report that shows a run: how its trials ended, what they measured, what that says."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from profrun.contract.units import percent_text
from profrun.reports.charts import interval_bar, strip_chart
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table
from profrun.reports.machine import images_html, machines_html
from profrun.reports.run_content import RunContent

KINDS = {
    "variant": "variants, by step time",
    "blocking": "launch blocking against not",
    "overhead": "collector against no profiler",
    "change": "variants, inside a step (profiled trials)",
}


def run_html(run: RunContent) -> Html:
    """Every section of a run; what is not there is said in its place."""
    document = run.document
    sections: list[tuple[str, str, Html | None]] = [
        ("troubles", "What to know first", _troubles(run)),
        ("comparisons", "Comparisons", _comparisons(document)),
        ("steps", "Step times", _distributions(run)),
        ("trials", "Trials", _trials(document)),
        ("blocking", "Launch-blocking twins", _ratios(document, "blocking")),
        ("overhead", "Collector overhead", _ratios(document, "overhead")),
        ("expectations", "Expectations", _expectations(document)),
        ("machine", "Machines", machines_html(run.machines)),
        ("images", "Images", images_html(run.machines)),
        ("job", "Job", _job(run)),
    ]
    present = [section for section in sections if section[2]]
    absent = [title for _, title, body in sections if not body]
    return el(
        "div",
        el("p", el("b", document["state"], class_=f"chip {document['state']}"), " ", _headline(document),
           class_="note"),
        el("nav", (el("a", title, href=f"#run-{key}") for key, title, _ in present), class_="sections",
           aria_label="sections of the run"),
        (el("section", el("h3", title), body, id=f"run-{key}") for key, title, body in present),
        el("p", "Not in this run: ", ", ".join(absent), ".", class_="note") if absent else None,
    )  # fmt: skip


def _headline(document: Mapping[str, Any]) -> str:
    trials = document["trials"]
    done = sum(trial["state"] == "finished" for trial in trials)
    return (
        f"job {document['job']}, backend {document['backend']}, submitted {utc(document['created_ns'])}; "
        f"{done} of {len(trials)} trials finished; folder {document['path']}"
    )


def utc(ns: int | None) -> str:
    """unix ns as UTC to the second."""
    if ns is None:
        return "-"
    moment = datetime.datetime.fromtimestamp(ns // 10**9, tz=datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _troubles(run: RunContent) -> Html:
    lines = [("missing", line) for line in run.missing] + [("trial", line) for line in run.troubles if line]
    failed = [row for row in run.document.get("expectations") or () if row["state"] == "failed"]
    lines += [("expectation", f"failed: {row['expected']} ({_where(row)})") for row in failed]
    if run.shown < run.total:
        told = f"{run.shown} of {run.total} profiled traces have a tab: the first of each point"
        lines.append(("note", f"{told}; `profrun report RUN/NUMBER` shows any other"))
    if not lines:
        return el("p", el("b", "fine", class_="chip fine"), " every trial finished and said nothing")
    word = {"missing": "care", "expectation": "failed", "trial": "warning", "note": "note"}
    return el(
        "ul",
        (el("li", el("b", kind, class_=f"chip {word[kind]}"), " ", line) for kind, line in lines),
        class_="quality",
    )


def _comparisons(document: Mapping[str, Any]) -> Html | None:
    rows = document.get("comparisons") or []
    if not rows:
        return None
    return el(
        "div",
        el("p", "Ratio of step times, b / a, with its 95 % interval; below 1 b is faster. The smallest "
                "change that these trials would find is beside it.", class_="note"),
        (_kind(kind, [row for row in rows if row["kind"] == kind]) for kind in KINDS),
    )  # fmt: skip


def _span(rows: Sequence[Mapping[str, Any]]) -> float:
    """The ratio at the right end of a table's interval bars: a little past its furthest end from 1."""
    ends = [end for row in rows if row["ratio"] and row["ci95"] for end in (row["ratio"], *row["ci95"])]
    return math.exp(1.05 * max([abs(math.log(end)) for end in ends if end > 0] + [math.log(1.1)]))


def _kind(kind: str, rows: Sequence[Mapping[str, Any]]) -> Html | None:
    if not rows:
        return None
    span = _span(rows)
    head = ("a (base)", "b", "verdict", "ratio", "95 % interval", "", "would find", "trials")
    body = []
    for row in rows:
        ci = row["ci95"]
        found = row["ratio"] and ci
        body.append(
            el(
                "tr",
                el("td", row["a"]),
                el("td", row["b"]),
                el("td", el("b", row["verdict"], class_=f"chip {row['verdict']}")),
                el(
                    "td",
                    f"{row['ratio']:.3f}" if row["ratio"] else "-",
                    class_="n",
                    data_v=row["ratio"] or "",
                ),
                el("td", f"{ci[0]:.3f} to {ci[1]:.3f}" if ci else "-", class_="n"),
                el("td", interval_bar(row["ratio"], ci[0], ci[1], span=span) if found else None),
                el("td", _smallest(row["mde"]), class_="n"),
                el("td", " and ".join(str(count) for count in row["trials"]), class_="n"),
            )
        )
        lines = [row["text"], *(row.get("changed") or ())]
        reasons = _reasons(row)
        told = el("ul", (el("li", line) for line in lines), class_="plain note")
        body.append(el("tr", el("td", told, _notes(reasons), colspan=len(head))))
    return el(
        "div",
        el("div", el("table", el("caption", KINDS[kind]),
                     el("thead", el("tr", (_head(title) for title in head))),
                     el("tbody", body), data_table=f"comparisons-{kind}"),
           class_="scroll", tabindex="0", role="region", aria_label=KINDS[kind]),
        class_="tablebox comparisons",
    )  # fmt: skip


def _head(title: str) -> Html:
    numeric = title in ("ratio", "95 % interval", "would find", "trials")
    return el(
        "th", title or el("span", "interval", class_="unit"), scope="col", class_="n" if numeric else None
    )


def _smallest(mde: float | None) -> str:
    """The smallest change that would be found; past a doubling the number says no more than that."""
    return "over 100 %" if mde is not None and mde > 1 else percent_text(mde)


def _notes(reasons: Sequence[str]) -> Html | None:
    if not reasons:
        return None
    return el(
        "details",
        el("summary", f"{len(reasons)} note{'s' * (len(reasons) != 1)} on how alike the two sides are"),
        el("ul", (el("li", line) for line in reasons), class_="plain"),
        class_="note",
    )


def _reasons(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{'allowed' if reason.get('allowed') else reason.get('severity')}: {reason.get('message')}"
        for reason in row.get("reasons") or ()
        if row["verdict"] != "incomparable" or reason.get("severity") != "stop"
    ]


def _point(trial: Mapping[str, Any]) -> str:
    return f"{trial['variant']}, {trial['collector']}{', blocking' if trial['blocking'] else ''}"


def _distributions(run: RunContent) -> Html | None:
    points: dict[str, list[Sequence[int]]] = {}
    for trial in run.document["trials"]:
        times = run.step_times.get(trial["trial"]) or ()
        if times and trial["state"] == "finished":
            points.setdefault(_point(trial), []).append(times)
    if not points:
        return None
    clocks = sorted({str(trial["clock"]) for trial in run.document["trials"] if trial["clock"]})
    note = (
        f"Each dot is a step of the recorded window, each row of dots a trial, each tick a trial's median. "
        f"Clock: {', '.join(clocks) or 'not known'}, as the hook in the job measured; of several ranks the "
        "slowest counts."
    )
    return el(
        "div",
        el("p", note, class_="note"),
        strip_chart(list(points.items()), "step times by point; the trial table holds the medians"),
    )


def _trials(document: Mapping[str, Any]) -> Html:
    columns = [
        Column("#", lambda row: row["trial"].split("-")[0]),
        Column("variant", lambda row: row["variant"]),
        Column("collector", lambda row: row["collector"]),
        Column("blocking", lambda row: "on" if row["blocking"] else "off"),
        Column("repeat", lambda row: row["repeat"], "count"),
        Column("state", lambda row: el("b", row["state"], class_=f"chip {row['state']}")),
        Column("exit", lambda row: row["exit_code"], "count", "exit code of the command; '-': it has none"),
        Column("steps", lambda row: row["steps"], "count", "steps seen"),
        Column("measured", lambda row: row["steps_measured"], "count", "steps in the recorded window"),
        Column("median step", lambda row: row["median_step_ns"], "ns", "median of the measured steps"),
        Column("clock", lambda row: row["clock"], note="what timed the steps"),
        Column("took", _took, "ns", "start to end of the trial, profiler and export included"),
        Column("trace", lambda row: "yes" if row["trace"] else (row["trace_error"] or "-")),
        Column("reason", lambda row: row["reason"]),
    ]
    return table("trials", columns, document["trials"], caption="trials, in the order they ran", limit=400)


def _took(row: Mapping[str, Any]) -> int | None:
    if row["started_ns"] is None or row["ended_ns"] is None:
        return None
    return int(row["ended_ns"]) - int(row["started_ns"])


def _ratios(document: Mapping[str, Any], what: str) -> Html | None:
    rows = document.get(what) or []
    same = document.get("blocking_kernels") or [] if what == "blocking" else []
    if not rows and not same:
        return None
    columns = [
        Column("variant", lambda row: row["variant"]),
        Column("collector", lambda row: row["collector"]),
        *([] if what == "blocking" else [Column("blocking", lambda row: "on" if row["blocking"] else "off")]),
        Column("blocking" if what == "blocking" else "profiled", lambda row: row["median_step_ns"], "ns",
               "median over trials of the median step time"),
        Column("not blocking" if what == "blocking" else "unprofiled",
               lambda row: row["base_median_step_ns"], "ns", "the same of the base"),
        Column("ratio", lambda row: row["ratio"], "number", "first / second; '-': a side measured no step"),
        Column("trials", lambda row: " and ".join(str(count) for count in row["trials"])),
    ]  # fmt: skip
    lines = [
        f"{pair['variant']}, {pair['collector']}: {_same(pair)} ({pair['pairs']} pairs, {pair['kernels']} "
        f"kernels in {pair['steps']} steps)"
        for pair in same
    ]
    return el(
        "div",
        table(what, columns, rows, caption="median step times and their ratio") if rows else None,
        el("p", "Do twins launch the same kernels?", class_="note") if lines else None,
        el("ul", (el("li", line) for line in lines), class_="plain") if lines else None,
    )


def _same(pair: Mapping[str, Any]) -> str:
    if pair["equal"] is None:
        return "no kernels were recorded"
    return "the same kernels" if pair["equal"] else f"not the same kernels: {pair['difference']}"


def _expectations(document: Mapping[str, Any]) -> Html | None:
    rows = document.get("expectations") or []
    if not rows:
        return None
    columns = [
        Column("state", lambda row: el("b", row["state"], class_=f"chip {row['state']}")),
        Column("expected", lambda row: row["expected"]),
        Column("found", _found, note="per step; the first trace that shows it"),
        Column("where", _where),
    ]
    return table("expectations", columns, rows, caption="guesses written down in the job before the run")


def _found(row: Mapping[str, Any]) -> str | None:
    found = row.get("found") or row.get("detail") or row.get("message")
    return None if found is None else str(found)


def _where(row: Mapping[str, Any]) -> str:
    parts = [str(row[key]) for key in ("variant", "collector") if row.get(key)]
    return ", ".join(parts) or "every trial"


def _job(run: RunContent) -> Html | None:
    if run.job is None and run.resolved is None:
        return None
    return el(
        "div",
        el("pre", run.job) if run.job is not None else None,
        el("details", el("summary", "the job that repeats this run"), el("pre", run.resolved))
        if run.resolved is not None
        else None,
    )
