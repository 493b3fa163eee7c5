"""The tree of modules as a table for a terminal: ``module_parts``.

The rows of a module, with "(own and not shown)" for its own work and for modules that have no row, add up to
it; the outermost modules and the rows of work outside of modules add up to the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from profrun.contract.units import percent_text, rate_text, time_text
from profrun.reports.terminal_layout import Part, Table, titled

if TYPE_CHECKING:
    from profrun.analysis.trace.modules import ModuleNode, ModuleTree
    from profrun.analysis.trace.summary import Summary

ROWS = 20
"""Modules that are shown, those with most time."""
LEAST = 0.005
"""Part of the whole from which a module has a row."""
REST = "(own and not shown)"
OUTSIDE = "(no module)"

Weight = Callable[["ModuleNode"], int]


def module_parts(summary: Summary) -> list[Part]:
    """The table of modules: GPU time where a GPU worked, else host time; nothing where none is recorded."""
    tree = summary.modules
    if tree is None:
        return []
    on_gpu = tree.gpu_ns > 0
    whole = tree.gpu_ns if on_gpu else tree.host_ns
    weight: Weight = (lambda node: node.gpu_ns) if on_gpu else (lambda node: node.host_ns)
    shown = _shown(tree, weight, whole)
    rows: list[tuple[str, ...]] = []
    for root in tree.roots:
        rows += _rows(root, tree, weight, shown, 0, 1)
    rows += _outside(tree, weight, whole)
    what = "GPU time" if on_gpu else "host time"
    why = "" if tree.steps else ": no steps are recorded"
    title = f"modules {summary.denominator.per}, {what}{why}"
    header = ("module", "calls", "forward", "backward", "both", "share")
    return titled(title, Table(header, rows, range(1, len(header))))


def _shown(tree: ModuleTree, weight: Weight, whole: int) -> set[int]:
    """ids of the nodes that have a row: from the outermost on, always the heaviest next."""
    shown: set[int] = set()
    waiting = list(tree.roots)
    while waiting and len(shown) < ROWS:
        best = max(waiting, key=weight)
        waiting.remove(best)
        shown.add(id(best))
        waiting += [child for child in best.children if weight(child) >= LEAST * whole]
    return shown | {id(root) for root in tree.roots}


def _rows(
    node: ModuleNode, tree: ModuleTree, weight: Weight, shown: set[int], depth: int, above: int
) -> list[tuple[str, ...]]:
    """The row of a module and those below it."""
    times = f" x {node.modules}" if node.modules > above else ""
    name = f"{'  ' * depth}{node.name}{times} ({node.module_class})"
    on_gpu = tree.gpu_ns > 0
    ways = (node.forward_ns, node.backward_ns) if on_gpu else (node.host_forward_ns, node.host_backward_ns)
    rows = [_row(name, node.calls, ways, weight(node), tree)]
    below = [child for child in node.children if id(child) in shown]
    for child in below:
        rows += _rows(child, tree, weight, shown, depth + 1, node.modules)
    rest = weight(node) - sum(map(weight, below))
    if below and rest:
        rows.append(_row(f"{'  ' * (depth + 1)}{REST}", None, (None, None), rest, tree))
    return rows


def _outside(tree: ModuleTree, weight: Weight, whole: int) -> list[tuple[str, ...]]:
    """The rows of work that is in no module."""
    if tree.gpu_ns == 0:
        rest = whole - sum(map(weight, tree.roots))
        return [_row(OUTSIDE, None, (None, None), rest, tree)] if rest > 0 else []
    named = [row for row in tree.outside if row.name and row.gpu_ns >= LEAST * whole]
    rest = sum(row.gpu_ns for row in tree.outside) - sum(row.gpu_ns for row in named)
    rows = [_row(f"{row.name} {OUTSIDE}", None, (None, None), row.gpu_ns, tree) for row in named]
    return [*rows, *([_row(OUTSIDE, None, (None, None), rest, tree)] if rest else [])]


def _row(
    name: str, calls: int | None, ways: tuple[int | None, int | None], both: int, tree: ModuleTree
) -> tuple[str, ...]:
    steps = tree.steps or 1
    whole = tree.gpu_ns or tree.host_ns
    return (
        name,
        "" if calls is None else rate_text(calls / steps),
        *("" if ns is None else time_text(ns / steps) for ns in ways),
        time_text(both / steps),
        percent_text(both / whole if whole else None),
    )
