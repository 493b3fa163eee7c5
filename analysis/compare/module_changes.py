"""What changed by nn.Module: ``module_changes`` is given two sides and returns the rows of one tree of both.

A row's time is that of all GPU work that its module, or a module inside of it, launched; ``own`` is the part
of the module itself. The own times of all rows add up to the GPU part of the step: work outside of modules
has a row. Blocks with the same modules inside (``h.0``, ``h.1``, ...) are one row, ``h.*``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
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
    modules = dict.fromkeys(
        tuple(group.module.split(".")) for side in sides for group in side.kernel_groups if group.module
    )
    if not modules:
        return ()
    nodes: dict[_Path, _Node] = defaultdict(_Node)
    alike = _alike(modules)
    called = {_starred(module) for module in modules}
    for number, side in enumerate(sides):
        for group in side.kernel_groups:
            parts = tuple(group.module.split(".")) if group.module else (OUTSIDE,)
            levels = _levels(parts, alike, called)
            path = tuple(label for label, _ in levels)
            for end, (_, length) in enumerate(levels, 1):
                nodes[path[:end]].members[number].add(".".join(parts[:length]))
            nodes[path].own[number] += group.ns / side.samples / side.per
    inside: dict[_Path, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for path, node in nodes.items():
        for end in range(1, len(path) + 1):
            for number in (0, 1):
                inside[path[:end]][number] += node.own[number]
    return tuple(_row(path, nodes[path], inside[path]) for path in _in_order(inside))


def _alike(modules: Collection[_Path]) -> dict[_Path, set[str]]:
    """Parent -> the numbers of the children below it that are built alike: with the same modules inside.

    Children without modules inside, such as the layers of an ``nn.Sequential``, may be anything. They are not
    alike.
    """
    inside: dict[_Path, dict[str, set[_Path]]] = defaultdict(lambda: defaultdict(set))
    for parts in modules:
        for place, part in enumerate(parts[:-1]):
            if part.isdecimal():
                inside[_starred(parts[:place])][part].add(_starred(parts[place + 1 :]))
    found = {}
    for parent, numbers in inside.items():
        kinds = Counter(frozenset(below) for below in numbers.values())
        kind, count = kinds.most_common(1)[0]
        if count > 1:
            found[parent] = {number for number, below in numbers.items() if below == kind}
    return found


def _starred(parts: _Path) -> _Path:
    return tuple(FOLDED if part.isdecimal() else part for part in parts)


def _levels(parts: _Path, alike: dict[_Path, set[str]], called: set[_Path]) -> list[tuple[str, int]]:
    """(label, length of its qualified name) of each level of the tree; a block is one level with its list."""
    found: list[tuple[str, int]] = []
    for place, part in enumerate(parts):
        if part not in alike.get(_starred(parts[:place]), ()):
            found.append((part, place + 1))
        elif place and _starred(parts[:place]) not in called:  # the list of the blocks is no module that ran
            found[-1] = (f"{found[-1][0]}.{FOLDED}", place + 1)
        else:
            found.append((FOLDED, place + 1))
    return found


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
