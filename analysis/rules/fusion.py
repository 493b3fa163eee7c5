"""Precision and fusion: fp32 and TF32 matrix work, attention in pieces, chains of point-wise kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.contract.units import percent_text, time_text

FP32_SHARE = 0.05
TF32_SHARE = 0.05
CHAIN_SHARE = 0.05
POINTWISE = frozenset({"elementwise", "copy", "fill"})
SOFTMAX_SHARE = 0.005


def _matrix_time(ctx: Context, dtype: str) -> tuple[int, list[str]]:
    rows = [row for row in ctx.kernels if row.category in MATRIX_CATEGORIES and row.dtype == dtype]
    return sum(row.total_ns for row in rows), [row.name for row in rows]


def _fp32_inputs(ctx: Context) -> frozenset[str]:
    """Kernels of GEMM ops whose recorded inputs are fp32 and whose name does not tell the type."""
    return frozenset(row.kernel for row in ctx.roofline.rows if row.flops is not None and row.dtype == "fp32")


@rule(
    "fp32-gemm",
    "Matrix work in full fp32",
    meaning="GEMMs, convolutions or attention are computed in fp32, on the ordinary units or AMD's fp32 "
    "matrix instructions, not in TF32: several times slower than half precision on tensor or matrix cores.",
    threshold="At least 5 % of the kernel time in such kernels (by name, or by the op's fp32 inputs where "
    "the name does not tell), on a GPU that has matrix cores.",
    advice="bf16 autocast; or torch.set_float32_matmul_precision('high') where TF32 is accurate enough "
    "(NVIDIA).",
    relies_on=("kernels",),
)
def fp32_gemm(ctx: Context) -> Iterator[Hit]:
    """Time of fp32 matrix kernels."""
    time, names = _matrix_time(ctx, "fp32")
    more = _fp32_inputs(ctx)
    for row in ctx.kernels:
        if (
            row.name in more
            and row.name not in names
            and row.matrix_core is not True
            and (row.category in MATRIX_CATEGORIES and row.dtype is None)
        ):
            time += row.total_ns
            names.append(row.name)
    if ctx.kernel_ns and time / ctx.kernel_ns >= FP32_SHARE:
        ids = ctx.kernel_slices(lambda kernel: kernel.name in names)
        yield Hit(
            f"{percent_text(time / ctx.kernel_ns)} of the kernel time ({time_text(time)}) is fp32 matrix "
            "work without TF32",
            {"total_ns": time, "share": time / ctx.kernel_ns, "share_of": "time of all kernels"},
            slices=ctx.worst(ids),
            names=names,
        )


@rule(
    "tf32-gemm",
    "Matrix work in TF32",
    meaning="fp32 inputs are multiplied as TF32: on tensor cores, but at half the rate of bf16 and fp16 and "
    "with twice the memory traffic.",
    threshold="At least 5 % of the kernel time in TF32 GEMMs, convolutions or attention.",
    advice="torch.autocast with bfloat16 (or float16 with a gradient scaler) where the model's accuracy "
    "allows it.",
    relies_on=("kernels",),
)
def tf32_gemm(ctx: Context) -> Iterator[Hit]:
    """Time of TF32 matrix kernels."""
    time, names = _matrix_time(ctx, "tf32")
    if ctx.kernel_ns and time / ctx.kernel_ns >= TF32_SHARE:
        ids = ctx.kernel_slices(lambda kernel: kernel.name in names)
        yield Hit(
            f"{percent_text(time / ctx.kernel_ns)} of the kernel time ({time_text(time)}) is TF32 matrix "
            "work",
            {"total_ns": time, "share": time / ctx.kernel_ns, "share_of": "time of all kernels"},
            slices=ctx.worst(ids),
            names=names,
        )


@rule(
    "unfused-attention",
    "Attention runs as separate kernels",
    meaning="Scores, softmax and the product with the values are kernels of their own: the score matrix "
    "(sequence x sequence) is written to memory and read again, twice.",
    threshold="Batched matrix multiplies (bmm, baddbmm) and a softmax under the same parent op or in the "
    "same step, no fused attention kernel, and softmax at least 0.5 % of the kernel time. Without op "
    "records: softmax and GEMM kernels but no attention kernel, softmax at least 2 %.",
    advice="scaled_dot_product_attention, need_weights=False for nn.MultiheadAttention, or FlashAttention.",
    relies_on=("kernels",),
)
def unfused_attention(ctx: Context) -> Iterator[Hit]:
    """Softmax beside batched GEMMs without an attention kernel."""
    softmax = sum(row.total_ns for row in ctx.kernels if row.category == "softmax")
    fused = [row for row in ctx.kernels if row.category == "attention"]
    if not softmax or fused or not ctx.kernel_ns:
        return
    share = softmax / ctx.kernel_ns
    products = ctx.named("op", lambda name: name in ("aten::bmm", "aten::baddbmm"))
    norms = ctx.named("op", lambda name: name in ("aten::_softmax", "aten::_safe_softmax"))
    recorded = len(ctx.frame.of("op")) > 0
    if recorded and (not len(products) or not len(norms) or share < SOFTMAX_SHARE):
        return
    if not recorded and (share < 0.02 or not any(row.category == "gemm" for row in ctx.kernels)):
        return
    scores = ctx.kernel_slices(lambda kernel: kernel.category == "softmax")
    beside = f"{len(products)} batched matrix multiplies" if recorded else "GEMMs (no ops are recorded)"
    yield Hit(
        f"softmax takes {percent_text(share)} of the kernel time beside {beside}, and no fused attention "
        "kernel runs",
        {
            "softmax_ns": softmax,
            "softmax_share": share,
            "share_of": "time of all kernels",
            "bmm_calls": len(products) if recorded else None,
        },
        slices=ctx.worst(scores),
        names=sorted({ctx.frame.text(int(one)) for one in products}),
    )


@rule(
    "pointwise-chains",
    "Point-wise kernels follow each other",
    meaning="Each of them reads and writes whole tensors; fused, the values between stay in registers.",
    threshold="Runs of at least two consecutive element-wise or copy kernels on a stream, launched by steps, "
    "with at least 5 % of the time of the steps' kernels. For information when they take under 5 % of "
    "the steps.",
    advice="torch.compile, or a hand-written fused kernel (Triton, Liger); for optimizers fused=True.",
    relies_on=("kernels", "kernels.order"),
)
def pointwise_chains(ctx: Context) -> Iterator[Hit]:
    """Consecutive point-wise kernels in stream order."""
    source = ctx.frame
    ids = ctx.step_gpu
    ids = ids[np.lexsort((ids, source.ts[ids], source.track[ids]))]
    if not len(ids):
        return
    wanted = [
        number
        for number, kernel in ctx.names.items()
        if kernel.category in POINTWISE and kernel.family not in ("inductor", "rocclr")
    ]
    point = np.isin(source.name[ids], wanted) & source.is_kind(ids, "kernel")
    track = source.track[ids]
    joined = point[1:] & point[:-1] & (track[1:] == track[:-1])
    member = np.append(joined, False) | np.append(False, joined)
    time = ctx.total(ids[member])
    whole = ctx.total(ctx.step_kernels)
    if not whole or time / whole < CHAIN_SHARE:
        return
    starts = member & ~np.append(False, joined)
    chains = int(starts.sum())
    longest = Counter(np.cumsum(starts)[member].tolist()).most_common(1)[0]
    yield Hit(
        f"{chains} {'chain' if chains == 1 else 'chains'} of point-wise kernels "
        f"({chains / ctx.step_count:.0f} {ctx.per_step}, the longest of "
        f"{longest[1]}) take {percent_text(time / whole)} of the kernel time",
        {
            "chains": chains,
            "kernels": int(member.sum()),
            "total_ns": time,
            "share": time / whole,
            "share_of": "time of the kernels that steps launched" if ctx.steps else "time of all kernels",
            "longest": longest[1],
        },
        slices=ctx.worst(ids[member]),
        severity=ctx.weight(time),
    )


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
    """Inductor kernels with the ops in their names."""
    for row in ctx.kernels:
        if row.family == "inductor" and row.fused_ops:
            ids = ctx.kernel_slices(lambda kernel, name=row.name: kernel.name == name)  # type: ignore[misc]
            yield Hit(
                f"{row.name} fuses {' + '.join(row.fused_ops)}: {row.calls} calls, {percent_text(row.share)} "
                "of the kernel time",
                {
                    "fused_ops": list(row.fused_ops),
                    "calls": row.calls,
                    "total_ns": row.total_ns,
                    "share": row.share,
                    "share_of": row.share_of,
                },
                slices=ctx.worst(ids, 2),
                names=[row.name],
            )
