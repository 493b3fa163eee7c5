"""The trees of a flame graph for the script that draws it (``static/flame.js``): ``flame_data``.

Names, kinds and lines of the program are told once and then by their numbers; a node is a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.reports.place_text import folder_of, place_name
from profrun.reports.source_listing import SourceIds

if TYPE_CHECKING:
    from profrun.analysis.trace.call_tree import By, CallNode, CallTree
    from profrun.analysis.trace.line_tree import LineNode, LineTree
    from profrun.contract.denominator import Denominator
    from profrun.contract.line_names import Line
    from profrun.reports.content import Places

LABELS: dict[By, str] = {"modules": "module", "calls": "range and op", "python": "Python stack"}
"""What the nodes of a tree are, in words."""
BY_LINE = "line"
"""What those of the tree of lines are."""


class _Numbers(dict[str, int]):
    """Texts by number, in the order in which they were asked for."""

    def of(self, text: str) -> int:
        return self.setdefault(text, len(self))


def flame_data(
    trees: Sequence[CallTree], places: Places | None, key: str, of: Denominator
) -> dict[str, object]:
    """The trees, that of the lines first.

    Args:
        trees: call trees of a trace.
        places: where its GPU work comes from.
        key: prefix of the ids of its source in the page.
        of: what its times are of.

    Returns:
        ``names`` and ``kinds``; ``whole`` and ``per``: what times are of; and ``trees``. A node is [parent,
        name, kind, calls or launches, GPU ns, own GPU ns, host ns, own host ns]; in the tree of lines two
        more: ns of the backward, and the number of its line, -1 for none. That tree has ``lines``, each
        [file:line function, id of its source in the page or None], and ``work``, each [name, kind, 1 for a
        backward, 0 for none and None for unknown, launches, [node, ns] ...]. Times are in total.
    """
    names, kinds = _Numbers(), _Numbers()
    lines = places.tree if places else None
    found = [_lines(lines, places, key, names, kinds)] if places and lines else []
    found += [
        {
            "label": LABELS[tree.by],
            "steps": tree.steps,
            "gpu": tree.gpu_ns,
            "host": tree.host_ns,
            "nodes": [_row(node, names, kinds) for node in tree.nodes],
        }
        for tree in trees
    ]
    steps = next((tree.steps for tree in (lines, *trees) if tree is not None), 0)
    return {
        "names": list(names),
        "kinds": list(kinds),
        "per": " per step" if of.several else "",
        "whole": of.counted(steps) if of.several else of.the,
        "trees": found,
    }


def _row(node: CallNode, names: _Numbers, kinds: _Numbers) -> list[int]:
    times = (node.gpu_ns, node.own_gpu_ns, node.host_ns, node.own_host_ns)
    return [node.parent, names.of(node.name), kinds.of(node.kind), node.calls, *times]


def _lines(tree: LineTree, places: Places, key: str, names: _Numbers, kinds: _Numbers) -> dict[str, object]:
    """The tree of lines, whose files are called as in the table of lines."""
    folder, ids = folder_of(places.lines), SourceIds(places.source, key)
    lines: dict[Line, int] = {}

    def row(node: LineNode) -> list[int]:
        name, number = node.name, -1
        if node.line is not None:
            name, number = place_name(node.line, folder), lines.setdefault(node.line, len(lines))
        head = [node.parent, names.of(name), kinds.of(node.kind), node.launches]
        return [*head, node.gpu_ns, node.own_gpu_ns, 0, 0, node.backward_ns, number]

    nodes = [row(node) for node in tree.nodes]
    work = [
        [
            names.of(one.name),
            kinds.of(one.kind),
            None if one.backward is None else int(one.backward),
            one.launches,
            *(list(part) for part in one.parts),
        ]
        for one in tree.work
    ]
    return {
        "label": BY_LINE,
        "steps": tree.steps,
        "gpu": tree.gpu_ns,
        "host": 0,
        "nodes": nodes,
        "lines": [[place_name(line), ids.of(line)] for line in lines],
        "work": work,
    }
