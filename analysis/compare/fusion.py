"""Kernels that do several ops at once, and the kernels of these ops on the other side.

``match_fused`` is given a ``Matching`` and what kernel names tell; it matches a kernel whose name or op tells
which ops it holds with the kernels of these ops on the other side, in the same ranges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup
from profrun.analysis.compare.kernel_identity import op_base_name
from profrun.analysis.compare.matching import Match, Matching, Piece, live

_NORM = frozenset({"mean", "var", "var_mean", "rsqrt", "sub", "mul", "add", "pow"})
PARTS: Mapping[str, frozenset[str]] = {
    "addmm": frozenset({"mm", "add", "add_"}),
    "_addmm_activation": frozenset({"mm", "add", "add_", "addmm", "gelu", "relu"}),
    "baddbmm": frozenset({"bmm", "add", "add_", "mul", "div"}),
    "linear": frozenset({"mm", "add", "add_", "addmm"}),
    "layer_norm": _NORM,
    "native_layer_norm": _NORM,
    "rms_norm": frozenset({"mean", "rsqrt", "mul", "pow", "add"}),
    "scaled_dot_product_attention": frozenset(
        {"bmm", "baddbmm", "softmax", "_softmax", "_safe_softmax", "mul", "div", "masked_fill", "dropout"}
    ),
}
"""Ops that do at once what others do in pieces: base name -> base names of the pieces."""
Facts = Mapping[str, KernelFacts]


def match_fused(matching: Matching, facts: tuple[Facts, Facts]) -> None:
    """Match fused kernels of side b with kernels of side a, then those of side a with kernels of side b."""
    for fused, parts in _fused(matching.left, matching.right, facts[1]):
        matching.add(Match("fusion", parts, [fused]))
    for fused, parts in _fused(matching.right, matching.left, facts[0]):
        matching.add(Match("fusion", [fused], parts))


def _fused(plain: list[Piece], fused: list[Piece], facts: Facts) -> list[tuple[Piece, list[Piece]]]:
    """Each fused piece with the pieces of ``plain`` whose ops it does; both are cut off.

    A piece of ``plain`` that several fused kernels claim is divided by their numbers of calls.
    """
    holders = [(piece, held) for piece in live(fused) if (held := _ops_held(piece.group, facts))]
    places: dict[tuple[str, ...], list[Piece]] = defaultdict(list)
    for piece in live(plain):
        places[piece.group.ranges].append(piece)
    claims: dict[int, tuple[Piece, list[int]]] = {}  # by id of the plain piece: who claims it
    for number, (piece, held) in enumerate(holders):
        for other in places.get(piece.group.ranges, ()):
            if {op_base_name(op) for op in other.group.ops} & held:
                claims.setdefault(id(other), (other, []))[1].append(number)
    found: dict[int, list[Piece]] = defaultdict(list)
    for other, numbers in claims.values():
        total = sum(holders[number][0].calls for number in numbers)
        calls, last = other.calls, numbers[-1]
        for number in numbers:
            part = other.calls if number == last else calls * holders[number][0].calls / total
            found[number].append(other.take(part))
    return [(_all_of(holders[number][0]), parts) for number, parts in found.items()]


def _all_of(piece: Piece) -> Piece:
    return piece.take(piece.calls)


def _ops_held(group: KernelGroup, facts: Facts) -> frozenset[str]:
    """Base names of the ops that this kernel does at once: from its name, and from its op."""
    fact = facts.get(group.name)
    named = frozenset(fact.fused_ops) if fact else frozenset()
    if group.category not in ("gemm", "attention", "norm"):
        return named  # a fill or cast inside such an op does none of its pieces
    return named | frozenset(part for op in group.ops for part in PARTS.get(op_base_name(op), ()))
