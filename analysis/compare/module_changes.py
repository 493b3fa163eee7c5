"""What changed by nn.Module: ``module_changes`` is given two sides and returns the rows of one tree of both.

A row's time is that of all GPU work that its module, or a module inside of it, launched; ``own`` is the part
of the module itself. The own times of all rows add up to the GPU part of the step: work outside of modules
has a row. Alike modules of a block (``h.0``, ``h.1``, ...) are one row, ``h.*``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from profrun.analysis.compare.model import ModuleChange
from profrun.analysis.compare.sides import Sides

OUTSIDE = "(no module)"
"""Name of the row of the work that no module launched."""
FOLDED = "*"
"""Stands for the number of a repeated block."""
_Path = tuple[str, ...]


@dataclass
class _Node:
    """A module as it is collected; pairs are side a and b."""

    own: list[float] = field(default_factory=lambda: [0.0, 0.0])
    members: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))


def module_changes(sides: Sides) -> tuple[ModuleChange, ...]:
    """The modules of both sides, parents before their children, most time first; none without modules."""
    if not any(group.module for side in sides for group in side.kernel_groups):
        return ()
    nodes: dict[_Path, _Node] = defaultdict(_Node)
    folded = _folded(sides)
    for number, side in enumerate(sides):
        for group in side.kernel_groups:
            parts = tuple(group.module.split(".")) if group.module else (OUTSIDE,)
            path = _fold(parts, folded)
            for end in range(1, len(path) + 1):
                nodes[path[:end]].members[number].add(".".join(parts[:end]))
            nodes[path].own[number] += group.ns / side.samples / side.per
    inside: dict[_Path, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for path, node in nodes.items():
        for end in range(1, len(path) + 1):
            for number in (0, 1):
                inside[path[:end]][number] += node.own[number]
    return tuple(_row(path, nodes[path], inside[path]) for path in _in_order(inside))


def _folded(sides: Sides) -> set[_Path]:
    """Parents below which several children have a number for a name."""
    numbers: dict[_Path, set[str]] = defaultdict(set)
    for side in sides:
        for group in side.kernel_groups:
            parts = tuple((group.module or "").split("."))
            for place, part in enumerate(parts):
                if part.isdecimal():
                    parent = tuple(FOLDED if one.isdecimal() else one for one in parts[:place])
                    numbers[parent].add(part)
    return {parent for parent, found in numbers.items() if len(found) > 1}


def _fold(parts: _Path, folded: set[_Path]) -> _Path:
    found: list[str] = []
    for place, part in enumerate(parts):
        parent = tuple(FOLDED if one.isdecimal() else one for one in parts[:place])
        found.append(FOLDED if part.isdecimal() and parent in folded else part)
    return tuple(found)


def _in_order(inside: dict[_Path, list[float]]) -> list[_Path]:
    """Paths with parents before their children, of one parent those with most time first."""

    def key(path: _Path) -> list[tuple[float, str]]:
        heads = [path[:end] for end in range(1, len(path) + 1)]
        return [(-max(inside[head]), head[-1]) for head in heads]

    return sorted(inside, key=key)


def _row(path: _Path, node: _Node, inside: list[float]) -> ModuleChange:
    a_ns, b_ns = inside
    return ModuleChange(
        name=".".join(path),
        label=path[-1],
        depth=len(path) - 1,
        modules=(len(node.members[0]), len(node.members[1])),
        a_ns=a_ns,
        b_ns=b_ns,
        delta_ns=b_ns - a_ns,
        a_own_ns=node.own[0],
        b_own_ns=node.own[1],
    )
