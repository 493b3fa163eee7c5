"""The section on call trees as HTML: a flame graph that the script of the page draws, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.reports.flame_data import flame_data
from profrun.reports.html import Html, data_script, el
from profrun.reports.html_table import Column, table

if TYPE_CHECKING:
    from profrun.analysis.trace.call_tree import CallNode, CallTree
    from profrun.analysis.trace.modules import ModuleNode, ModuleTree
    from profrun.contract.denominator import Denominator
    from profrun.reports.content import Places

NOTE = (
    "A path is as wide as its part of the time; what it called lies below it. A click or Enter zooms and "
    "lists the kernels of the path, Escape goes back. GPU time is that of the work launched inside; a "
    "backward belongs to the module whose forward made it"
)
LINES_NOTE = (
    ", and by line to the line of its forward. A kernel that was made of several lines is divided equally "
    "among them"
)
LEAST = 0.01
"""Part of all time from which a path is a row of the table."""
ROWS = 60
"""Most rows of the table."""
INDENT = "\u2003"


def calls_html(
    trees: Sequence[CallTree],
    modules: ModuleTree | None,
    key: str,
    of: Denominator,
    places: Places | None = None,
) -> Html | None:
    """The flame graph, the modules and the largest call paths; None for a trace without any of these.

    Args:
        trees: call trees of the trace.
        modules: its modules.
        key: prefix of ids, unique in the page.
        of: what its times are of.
        places: where its GPU work comes from; its tree is the first that is drawn.
    """
    lines = places.tree if places else None
    if not trees and lines is None:
        return None
    id_ = f"{key}-calls-data"
    calls = next((tree for tree in trees if tree.by == "calls"), None)
    return el(
        "div",
        el("p", NOTE, LINES_NOTE if lines else "", ".", class_="note"),
        el("div", data_script(id_, flame_data(trees, places, key, of)), class_="flame", data_flame=id_),
        _modules(modules, of) if modules else None,
        _paths(calls, of) if calls else None,
    )


@dataclass(frozen=True)
class _ModuleRow:
    """A row of the table of modules; times are ns per step, None where they mean nothing."""

    name: str
    cls: str | None
    modules: int | None
    calls: float | None
    gpu: float
    forward: float | None = None
    backward: float | None = None
    own: float | None = None
    host: float | None = None


def _modules(tree: ModuleTree, of: Denominator) -> Html:
    """The modules as they nest, with the work outside of them: rows without indent add up to the whole."""
    steps = max(tree.steps, 1)
    per = of.per

    def row(node: ModuleNode, depth: int) -> Iterator[_ModuleRow]:
        yield _ModuleRow(
            INDENT * depth + node.name,
            node.module_class,
            node.modules,
            node.calls / steps,
            node.gpu_ns / steps,
            node.forward_ns / steps,
            node.backward_ns / steps,
            node.own_ns / steps,
            node.host_ns / steps,
        )
        for child in node.children:
            yield from row(child, depth + 1)

    rows = [one for root in tree.roots for one in row(root, 0)]
    rows += [
        _ModuleRow(one.name or "(in no module and no range)", None, None, None, one.gpu_ns / steps)
        for one in tree.outside
    ]
    columns: list[Column[_ModuleRow]] = [
        Column("module", lambda one: one.name, "name"),
        Column("class", lambda one: one.cls),
        Column("modules", lambda one: one.modules, "count", "alike modules that the row stands for"),
        Column("calls", lambda one: one.calls, "number", f"calls of the forward {per}"),
        Column("share", lambda one: one.gpu * steps / max(tree.gpu_ns, 1), "share", "of all GPU work"),
        Column("GPU", lambda one: one.gpu, "ns", f"GPU work launched inside, {per}; = forward + backward"),
        Column("forward", lambda one: one.forward, "ns", f"GPU work of the forward, {per}"),
        Column("backward", lambda one: one.backward, "ns", f"GPU work of the backward, {per}"),
        Column("own and not shown", lambda one: one.own, "ns", f"GPU work in no module below, {per}"),
        Column("host", lambda one: one.host, "ns", f"host time of forward and backward, {per}"),
    ]
    caption = f"modules, {per}; repeated blocks are one row"
    return table("modules", columns, rows, caption=caption, limit=200, filterable=True)


@dataclass(frozen=True)
class _Path:
    """A row of the table of call paths."""

    name: str
    node: CallNode


def _paths(tree: CallTree, of: Denominator) -> Html | None:
    """The largest call paths, each below what called it."""
    below: dict[int, list[int]] = {}
    for at, node in enumerate(tree.nodes):
        below.setdefault(node.parent, []).append(at)
    whole, steps = (tree.gpu_ns or tree.host_ns), max(tree.steps, 1)

    def size(node: CallNode) -> int:
        return node.gpu_ns if tree.gpu_ns else node.host_ns

    def rows(parent: int, depth: int) -> Iterator[_Path]:
        for at in sorted(below.get(parent, ()), key=lambda at: (-size(tree.nodes[at]), at)):
            if size(tree.nodes[at]) >= LEAST * whole > 0:
                yield _Path(INDENT * depth + tree.nodes[at].name, tree.nodes[at])
                yield from rows(at, depth + 1)

    found = list(rows(-1, 0))
    if not found:
        return None
    per = of.per
    gpu: list[Column[_Path]] = [
        Column("GPU", lambda row: row.node.gpu_ns / steps, "ns", f"GPU work launched inside, {per}"),
        Column("own GPU", lambda row: row.node.own_gpu_ns / steps, "ns", f"GPU work of no path below, {per}"),
    ]
    columns: list[Column[_Path]] = [
        Column("call path", lambda row: row.name, "name", full=lambda row: row.node.name),
        Column("kind", lambda row: row.node.kind),
        Column(
            "calls",
            lambda row: row.node.calls or None,
            "count",
            f"of {'all steps' if of.several else of.the}",
        ),
        Column(
            "share", lambda row: size(row.node) / whole, "share", "of all GPU time; of CPU time without a GPU"
        ),
        *(gpu if tree.gpu_ns else ()),
        Column("host", lambda row: row.node.host_ns / steps, "ns", f"host time, {per}"),
        Column(
            "own host", lambda row: row.node.own_host_ns / steps, "ns", f"host time of no path below, {per}"
        ),
    ]
    steps_text = f" of {of.counted(tree.steps)}" if of.several else ""
    caption = f"call paths{steps_text} with 1 % of the time or more, {per}"
    return table("calls", columns, found, caption=caption, limit=ROWS, filterable=True)
