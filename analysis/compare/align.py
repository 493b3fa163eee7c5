"""Match the GPU work of two sides: which kernels of one side do the work of which kernels of the other.

``align`` is given the kernel groups of both sides and returns matches. It works in passes, the surest first,
and every pass takes only what the passes before left:

1. ``name``: the same kernel name, at the same place in the op tree where there is one;
2. ``variant``: the same kernel under the same op with other template arguments, tile, layout or architecture;
3. ``op``: the same op at the same place runs another kernel (another vendor, library or dtype);
4. ``fusion``: a kernel whose name or op tells which ops it holds, with the kernels of these ops;
5. ``place``: the deepest range or module that both sides share (lowest common ancestor), by category first;
6. ``category``: the same category of kernel, when the place tells nothing.

What is left is added or removed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup
from profrun.analysis.compare.fusion import match_fused
from profrun.analysis.compare.kernel_identity import kernel_family, kernel_identity
from profrun.analysis.compare.matching import Key, Match, Matching, Piece, live

_NAME_KEYS: tuple[Key, ...] = (
    lambda one: (kernel_identity(one.name), one.role, one.path, one.module),
    lambda one: (kernel_identity(one.name), one.role, one.ranges, one.op),
    lambda one: (kernel_identity(one.name), one.role, one.op),
    lambda one: (kernel_identity(one.name), one.role, one.ranges),
    lambda one: (kernel_identity(one.name), one.role),
)
_OP_KEYS: tuple[Key, ...] = (
    lambda one: (one.role, one.path, one.module, one.category) if one.op else None,
    lambda one: (one.role, one.path, one.module) if one.op else None,
    lambda one: (one.role, one.op, one.ranges, one.category) if one.op else None,
)
"""A kernel outside of any op has no key."""


def align(
    a: Sequence[KernelGroup],
    b: Sequence[KernelGroup],
    *,
    samples: tuple[int, int],
    facts: tuple[Mapping[str, KernelFacts], Mapping[str, KernelFacts]],
    per: tuple[float, float] = (1.0, 1.0),
) -> list[Match]:
    """Match the GPU work of two sides.

    Args:
        samples: typical samples on each side: calls and times are divided by them.
        facts: what kernel names tell, by side.
        per: further divisors of times (tokens, ...); calls stay per step.
    """
    left, right = (
        [Piece(one, one.calls / count, one.ns / count / each) for one in groups]
        for groups, count, each in ((a, samples[0], per[0]), (b, samples[1], per[1]))
    )
    matching = Matching(left, right)
    for key in _NAME_KEYS:
        matching.by_name(key)
    matching.all_that_share(_variant, "variant")
    for key in _OP_KEYS:
        matching.all_that_share(key, "op")
    match_fused(matching, facts)
    _match_places(matching)
    matching.all_that_share(lambda one: (one.role, one.category), "category", unless_named=True)
    return matching.finish()


def _variant(one: KernelGroup) -> Hashable:
    return kernel_family(one.name), one.role, one.op, one.ranges, one.module


def _match_places(matching: Matching) -> None:
    """Lowest common ancestor: the longest shared beginning of the ranges, then one range less, and so on."""
    left = live(matching.left) + live(matching.right)
    for length in range(max((len(piece.group.ranges) for piece in left), default=0), 0, -1):

        def in_role(one: KernelGroup, length: int = length) -> tuple[Hashable, ...] | None:
            ranges = one.ranges
            return (ranges[:length], one.role) if len(ranges) >= length else None

        def in_category(one: KernelGroup, in_role: Key = in_role) -> Hashable:
            place = in_role(one)
            return None if place is None else (place, one.category)

        compiled = any(_category_hidden(piece.group) for piece in live(matching.left) + live(matching.right))
        matching.all_that_share(in_category, "place", unless_named=True)
        if compiled:  # only work whose category is hidden may match kernels of another category
            matching.all_that_share(in_role, "place", unless_named=True)


def _category_hidden(one: KernelGroup) -> bool:
    """Does the kernel's name not tell all that it does?"""
    return one.category in ("triton", "unknown") or one.name.startswith("triton_")
