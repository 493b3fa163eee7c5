"""Precision of matrix work: kernels in fp32 and in TF32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.frame import Index
from profrun.contract.units import percent_text, time_text

LEAST_SHARE = 0.05
"""Part of the kernel time from which matrix work of one type is a finding."""
ROWS = 8


def _matrix_kernels(ctx: Context, dtype: str) -> list[str]:
    """Names of matrix kernels of one type inside the steps."""
    return [
        row.name
        for row in ctx.kernels
        if row.category in MATRIX_CATEGORIES and row.dtype == dtype and row.name in ctx.kernel_time
    ]


def _fp32_inputs(ctx: Context) -> frozenset[str]:
    """Kernels of GEMM ops whose recorded inputs are fp32 and whose name does not tell the type."""
    return frozenset(row.kernel for row in ctx.roofline.rows if row.flops is not None and row.dtype == "fp32")


def _fp32_kernels(ctx: Context) -> list[str]:
    """Names of matrix kernels in full fp32."""
    more = _fp32_inputs(ctx)
    untold = [
        row.name
        for row in ctx.kernels
        if row.name in more
        and row.name in ctx.kernel_time
        and row.matrix_core is not True
        and (row.category in MATRIX_CATEGORIES and row.dtype is None)
    ]
    return [*_matrix_kernels(ctx, "fp32"), *untold]


def _kept_share(ctx: Context, dtype: str) -> tuple[float, str] | None:
    """Part of a kernel's time that it keeps in the fastest type of 16 or more bits, and that type's name.

    By the peaks of the GPU; None for a GPU that is not in the table.
    """
    for peaks in ctx.roofline.peaks.values():
        if peaks is None:
            continue
        rates = {name: rate for name in ("bf16", "fp16", "tf32") if (rate := peaks.for_dtype(name))}
        own = peaks.for_dtype(dtype, matrix=dtype != "fp32")
        if own and rates:
            best = max(rates, key=lambda name: rates[name])  # the first of equal ones: bf16
            return min(1.0, own / rates[best]), best
    return None


@rule(
    "fp32-gemm",
    "Matrix work in full fp32",
    experiments=("autocast=bfloat16", "tf32"),
    remedy="bf16 autocast, or TF32",
    meaning="GEMMs, convolutions or attention are computed in fp32, on the ordinary units or AMD's fp32 "
    "matrix instructions, not in TF32: several times slower than half precision on tensor or matrix cores.",
    threshold="At least 5 % of the kernel time in such kernels (by name, or by the op's fp32 inputs where "
    "the name does not tell), on a GPU that has matrix cores; for information where the GPU is not known.",
    advice="bf16 autocast; or torch.set_float32_matmul_precision('high') where TF32 is accurate enough "
    "(NVIDIA).",
    bound="The time of these kernels x (1 - peak rate of fp32 / peak rate of the fastest 16-bit type); all "
    "of their time for a GPU whose peaks are not known.",
    relies_on=("kernels",),
)
def fp32_gemm(ctx: Context) -> Iterator[Hit]:
    """Time of fp32 matrix kernels."""
    faster = _kept_share(ctx, "fp32")
    kept = faster or (0.0, "any type")
    for hit in _slower_type(ctx, "fp32", _fp32_kernels(ctx), "fp32 matrix work without TF32", kept):
        yield replace(hit, fix=_fp32_advice(ctx, faster), at_most=None if faster else "info")


def _slower_type(
    ctx: Context, dtype: str, names: list[str], told: str, kept: tuple[float, str]
) -> Iterator[Hit]:
    """Matrix work in a type that is slower than another one of this GPU.

    Args:
        dtype: the type.
        names: the kernels.
        told: the work in words.
        kept: part of the time that the faster type keeps, and that type's name.
    """
    total = sum(ctx.kernel_time[name] for name in names)
    if not ctx.kernel_ns or total / ctx.kernel_ns < LEAST_SHARE:
        return
    share, ids = total / ctx.kernel_ns, _slices(ctx, names)
    yield Hit(
        f"{percent_text(share)} of the kernel time ({time_text(ctx.per_step_ns(total))} {ctx.per}) is {told}",
        {
            "total_ns": total,
            "share": share,
            "share_of": "time of all kernels",
            "kept_share": kept[0],
            "kept_of": f"time, by the peaks of {dtype} and {kept[1]}",
        },
        slices=ctx.worst(ids),
        names=names,
        gain=ctx.gpu_gain(ids, np.full(len(ids), 1 - kept[0])),
        rows=_rows(ctx, names),
        extent=f"{percent_text(share)} of the kernel time",
    )


def _rows(ctx: Context, names: list[str]) -> list[FindingRow]:
    """Each kernel, most time first."""
    known = {row.name: row for row in ctx.kernels}
    ranked = sorted(names, key=lambda name: (-ctx.kernel_time[name], name))[:ROWS]
    return [
        FindingRow(known[name].short, None, ctx.kernel_time[name], known[name].category) for name in ranked
    ]


def _slices(ctx: Context, names: list[str]) -> Index:
    """The steps' kernels of these names."""
    wanted = set(names)
    return np.asarray(ctx.step_kernels[ctx.frame.named(ctx.step_kernels, lambda name: name in wanted)])


def _fp32_advice(ctx: Context, faster: tuple[float, str] | None) -> str | None:
    """What to do in a program that uses faster types already, or that is not PyTorch; None for the rule's."""
    if not ctx.program.torch:
        return (
            "Call the library with a faster type: TF32 or bf16 on tensor cores, fp16 or bf16 on matrix cores."
        )
    if ctx.program.half:
        return (
            "Most matrix work is in a 16-bit type already: see which ops run outside of autocast, or with "
            "fp32 inputs."
        )
    if faster is not None and faster[1] == "fp16":
        return "torch.autocast with float16 and a gradient scaler: this GPU has neither TF32 nor bf16."
    if ctx.program.tf32:
        return (
            "bf16 autocast; or torch.set_float32_matmul_precision('high'): TF32 is on for a part of the "
            "matrix work only (convolutions use it unless told otherwise, matrix multiplies do not)."
        )
    return None


@rule(
    "tf32-gemm",
    "Matrix work in TF32",
    experiments=("autocast=bfloat16",),
    remedy="bf16 autocast",
    meaning="fp32 inputs are multiplied as TF32: on tensor cores, but at half the rate of bf16 and fp16 and "
    "with twice the memory traffic.",
    threshold="At least 5 % of the kernel time in TF32 GEMMs, convolutions or attention.",
    advice="torch.autocast with bfloat16 (or float16 with a gradient scaler) where the model's accuracy "
    "allows it.",
    bound="The time of these kernels x (1 - peak rate of TF32 / peak rate of bf16).",
    relies_on=("kernels",),
)
def tf32_gemm(ctx: Context) -> Iterator[Hit]:
    """Time of TF32 matrix kernels."""
    half = "Most matrix work is in a 16-bit type already: see which ops run outside of autocast."
    kept = _kept_share(ctx, "tf32") or (0.5, "bf16")
    for hit in _slower_type(ctx, "tf32", _matrix_kernels(ctx, "tf32"), "TF32 matrix work", kept):
        yield replace(hit, fix=half if ctx.program.half else None)
