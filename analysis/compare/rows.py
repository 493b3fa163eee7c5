"""Rows of what changed: from matched groups of GPU work to names, statuses and callouts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from profrun.analysis.compare.align import Group, Piece, base, leaf
from profrun.analysis.compare.model import Row
from profrun.analysis.compare.stats import MIN_TRIALS, estimate
from profrun.analysis.compare.trial import Facts, Trial

ROW_FLOOR = 0.03
"""With fewer than two trials a side, the relative change of a row up to which it counts as the same: a stated
floor, not a measured one."""
MATTERS = 0.001
"""Share of side a's GPU time in a step below which a row's change is nothing, whatever its ratio."""
MOST_ESTIMATES = 60
"""Rows whose interval is worked out, those with most time."""
GENERIC = frozenset(
    {
        "Kernel",
        "Kernel2",
        "device_kernel",
        "elementwise_kernel",
        "elementwise_kernel_manual_unroll",
        "kernel",
        "multi_tensor_apply_kernel",
        "reduce_kernel",
        "unrolled_elementwise_kernel",
        "vectorized_elementwise_kernel",
        "vectorized_templated_elementwise_kernel",
    }
)
"""Short names that say nothing without the op that launched them."""

Side = Mapping[str, Facts]


def kernel_rows(
    groups: Sequence[Group],
    facts: tuple[Side, Side],
    sides: tuple[Sequence[Trial], Sequence[Trial]],
    *,
    threshold: float,
    per: tuple[float, float],
) -> tuple[Row, ...]:
    """One row a group, largest change first."""
    merged = [_row(group, facts) for group in groups if group.a or group.b]
    merged.sort(key=lambda row: -max(row.a_ns, row.b_ns))
    matters = MATTERS * sum(row.a_ns for row in merged)
    rows = [
        _judged(row, sides, threshold, per, matters, certain=place < MOST_ESTIMATES)
        for place, row in enumerate(merged)
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), -row.b_ns, row.name)))


def _sum(pieces: Sequence[Piece]) -> tuple[float, float]:
    return sum(piece.ns for piece in pieces), sum(piece.calls for piece in pieces)


def _row(group: Group, facts: tuple[Side, Side]) -> Row:
    (a_ns, a_calls), (b_ns, b_calls) = _sum(group.a), _sum(group.b)
    a_names, b_names = group.names
    labels = _label(group.a, facts[0]), _label(group.b, facts[1])
    mine = group.a or group.b
    most = max(mine, key=lambda piece: piece.ns).atom
    replaced = group.by not in (None, "name") and group.a and group.b
    return Row(
        name=" + ".join(a_names or b_names), category=most.category,
        status="replaced" if replaced else "", a_ns=a_ns, b_ns=b_ns, delta_ns=b_ns - a_ns,
        a_calls=a_calls, b_calls=b_calls, ratio=b_ns / a_ns if a_ns and b_ns else None, by=group.by,
        changes=changes(group, facts), a_names=a_names, b_names=b_names,
        replaced_by=" + ".join(b_names) if replaced else None,
        label=f"{labels[0]} -> {labels[1]}" if replaced else labels[0] or labels[1],
    )  # fmt: skip


def _label(pieces: Sequence[Piece], facts: Side) -> str:
    """What a person calls these kernels: the short name, or the op where the kernel's own name is generic."""
    names: dict[str, float] = {}
    for piece in pieces:
        fact = facts.get(piece.atom.name)
        text = fact.short if fact else piece.atom.name
        op = leaf(piece.atom)
        if text in GENERIC and op:
            text = f"{base(op)} ({text})"
        names[text] = names.get(text, 0.0) + piece.ns
    found = sorted(names, key=lambda name: -names[name])
    return " + ".join(found[:4]) + (f" + {len(found) - 4} more" if len(found) > 4 else "")


def changes(group: Group, facts: tuple[Side, Side]) -> tuple[str, ...]:
    """What names and launches say that changed between the two sides of a group.

    Same name means the same GPU work only when the launch shapes agree too; a replacement says which of
    layout, dtype, tile, architecture and epilogue are others.
    """
    if not group.a or not group.b:
        return ()
    a, b = group.names
    left, right = [facts[0][n] for n in a if n in facts[0]], [facts[1][n] for n in b if n in facts[1]]
    if group.by == "name":
        return _launches(left[0], right[0]) if left and right else ()
    found = []
    for what in ("layout", "dtype", "tile", "arch", "epilogue"):
        values = [_values(side, what) for side in (left, right)]
        if values[0] and values[1] and values[0] != values[1]:
            found.append(f"{what} {'/'.join(values[0])} -> {'/'.join(values[1])}")
        elif what == "epilogue" and values[0] != values[1]:
            found.append(f"epilogue {'/'.join(values[0]) or 'none'} -> {'/'.join(values[1]) or 'none'}")
    return tuple(found or _arguments(group))


def _arguments(group: Group) -> list[str]:
    """Template arguments that differ between two variants of one kernel."""
    a, b = group.names
    if group.by != "variant" or len(a) != 1 or len(b) != 1:
        return []
    left, right = (re.split(r"[<>,()\s]+", names[0]) for names in (a, b))
    pairs = [(x, y) for x, y in zip(left, right, strict=False) if x != y and not x.startswith("#")]
    return [f"template {x[:40]} -> {y[:40]}" for x, y in pairs[:2]]


def _values(side: Sequence[Facts], what: str) -> tuple[str, ...]:
    found = []
    for fact in side:
        value = getattr(fact, what)
        if value:
            found.append("x".join(map(str, value)) if what == "tile" else
                         "+".join(value) if isinstance(value, tuple) else str(value))  # fmt: skip
    return tuple(sorted(set(found)))


def _launches(a: Facts, b: Facts) -> tuple[str, ...]:
    left, right = {shape for shape, _ in a.shapes}, {shape for shape, _ in b.shapes}
    if not left or not right or left == right:
        return ()
    gone, new = sorted(left - right), sorted(right - left)
    return (f"grid {', '.join(gone[:2]) or 'as before'} -> {', '.join(new[:2]) or 'fewer shapes'}",)


def _judged(
    row: Row,
    sides: tuple[Sequence[Trial], Sequence[Trial]],
    threshold: float,
    per: tuple[float, float],
    matters: float,
    *,
    certain: bool,
) -> Row:
    """The row with its status, and its interval where there are repeats."""
    from dataclasses import replace

    if row.status == "replaced":
        return replace(row, ci95=_interval(row, sides, per) if certain else None)
    if not row.a_calls or not row.b_calls:
        return replace(row, status="added" if not row.a_calls else "removed")
    if abs(row.a_calls - row.b_calls) > 0.005 * max(row.a_calls, row.b_calls):
        return replace(row, status="more" if row.b_calls > row.a_calls else "fewer")
    ci95 = _interval(row, sides, per) if certain else None
    return replace(row, ci95=ci95, status=status(row.a_ns, row.b_ns, ci95, threshold, matters))


def with_interval(
    row: Row,
    sides: tuple[Sequence[Trial], Sequence[Trial]],
    threshold: float,
    per: tuple[float, float],
    matters: float,
) -> Row:
    """A row of another view with its interval, and its status by that, where its kernels are its own."""
    from dataclasses import replace

    ci95 = _interval(row, sides, per) if row.a_ns and row.b_ns else None
    if ci95 is None:
        return row
    return replace(row, ci95=ci95, status=status(row.a_ns, row.b_ns, ci95, threshold, matters))


def status(
    a_ns: float, b_ns: float, ci95: tuple[float, float] | None, threshold: float, matters: float = 0.0
) -> str:
    """faster or slower when the change is above what counts as the same: with an interval, when that excludes
    1 and the change is over the threshold; without one, when it is over the floor. ``matters``: ns below
    which no change counts."""
    if abs(b_ns - a_ns) <= matters:
        return "same"
    ratio = b_ns / a_ns if a_ns else 1.0
    limit = threshold if ci95 is not None else max(threshold, ROW_FLOOR)
    if 1 / (1 + limit) < ratio < 1 + limit or (ci95 is not None and ci95[0] <= 1 <= ci95[1]):
        return "same"
    return "slower" if ratio > 1 else "faster"


def _interval(
    row: Row, sides: tuple[Sequence[Trial], Sequence[Trial]], per: tuple[float, float]
) -> tuple[float, float] | None:
    """Interval of the ratio of the row's time a step, from each trial's steps; None without repeats, or where
    a group holds only some calls of a kernel (their steps' times are not its own)."""
    if min(len(side) for side in sides) < MIN_TRIALS:
        return None
    trials = []
    for side, names, total, divisor in zip(
        sides, (row.a_names, row.b_names), (row.a_ns, row.b_ns), per, strict=True
    ):
        steps = [_steps(trial, names) for trial in side]
        if any(not step or min(step) <= 0 for step in steps):
            return None
        count = sum(map(len, steps))
        whole = sum(map(sum, steps)) / count / divisor
        if not total or abs(whole / total - 1) > 0.01:
            return None
        trials.append([[value / divisor for value in step] for step in steps])
    return estimate(*trials, statistic="mean", resamples=1000).ci95


def _steps(trial: Trial, names: Sequence[str]) -> list[float]:
    series = [trial.series.get(name) for name in names]
    if any(one is None for one in series):
        return []
    return [float(sum(values)) for values in zip(*(one for one in series if one is not None), strict=True)]
