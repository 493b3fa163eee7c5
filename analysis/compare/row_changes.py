"""Differences between matched kernels that their names and launches tell, and what a person calls them.

``changes`` and ``label`` are given matched pieces and what kernel names tell, and return texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from profrun.analysis.compare.compared_trial import KernelFacts
from profrun.analysis.compare.kernel_identity import op_base_name
from profrun.analysis.compare.matching import Match, Piece

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
"""Short names that tell nothing without the op that launched them."""
Facts = Mapping[str, KernelFacts]
_TOLD: tuple[tuple[str, Callable[[KernelFacts], str]], ...] = (
    ("layout", lambda fact: fact.layout or ""),
    ("dtype", lambda fact: fact.dtype or ""),
    ("tile", lambda fact: "x".join(map(str, fact.tile or ()))),
    ("arch", lambda fact: fact.arch or ""),
    ("epilogue", lambda fact: "+".join(fact.epilogue)),
)
"""What a kernel name tells, as text; empty where it does not tell."""


def label(pieces: Sequence[Piece], facts: Facts) -> str:
    """What a person calls these kernels: short names, or the op where the name of the kernel is generic."""
    names: dict[str, float] = {}
    for piece in pieces:
        fact = facts.get(piece.group.name)
        text = fact.short if fact else piece.group.name
        op = piece.group.op
        if text in GENERIC and op:
            text = f"{op_base_name(op)} ({text})"
        names[text] = names.get(text, 0.0) + piece.ns
    found = sorted(names, key=lambda name: -names[name])
    return " + ".join(found[:4]) + (f" + {len(found) - 4} more" if len(found) > 4 else "")


def changes(match: Match, facts: tuple[Facts, Facts]) -> tuple[str, ...]:
    """What changed between the two sides of a match, as far as names and launches tell.

    The same name means the same GPU work only when the launch shapes agree too. For other names the texts
    tell which of layout, dtype, tile, architecture and epilogue differ.
    """
    if not match.a or not match.b:
        return ()
    left, right = (
        [side[name] for name in names if name in side] for side, names in zip(facts, match.names, strict=True)
    )
    if match.by == "name":
        return _launch_changes(left[0], right[0]) if left and right else ()
    found = []
    for what, told in _TOLD:
        before, after = (sorted({text for fact in side if (text := told(fact))}) for side in (left, right))
        known = (before and after) or what == "epilogue"  # without an epilogue there is none in the name
        if known and before != after:
            found.append(f"{what} {'/'.join(before) or 'none'} -> {'/'.join(after) or 'none'}")
    return tuple(found or _argument_changes(match))


def _argument_changes(match: Match) -> list[str]:
    """Template arguments that differ between two variants of one kernel, at most two."""
    a, b = match.names
    if match.by != "variant" or len(a) != 1 or len(b) != 1:
        return []
    left, right = (re.split(r"[<>,()\s]+", names[0]) for names in (a, b))
    pairs = [(x, y) for x, y in zip(left, right, strict=False) if x != y and not x.startswith("#")]
    return [f"template {x[:40]} -> {y[:40]}" for x, y in pairs[:2]]


def _launch_changes(a: KernelFacts, b: KernelFacts) -> tuple[str, ...]:
    left, right = {shape for shape, _ in a.shapes}, {shape for shape, _ in b.shapes}
    if not left or not right or left == right:
        return ()
    gone, new = sorted(left - right), sorted(right - left)
    return (f"grid {', '.join(gone[:2]) or 'as before'} -> {', '.join(new[:2]) or 'fewer shapes'}",)
