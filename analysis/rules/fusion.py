"""Fusion: attention in pieces, chains of point-wise kernels, and what the compiler fused."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.replay import Floats
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import Gain
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.kernel_columns import kernel_values
from profrun.contract.units import percent_text, time_text

CHAIN_SHARE = 0.05
POINTWISE = frozenset({"elementwise", "copy", "fill"})
REDUCTIONS = frozenset({"reduction", "norm", "softmax"})
"""Kernels of torch that a compiler makes one kernel with the point-wise ones before and behind them."""
SOFTMAX_SHARE = 0.005
PRODUCTS = 2
"""At most so many matrix products lie between two chains that a compiler can make one: the backward of a
linear layer has two."""
_PER_THREAD = re.compile(r"^[^<]*<[\d, ]*")
"""How the name of a point-wise kernel of torch begins: it tells how many elements each thread computes."""


@rule(
    "unfused-attention",
    "Attention runs as separate kernels",
    experiments=("compile=default",),
    remedy="scaled_dot_product_attention",
    meaning="Scores, softmax and the product with the values are kernels of their own: the score matrix "
    "(sequence x sequence) is written to memory and read again, twice.",
    threshold="Batched matrix multiplies (bmm, baddbmm) and a softmax under the same parent op or in the "
    "same step, no fused attention kernel, and softmax at least 0.5 % of the kernel time. Without op "
    "records: softmax and GEMM kernels but no attention kernel, softmax at least 2 %; for information only.",
    advice="scaled_dot_product_attention, need_weights=False for nn.MultiheadAttention, or FlashAttention.",
    bound="The time of the softmax kernels and of all kernels between the two matrix multiplies round each "
    "of them; the multiplies themselves remain.",
    relies_on=("kernels",),
)
def unfused_attention(ctx: Context) -> Iterator[Hit]:
    """Softmax beside batched GEMMs without an attention kernel."""
    scores = ctx.kernel_slices(lambda kernel: kernel.category == "softmax")
    fused = ctx.kernel_slices(lambda kernel: kernel.category == "attention")
    softmax = ctx.total(scores)
    if not softmax or len(fused) or not ctx.kernel_ns:
        return
    share = softmax / ctx.kernel_ns
    products = ctx.in_steps(ctx.named("op", lambda name: name in ("aten::bmm", "aten::baddbmm")))
    norms = ctx.in_steps(ctx.named("op", lambda name: name in ("aten::_softmax", "aten::_safe_softmax")))
    recorded = len(ctx.frame.of("op")) > 0
    gemms = ctx.kernel_slices(lambda kernel: kernel.category == "gemm")
    if recorded and (not len(products) or not len(norms) or share < SOFTMAX_SHARE):
        return
    if not recorded and (share < 0.02 or not len(gemms)):
        return
    between = _between(ctx, scores, gemms)
    beside = f"{len(products)} batched matrix multiplies" if recorded else "GEMMs (no ops are recorded)"
    yield Hit(
        f"softmax takes {percent_text(share)} of the kernel time beside {beside}, and no fused attention "
        f"kernel runs; with the kernels between the multiplies it is "
        f"{time_text(ctx.per_step_ns(ctx.total(between)))} {ctx.per}",
        {
            "softmax_ns": softmax,
            "softmax_share": share,
            "share_of": "time of all kernels",
            "between_ns": ctx.total(between),
            "bmm_calls": len(products) if recorded else None,
        },
        slices=ctx.worst(scores),
        names=sorted({ctx.frame.text(int(one)) for one in products}),
        gain=ctx.gpu_gain(between, np.ones(len(between))),
        extent=f"softmax takes {percent_text(share)} of the kernel time",
        at_most=None if recorded else "info",
    )


def _between(ctx: Context, scores: Index, gemms: Index) -> Index:
    """Each of the softmax kernels and what runs between the GEMMs round it, on its stream."""
    source = ctx.frame
    ids = ctx.step_gpu
    ids = source.by_track(ids)
    wall = np.isin(ids, gemms)
    wall[1:] |= source.track[ids[1:]] != source.track[ids[:-1]]
    group = np.cumsum(wall)
    alike = np.isin(group, group[np.isin(ids, scores)]) & ~np.isin(ids, gemms)
    return np.asarray(ids[alike])


@rule(
    "pointwise-chains",
    "Point-wise kernels follow each other",
    experiments=("compile=default", "fused-optimizer"),
    remedy="torch.compile, fused=True optimizers",
    meaning="Each of them reads and writes whole tensors; fused, the values between stay in registers.",
    threshold="Runs of at least two consecutive element-wise or copy kernels of a step on a stream, "
    "launched by steps, with at least 5 % of the time of the steps' kernels.",
    advice="torch.compile, or a hand-written fused kernel (Triton, Liger); for optimizers fused=True.",
    bound="The time of each chain, with the reductions, norms and softmaxes of torch right before and "
    "behind it, except its longest kernel: one fused kernel reads and writes at least as much as that one. A "
    "chain and its neighbour count as one where only one or two matrix multiplies are between them and the "
    "kernels next to these have the same number of elements: in a gated layer a compiler joins them.",
    relies_on=("kernels", "kernels.order"),
)
def pointwise_chains(ctx: Context) -> Iterator[Hit]:
    """Consecutive point-wise kernels in stream order."""
    source = ctx.frame
    ids = ctx.step_gpu
    ids = source.by_track(ids)
    whole = ctx.total(ctx.step_kernels)
    if not len(ids) or not whole:
        return
    point = _of_categories(ctx, ids, POINTWISE)
    group = _chain_of(ctx, ids, point)
    member = group >= 0
    time = ctx.total(ids[member])
    if time / whole < CHAIN_SHARE:
        return
    chains = int(group.max()) + 1
    length = np.bincount(group[member])
    yield Hit(
        f"{chains} {'chain' if chains == 1 else 'chains'} of point-wise kernels "
        f"({chains / ctx.step_count:.0f} {ctx.rate}, the longest of "
        f"{length.max()}) take {percent_text(time / whole)} of the kernel time, "
        f"{time_text(ctx.per_step_ns(time))} {ctx.per}",
        {
            "chains": chains,
            "kernels": int(member.sum()),
            "total_ns": time,
            "share": time / whole,
            "share_of": "time of the kernels that steps launched"
            if ctx.denominator.several
            else "time of all kernels",
            "longest": int(length.max()),
        },
        slices=ctx.worst(ids[member]),
        extent=f"{percent_text(time / whole)} of the kernel time",
        gain=_gain_of_fusion(ctx, ids, point, member),
        fix=_fusion_advice(ctx),
    )


def _gain_of_fusion(ctx: Context, ids: Index, point: Mask, member: Mask) -> Gain:
    """What fusing the chains could save, each with the reductions at its ends and between it and the next.

    Args:
        ids: GPU slices by stream and start.
        point: which of them are point-wise kernels.
        member: which of them are in a chain of these alone.
    """
    group = _chain_of(ctx, ids, point | _of_categories(ctx, ids, REDUCTIONS, family="pytorch"))
    group = _past_products(ctx, ids, point, group)
    fused = np.isin(group, group[member])
    return ctx.gpu_gain(ids[fused], _all_but_longest(ctx.frame.durs(ids[fused]), group[fused]))


def _past_products(ctx: Context, ids: Index, point: Mask, group: Ints) -> Ints:
    """The chains of ``group``, where two that a compiler could make one have the same number.

    In ``silu(gate(x)) * up(x)``, the multiply of ``up`` is launched between ``silu`` and the product, but
    ``silu`` does not need its result. So compiled code runs that multiply first, and makes one kernel of the
    other two. The trace does not say which values a kernel reads, so a chain is joined with at most one
    other: in a network of equal layers each chain does wait for the multiply before it.

    Args:
        ids: GPU slices by stream and start, shape (n,).
        point: which of them are point-wise kernels.
        group: the chain of each, -1 for none.

    Returns:
        int64, shape (n,).
    """
    number = np.arange(int(group.max(initial=-1)) + 1)
    found, joined = group.copy(), set[int]()
    for left, right in _across_products(ctx, ids, point):
        those = {int(found[place]) for place in (left, right) if found[place] >= 0}
        if not those or those & joined:
            continue
        joined |= those
        number[max(those)] = found[left] = found[right] = min(those)
    return np.where(found >= 0, number[found], -1)


def _across_products(ctx: Context, ids: Index, point: Mask) -> Iterator[tuple[int, int]]:
    """Places in ``ids`` of two point-wise kernels of one size that have only matrix products between them."""
    product = _of_categories(ctx, ids, frozenset({"gemm"}))
    # cuBLAS fills a counter with zeros before a product whose parts several blocks compute.
    others = np.flatnonzero(~product & ~ctx.frame.is_kind(ids, "memset"))
    before, after = others[:-1], others[1:]
    counted = np.cumsum(product)
    products: Ints = counted[after] - counted[before]
    near = (products > 0) & (products <= PRODUCTS) & point[before] & point[after]
    before, after = before[near], after[near]
    size = _sizes(ctx, ids)
    alike = (size[before] == size[after]) & (size[before] >= 0)
    for values in (ctx.frame.track[ids], ctx.index.of_gpu[ids]):  # of one step on one stream
        alike &= values[before] == values[after]
    return zip(before[alike].tolist(), after[alike].tolist(), strict=True)


def _sizes(ctx: Context, ids: Index) -> Ints:
    """A number for each GPU slice: equal for kernels with as many elements; -1 where it is not known."""
    codes: dict[str, int] = {}
    code = np.full(len(ctx.frame.names), -1)
    for number in np.unique(ctx.frame.name[ids]):
        found = _PER_THREAD.match(ctx.frame.names[number])
        if found:
            code[number] = codes.setdefault(found.group(), len(codes))
    mine = code[ctx.frame.name[ids]]
    blocks = kernel_values(ctx.trace, "blocks", ids)
    known = ~np.isnan(blocks) & (mine >= 0)
    return np.where(known, np.nan_to_num(blocks).astype(np.int64) * len(codes) + mine, -1)


def _all_but_longest(durs: Ints, group: Ints) -> Floats:
    """1 for each kernel of a chain but its longest, for which it is 0; shape (kernels,)."""
    saved = np.ones(len(durs))
    order = np.lexsort((durs, group))
    last = np.append(group[order][1:] != group[order][:-1], True)
    saved[order[last]] = 0.0
    return saved


def _of_categories(ctx: Context, ids: Index, categories: frozenset[str], family: str = "") -> Mask:
    """Which GPU slices are kernels of these categories, and were not made by a compiler.

    Args:
        family: of this family alone; empty: of any.
    """
    wanted = [
        number
        for number, kernel in ctx.names.items()
        if kernel.category in categories
        and kernel.family not in ("inductor", "rocclr")
        and family in ("", kernel.family)
    ]
    return np.asarray(np.isin(ctx.frame.name[ids], wanted) & ctx.frame.is_kind(ids, "kernel"))


def _chain_of(ctx: Context, ids: Index, fits: Mask) -> Ints:
    """The chain of each GPU slice: consecutive kernels of a step on a stream.

    Args:
        ids: GPU slices by stream and start.
        fits: which of them a chain is made of.

    Returns:
        int64, shape (ids,): number of the chain from 0, -1 for a slice in none.
    """
    track = ctx.frame.track[ids]
    step = ctx.index.of_gpu[ids]
    joined = fits[1:] & fits[:-1] & (track[1:] == track[:-1]) & (step[1:] == step[:-1])
    member = np.append(joined, False) | np.append(False, joined)
    starts = member & ~np.append(False, joined)
    return np.where(member, np.cumsum(starts) - 1, -1).astype(np.int64)


def _fusion_advice(ctx: Context) -> str | None:
    """What to do in a program that is compiled already, or that is not PyTorch; None for the rule's."""
    if not ctx.program.torch:
        return "Fuse them by hand: one kernel that reads its inputs once and writes its result once."
    if ctx.program.compiled:
        return (
            "torch.compile made part of this program, and these kernels are outside of it: compile the code "
            "round them too (graph breaks, the optimizer), or fuse them by hand (Triton)."
        )
    return None


@rule(
    "inductor-fusion",
    "Kernels that the compiler fused",
    severity="info",
    meaning="torch.compile made these kernels; their names say which ops each replaces.",
    threshold="Any Inductor kernel.",
    advice="Compare with the eager recording: these ops' kernels should be gone, GEMMs unchanged.",
    relies_on=("kernels",),
)
def inductor_fusion(ctx: Context) -> Iterator[Hit]:
    """Inductor kernels with the ops in their names, as the rows of one finding."""
    found = [row for row in ctx.kernels if row.family == "inductor" and row.fused_ops]
    if not found:
        return
    time = sum(row.total_ns for row in found)
    first = found[0]
    share = sum(row.share for row in found)
    ids = ctx.frame.of("kernel")
    names = {row.name for row in found}
    most = f"{first.name} fuses {' + '.join(first.fused_ops)}"
    many = f"{len(found)} kernels; the one with most time, " if len(found) > 1 else ""
    yield Hit(
        f"{many}{most}: {percent_text(share)} of the kernel time",
        {
            "kernels": len(found),
            "calls": sum(row.calls for row in found),
            "total_ns": time,
            "share": share,
            "share_of": first.share_of,
        },
        slices=ctx.worst(ids[ctx.frame.named(ids, lambda name: name in names)], 2),
        names=[row.name for row in found],
        rows=[FindingRow(row.name, row.calls, row.total_ns, " + ".join(row.fused_ops)) for row in found],
    )
