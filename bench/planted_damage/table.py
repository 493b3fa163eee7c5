"""The results of a run as tables: per kind, per undamaged recording, and the smallest offset that shows."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from planted_damage import judge
from planted_damage.kinds import KINDS
from planted_damage.model import Truth
from planted_damage.slack import Slack

Row = dict[str, Any]
UNDAMAGED = "as it is"
RANKS = "last rank to first"
NAMED_AS = {
    "offset": ("gpu_clock",),
    "drift": ("gpu_clock",),
    "second session": ("gpu_clock",),
    "clock jumps": ("clock_contradiction", "clock_jump"),
    "one stream": ("stream_displaced",),
    "one rank": ("rank_clock",),
    "rank labels": ("reader:rank_contradicted",),
    "rank GPU records": ("clock_contradiction", "launches_without_kernels", "launch_order"),
    "10 % duplicates": ("duplicate_gpu_records",),
    "durations x1000": ("gpu_duration_unit",),
    "durations /1000": ("gpu_duration_unit", "zero_durations"),
    "GPU times x1000": ("gpu_time_unit",),
    "durations all 0": ("zero_durations",),
    "a third lost": ("launches_without_kernels", "lost_gpu_records"),
    "steps overlap": ("steps_overlap",),
    "launch against": ("launch_order",),
    "one event": ("far_records",),
    "correlations shuffled": ("launch_order", "clock_contradiction"),
}
"""How the codes begin that name a kind as what it is."""
KIND_COLUMNS = (
    "kind",
    "files",
    "must show",
    "alarm",
    "named as it is",
    "found",
    "truth inside",
    "left by repair: median, worst",
    "wrong repair",
    "silent",
    "errors",
    "codes",
)
SMALLEST_COLUMNS = (
    "smallest that shows",
    "clocks",
    "min",
    "median",
    "max",
    "none",
    "yardstick: min",
    "median",
    "max",
)


def read(path: Path) -> list[Row]:
    """Rows that apply."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if row["applies"]]


def verdict_of(row: Row, before: Row) -> judge.Verdict:
    """Hold one row against the undamaged recording."""
    visible = row["shows"] if row["kind"] in {kind.name for kind in KINDS if kind.clock} else None
    if row["kind"].startswith("one rank"):
        bounds = row["slack"].get(RANKS)
        visible = bounds is not None and Slack(**bounds).shows_displacement
    return judge.judge(
        Truth(**row["truth"]), judge.from_json(row["seen"]), judge.from_json(before["seen"]), visible
    )


def tables(path: Path, *, details: bool) -> str:
    """All tables as text."""
    rows = read(path)
    before = {row["file"]: row for row in rows if row["kind"] == UNDAMAGED}
    damaged = [row for row in rows if row["kind"] != UNDAMAGED]
    judged = [(row, verdict_of(row, before[row["file"]])) for row in damaged if not row["seen"]["error"]]
    parts = [_kinds(damaged, judged), _undamaged(list(before.values())), _smallest(list(before.values()))]
    if details:
        parts.append(_misses(damaged, judged))
    return "\n\n".join(parts)


def _kinds(damaged: list[Row], judged: list[tuple[Row, judge.Verdict]]) -> str:
    by_kind: dict[str, list[tuple[Row, judge.Verdict]]] = defaultdict(list)
    for row, verdict in judged:
        by_kind[row["kind"]].append((row, verdict))
    lines = _head(KIND_COLUMNS)
    for kind in KINDS:
        every = by_kind[kind.name]
        if not any(row["kind"] == kind.name for row in damaged):
            continue
        errors = sum(row["kind"] == kind.name and bool(row["seen"]["error"]) for row in damaged)
        stated = [verdict.inside for _, verdict in every if verdict.inside is not None]
        left = [verdict.residual_ns for _, verdict in every if verdict.residual_ns is not None]
        codes = Counter(code for _, verdict in every for code in verdict.new)
        cells = [
            kind.name,
            len(every) + errors,
            sum(verdict.visible is not False for _, verdict in every),
            sum(verdict.alarmed for _, verdict in every),
            sum(named(kind.name, verdict) for _, verdict in every),
            sum(verdict.found for _, verdict in every),
            f"{sum(stated)} of {len(stated)}" if stated else "-",
            f"{_ns(statistics.median(left))}, {_ns(max(left))}" if left else "-",
            sum(verdict.wrongly_moved for _, verdict in every),
            sum(verdict.visible is False and not verdict.alarmed for _, verdict in every),
            errors,
            ", ".join(f"{code} {count}" for code, count in codes.most_common(4)),
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def named(kind: str, verdict: judge.Verdict) -> bool:
    """Whether a code says what was planted."""
    starts = next(codes for begin, codes in NAMED_AS.items() if kind.startswith(begin))
    return any(code.removeprefix("quality:").startswith(starts) for code in verdict.new)


def _undamaged(before: list[Row]) -> str:
    lines = ["Alarms on recordings as they are:", ""]
    for row in before:
        seen = judge.from_json(row["seen"])
        if seen.error or seen.alarms:
            counts = ", ".join(f"{code} {count}" for code, count in seen.contradictions.items())
            odd = [clock for clock in seen.clocks if clock.verdict in seen.alarms]
            lines.append(f"* {row['file']}: {seen.error or counts} {odd or ''}")
    alarmed = len(lines) - 2
    return "\n".join([*lines, "", f"{alarmed} of {len(before)} recordings"])


def _smallest(before: list[Row]) -> str:
    """The smallest displacement of each clock that must show, either way, by profrun and by the yardstick."""
    sides: dict[str, list[int]] = {"GPU early": [], "GPU late": []}
    own: dict[str, list[int]] = {"GPU early": [], "GPU late": []}
    unknown: Counter[str] = Counter()
    for row in before:
        for clock in judge.from_json(row["seen"]).clocks:
            low, high = clock.constant
            for side, value in (("GPU late", high), ("GPU early", None if low is None else -low)):
                if value is None:
                    unknown[side] += 1
                else:
                    sides[side].append(value)
        for process, found in row["slack"].items():
            if process == RANKS:
                continue
            if found["high"] is not None:
                own["GPU early"].append(found["high"])
            if found["low"] is not None:
                own["GPU late"].append(-found["low"])
    lines = _head(SMALLEST_COLUMNS)
    for side, values in sides.items():
        cells = [side, len(values), *map(_ns, _three(values)), unknown[side], *map(_ns, _three(own[side]))]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _head(columns: tuple[str, ...]) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]


def _three(values: list[int]) -> tuple[float, float, float]:
    return (min(values), statistics.median(values), max(values)) if values else (0, 0, 0)


def _misses(damaged: list[Row], judged: list[tuple[Row, judge.Verdict]]) -> str:
    lines = ["Not found, not inside, or errors:", ""]
    for row in damaged:
        if row["seen"]["error"] and not row["seen"]["refused"]:
            lines.append(f"* crash: {row['file']} | {row['kind']} | {row['seen']['error'][:160]}")
    for row, verdict in judged:
        if not verdict.found or verdict.inside is False or verdict.wrongly_moved:
            clocks = [
                (clock.verdict, clock.first, clock.last) for clock in judge.from_json(row["seen"]).clocks
            ][:3]
            lines.append(f"* {row['file']} | {row['kind']} | {verdict} | {clocks}")
    return "\n".join(lines)


def _ns(value: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} ns"
