"""Which GPU work of one side stands for which of the other.

Work is matched in passes, the surest first, and every pass takes only what the ones before left:

1. ``name``: the same normalised kernel name, at the same place in the op tree where there is one;
2. ``variant``: the same kernel under the same op with other template arguments, tile, layout or architecture;
3. ``op``: the same op at the same place runs another kernel (another vendor, library or dtype);
4. ``fusion``: a kernel whose name or op says which ops it holds, for those ops' kernels on the other side;
5. ``place``: the deepest range or module that both sides share (lowest common ancestor), by category first;
6. ``category``: the same category of kernel, when the place tells nothing.

What is left is added or removed. Calls and times are split in proportion, so that all groups together hold
exactly the work of both sides.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # compare.core imports this module: at run time only compare may import it
    from profrun.analysis.compare.trial import Atom, Facts

EPSILON = 1e-9

PARTS: Mapping[str, frozenset[str]] = {
    "addmm": frozenset({"mm", "add", "add_"}),
    "_addmm_activation": frozenset({"mm", "add", "add_", "addmm", "gelu", "relu"}),
    "baddbmm": frozenset({"bmm", "add", "add_", "mul", "div"}),
    "linear": frozenset({"mm", "add", "add_", "addmm"}),
    "layer_norm": frozenset({"mean", "var", "var_mean", "rsqrt", "sub", "mul", "add", "pow"}),
    "native_layer_norm": frozenset({"mean", "var", "var_mean", "rsqrt", "sub", "mul", "add", "pow"}),
    "rms_norm": frozenset({"mean", "rsqrt", "mul", "pow", "add"}),
    "scaled_dot_product_attention": frozenset(
        {"bmm", "baddbmm", "softmax", "_softmax", "_safe_softmax", "mul", "div", "masked_fill", "dropout"}
    ),
}
"""Ops that do at once what others do in pieces: base name -> base names of the pieces."""

_ARGUMENTS = re.compile(r"<.*>", re.DOTALL)
_VARIABLE = re.compile(
    r"_?(?:tilesize\d+x\d+x\d+|\d+x\d+(?:x\d+)?(?:_\d+x\d+)*|align\d+|[nt]{2}(?=_|$)|[NT]{2,3}(?=_|$)"
    r"|sm_?\d+|gfx\w+|[vh](?=_bz)|coop[AB]|\d+)"
)


_LAMBDA = re.compile(r"lambda\(([^()]*)\)")
_PARAMETERS = re.compile(r"\([^()]*\)")
_QUALIFIERS = re.compile(r"\b(?:const|void)\b|\s+")


@functools.lru_cache(maxsize=65536)
def identity(name: str) -> str:
    """What tools agree on of a normalised kernel name: equal means the same kernel.

    CUPTI and nsys spell inner functions differently (``const T1&`` for ``Functor const&``, ``operator ()``,
    a return type inside a template argument), so parameter lists, ``const``, ``void`` and spaces go; those of
    lambdas stay, for they tell the types.
    """
    text = _LAMBDA.sub(r"lambda[\1]", name.replace("(anonymous namespace)", "@"))
    text = _QUALIFIERS.sub(
        "", text.replace("operator()", "operator_call").replace("operator ()", "operator_call")
    )
    while True:
        shorter = _PARAMETERS.sub("", text)
        if shorter == text:
            return text
        text = shorter


@dataclass
class Piece:
    """Part of an atom that is not matched yet; a step and rank's worth."""

    atom: Atom
    calls: float
    ns: float

    def take(self, calls: float) -> Piece:
        """Cut off so many calls with their share of the time."""
        share = 1.0 if self.calls <= EPSILON else min(1.0, calls / self.calls)
        cut = Piece(self.atom, self.calls * share, self.ns * share)
        self.calls -= cut.calls
        self.ns -= cut.ns
        return cut


@dataclass
class Group:
    """Work of both sides that stands for each other; one side is empty for what was added or removed."""

    by: str | None
    a: list[Piece] = field(default_factory=list)
    b: list[Piece] = field(default_factory=list)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Distinct kernel names of each side, most time first."""
        return _names(self.a), _names(self.b)


def _names(pieces: Iterable[Piece]) -> tuple[str, ...]:
    time: dict[str, float] = defaultdict(float)
    for piece in pieces:
        time[piece.atom.name] += piece.ns
    return tuple(sorted(time, key=lambda name: (-time[name], name)))


def base(op: str) -> str:
    """``aten::gelu`` -> ``gelu``; ``autograd::...: MmBackward0`` stays."""
    return op.split("::", 1)[1] if op.startswith(("aten::", "prims::")) else op


def ops_of(atom: Atom) -> list[str]:
    """Ops round the launch, innermost first."""
    return [name for name, kind in zip(reversed(atom.path), reversed(atom.kinds), strict=True) if kind == "o"]


def ranges_of(atom: Atom) -> tuple[str, ...]:
    """Ranges round the launch, outermost first; the module's backward is a place of its own."""
    found = tuple(name for name, kind in zip(atom.path, atom.kinds, strict=True) if kind == "r")
    return (*found, f"backward of {atom.module}") if atom.backward and atom.module else found


def leaf(atom: Atom) -> str | None:
    """The innermost op."""
    return next(iter(ops_of(atom)), None)


def kernel_family(name: str) -> str:
    """The kernel without what tells its variants apart: template numbers, tile, layout, architecture."""
    head = _ARGUMENTS.sub("<>", name)
    inner = re.search(r"<(.*)>", name, re.DOTALL)
    functor = ""
    if inner:
        words = re.findall(r"[A-Za-z_]\w*(?:Functor|Impl|Ops?|kernel\w*|_cuda)\w*", inner[1])
        functor = "|".join(dict.fromkeys(words))
    return _VARIABLE.sub("", head) + "<" + functor


def align(
    a: Sequence[Atom],
    b: Sequence[Atom],
    *,
    units: tuple[int, int],
    facts: tuple[Mapping[str, Facts], Mapping[str, Facts]],
    per: tuple[float, float] = (1.0, 1.0),
) -> list[Group]:
    """Match the GPU work of two sides.

    Args:
        units: typical units on each side: calls and times are divided by them.
        facts: what kernel names tell, by side.
        per: further divisors of times (tokens, ...); calls stay those of a step.
    """
    left, right = (
        [Piece(atom, atom.calls / count, atom.ns / count / each) for atom in atoms]
        for atoms, count, each in ((a, units[0], per[0]), (b, units[1], per[1]))
    )
    groups = _by_name(left, right)
    for by, key in _KEYS:
        _pair(left, right, key, by, groups)
    _fuse(left, right, facts, groups)
    _by_place(left, right, groups)
    _pair(left, right, lambda piece: (piece.atom.role, piece.atom.category), "category", groups, sure=False)
    return _finish(left, right, groups)


def _by_name(left: list[Piece], right: list[Piece]) -> dict[Hashable, Group]:
    groups: dict[Hashable, Group] = {}
    keys: tuple[Callable[[Piece], Hashable], ...] = (
        lambda piece: (identity(piece.atom.name), piece.atom.role, piece.atom.path, piece.atom.module),
        lambda piece: (identity(piece.atom.name), piece.atom.role, ranges_of(piece.atom), leaf(piece.atom)),
        lambda piece: (identity(piece.atom.name), piece.atom.role, leaf(piece.atom)),
        lambda piece: (identity(piece.atom.name), piece.atom.role, ranges_of(piece.atom)),
        lambda piece: (identity(piece.atom.name), piece.atom.role),
    )
    for key in keys:
        for mine, theirs in _both(left, right, key):
            calls = min(sum(piece.calls for piece in mine), sum(piece.calls for piece in theirs))
            atom = mine[0].atom
            group = groups.setdefault(("name", identity(atom.name), atom.role), Group("name"))
            group.a += _take(mine, calls)
            group.b += _take(theirs, calls)
    return groups


def _take(pieces: list[Piece], calls: float) -> list[Piece]:
    total = sum(piece.calls for piece in pieces)
    share = calls / total if total else 0.0
    return [piece.take(piece.calls * share) for piece in pieces]


_KEYS: tuple[tuple[str, Callable[[Piece], Hashable]], ...] = (
    (
        "variant",
        lambda piece: (
            kernel_family(piece.atom.name), piece.atom.role, leaf(piece.atom), ranges_of(piece.atom),
            piece.atom.module,
        ),
    ),
    (
        "op",
        lambda piece: (
            (piece.atom.role, piece.atom.path, piece.atom.module, piece.atom.category)
            if leaf(piece.atom)
            else None
        ),
    ),
    (
        "op",
        lambda piece: (piece.atom.role, piece.atom.path, piece.atom.module) if leaf(piece.atom) else None,
    ),
    (
        "op",
        lambda piece: (
            (piece.atom.role, leaf(piece.atom), ranges_of(piece.atom), piece.atom.category)
            if leaf(piece.atom)
            else None
        ),
    ),
)  # fmt: skip


def _live(pieces: list[Piece]) -> list[Piece]:
    return [piece for piece in pieces if piece.calls > EPSILON]


def _both(
    left: list[Piece], right: list[Piece], key: Callable[[Piece], Hashable]
) -> Iterable[tuple[list[Piece], list[Piece]]]:
    """Live pieces of both sides with the same key (None is no key)."""
    sides: dict[Hashable, tuple[list[Piece], list[Piece]]] = {}
    for number, pieces in enumerate((left, right)):
        for piece in _live(pieces):
            value = key(piece)
            if value is not None:
                sides.setdefault(value, ([], []))[number].append(piece)
    return [(mine, theirs) for mine, theirs in sides.values() if mine and theirs]


def _pair(
    left: list[Piece],
    right: list[Piece],
    key: Callable[[Piece], Hashable],
    by: str,
    groups: dict[Hashable, Group],
    *,
    sure: bool = True,
) -> None:
    """Let everything that shares a key stand for each other, whatever its number."""
    for mine, theirs in _both(left, right, key):
        if not sure and _counted(mine[0].atom, groups) and _counted(theirs[0].atom, groups):
            continue  # more or fewer calls of kernels that both sides have is no replacement
        group = Group(by, _all(mine), _all(theirs))
        known = groups.setdefault((by, *group.names), Group(by))
        known.a += group.a
        known.b += group.b


def _counted(atom: Atom, groups: dict[Hashable, Group]) -> bool:
    return ("name", identity(atom.name), atom.role) in groups


def _all(pieces: list[Piece]) -> list[Piece]:
    return [piece.take(piece.calls) for piece in pieces]


def holds(atom: Atom, facts: Mapping[str, Facts]) -> frozenset[str]:
    """Base names of the ops that this kernel does in one: from its name, else from its op."""
    fact = facts.get(atom.name)
    named = frozenset(fact.fused_ops) if fact else frozenset()
    if atom.category not in ("gemm", "attention", "norm"):
        return named  # a fill or cast inside such an op does none of its pieces
    return named | frozenset(part for op in ops_of(atom) for part in PARTS.get(base(op), ()))


def _fuse(
    left: list[Piece],
    right: list[Piece],
    facts: tuple[Mapping[str, Facts], Mapping[str, Facts]],
    groups: dict[Hashable, Group],
) -> None:
    for plain, fused, known, flip in ((left, right, facts[1], False), (right, left, facts[0], True)):
        _fuse_one(plain, fused, known, flip, groups)


def _fuse_one(
    plain: list[Piece],
    fused: list[Piece],
    facts: Mapping[str, Facts],
    flip: bool,
    groups: dict[Hashable, Group],
) -> None:
    """Kernels of ``fused`` that hold several ops take those ops' kernels of ``plain``, in the same ranges.

    Ops that several fused kernels hold are shared out by the fused kernels' numbers of calls.
    """
    whole = [(piece, holds(piece.atom, facts)) for piece in _live(fused)]
    whole = [(piece, parts) for piece, parts in whole if parts]
    places: dict[Hashable, list[Piece]] = defaultdict(list)
    for piece in _live(plain):
        places[ranges_of(piece.atom)].append(piece)
    claims: dict[int, list[int]] = defaultdict(list)  # piece of plain -> pieces of fused
    lookup: dict[int, Piece] = {}
    for number, (piece, parts) in enumerate(whole):
        for other in places.get(ranges_of(piece.atom), ()):
            if {base(op) for op in ops_of(other.atom)} & parts:
                claims[id(other)].append(number)
                lookup[id(other)] = other
    found: dict[int, list[Piece]] = defaultdict(list)
    for key, numbers in claims.items():
        total = sum(whole[number][0].calls for number in numbers)
        calls, last = lookup[key].calls, numbers[-1]
        for number in numbers:
            part = lookup[key].calls if number == last else calls * whole[number][0].calls / total
            found[number].append(lookup[key].take(part))
    for number, parts_found in found.items():
        piece = whole[number][0]
        mine = [piece.take(piece.calls)]
        group = Group("fusion", mine, parts_found) if flip else Group("fusion", parts_found, mine)
        known = groups.setdefault(("fusion", *group.names), Group("fusion"))
        known.a += group.a
        known.b += group.b


def _by_place(left: list[Piece], right: list[Piece], groups: dict[Hashable, Group]) -> None:
    """Lowest common ancestor: the longest shared beginning of the ranges, then one range less, and so on."""
    deepest = max((len(ranges_of(piece.atom)) for piece in _live(left) + _live(right)), default=0)
    for length in range(deepest, 0, -1):

        def at(piece: Piece, length: int = length) -> Hashable:
            found = ranges_of(piece.atom)
            return found[:length] if len(found) >= length else None

        def in_category(piece: Piece, at: Callable[[Piece], Hashable] = at) -> Hashable:
            place = at(piece)
            return None if place is None else (place, piece.atom.role, piece.atom.category)

        def in_role(piece: Piece, at: Callable[[Piece], Hashable] = at) -> Hashable:
            place = at(piece)
            return None if place is None else (place, piece.atom.role)

        compiled = any(_untold(piece) for piece in _live(left) + _live(right))
        _pair(left, right, in_category, "place", groups, sure=False)
        if compiled:  # only what hides its category may stand for kernels of another one
            _pair(left, right, in_role, "place", groups, sure=False)


def _untold(piece: Piece) -> bool:
    """Does the kernel's name not say all that it does?"""
    return piece.atom.category in ("triton", "unknown") or piece.atom.name.startswith("triton_")


def _finish(left: list[Piece], right: list[Piece], groups: dict[Hashable, Group]) -> list[Group]:
    """What is left: more or fewer calls of a kernel that both sides have, else added or removed."""
    for number, pieces in enumerate((left, right)):
        for piece in _live(pieces):
            key = ("name", identity(piece.atom.name), piece.atom.role)
            group = groups.get(key)
            if group is None:
                group = groups.setdefault(("only", number, *key), Group(None))
            (group.b if number else group.a).append(piece.take(piece.calls))
    return list(groups.values())
