"""MFU and HFU of a step: the part of what its GPUs could compute that a step needs, and that it computes.

MFU (model FLOPs utilization: Chowdhery et al. 2022, PaLM, arXiv 2204.02311, appendix B) = FLOPs that forward
and backward of the model need / (step time x peak of the GPUs). HFU (hardware FLOPs utilization: Korthikanti
et al. 2022, arXiv 2205.05198) has all FLOPs that ran, those of recomputed activations too.

FLOPs are those of matrix multiplies, convolutions and attention with recorded shapes (``matrix_work``), of
the judged steps; a program without a backward has those of its forward. Attention counts as if there were no
mask, as in both papers. With several dtypes the time at the peak is the sum of FLOPs / peak over the dtypes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.step_cost import Basis
from profrun.analysis.trace.columns import distinct, groups
from profrun.analysis.trace.data_quality import withheld
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.matrix_work import MatrixWork, matrix_work, unknown_like
from profrun.analysis.trace.peaks import Peaks
from profrun.analysis.trace.readings import MeanReading, sm_clock
from profrun.analysis.trace.roofline import device_peaks
from profrun.contract.denominator import RECORDING
from profrun.contract.units import percent_text

if TYPE_CHECKING:
    pass

LEAST_COVERED = 0.9
"""Part of the GPU time of matrix kernels whose FLOPs must be known; with less, no FLOPs are told at all."""
_MAYBE_MATRIX = MATRIX_CATEGORIES | {"triton", "unknown"}
"""Categories of kernels that are or may be matrix work, as far as their names tell."""


@dataclass(frozen=True)
class TypeWork:
    """FLOPs of one dtype, per step, of all ranks of the trace.

    Attributes:
        dtype: what was multiplied, as the table of peaks calls it (tf32 for fp32 inputs on tensor cores).
        flops: all that ran. model_flops: those that the model needs.
        peak_tflops: of all GPUs together, dense, by their datasheets; None where it is not known.
        peak_tflops_at_clock: the same at the clock that ran while the steps did.
    """

    dtype: str | None
    flops: float
    model_flops: float
    peak_tflops: float | None
    peak_tflops_at_clock: float | None


@dataclass(frozen=True)
class StepUse:
    """What a step computes of what its GPUs could; FLOPs are per step, of all ranks of the trace together.

    Attributes:
        flops: all matrix FLOPs that ran; None where too few are known (``missing``).
        model_flops: those that forward and backward need; None also where the trace cannot tell recomputed
            forwards from others.
        types: the same by dtype, most FLOPs first.
        step_ns, basis: the step time that shares are of, and which it is (``StepCost``).
        gpus: GPUs that worked in the steps; ranks: processes with steps.
        covered_ns, matrix_ns: GPU time of the kernels whose FLOPs are known, and of these and all others
            that may be matrix work; per step.
        unknown: ops that do matrix work and whose FLOPs are not known -> calls per step. Shares are lower
            bounds where there are any.
        mfu, hfu: shares of the datasheet's peak, the published definition; None where ``missing`` says so.
        mfu_at_clock, hfu_at_clock: shares of the peak at the clock that ran; None without samples.
        clock_mhz, clock_readings: mean clock while the steps ran, of all GPUs, and how many readings that is.
        missing: why there is no share; empty where there is one.
    """

    flops: float | None
    model_flops: float | None
    types: tuple[TypeWork, ...]
    step_ns: float
    basis: Basis
    gpus: int
    ranks: int
    covered_ns: float
    matrix_ns: float
    unknown: Mapping[str, float]
    mfu: float | None = None
    hfu: float | None = None
    mfu_at_clock: float | None = None
    hfu_at_clock: float | None = None
    clock_mhz: float | None = None
    clock_readings: int = 0
    missing: str = ""


def step_use(ctx: Context, peaks: Mapping[str, float] | None = None) -> StepUse | None:
    """MFU and HFU of a step; None for a recording without steps or without matrix ops.

    Args:
        ctx: of the trace.
        peaks: overrides (``peaks.peaks_for``). Without a GPU they are the rates of one rank.
    """
    if ctx.denominator == RECORDING or ctx.trace.meta.get("replayed"):
        return None
    work = matrix_work(ctx.trace)
    mine = np.isin(work.slices, ctx.judged.of_host(ctx.frame, work.slices))
    if not mine.any() or "ops.self_device_ns" in withheld(ctx.quality):
        return None
    seen = _kernels(ctx, work, mine)
    scale = len(ctx.judged.spans) / ctx.judged.count
    devices = distinct(ctx.frame.device_of(ctx.step_gpu))
    clocks = {device: _clock(ctx, device) for device in devices}
    rates = device_peaks(ctx.frame, peaks)
    used = {device: rates.get(device) for device in devices}
    found = StepUse(
        flops=None,
        model_flops=None,
        types=_types(ctx, work, seen, scale, used, clocks, peaks or {}),
        step_ns=ctx.cost.step_ns,
        basis=ctx.cost.basis,
        gpus=len(devices),
        ranks=len(ctx.judged.spans),
        covered_ns=seen.covered_ns * scale,
        matrix_ns=seen.matrix_ns * scale,
        unknown=_unknown(ctx, work, mine, scale),
    )
    read = [one for one in clocks.values() if one is not None]
    return _with_shares(found, work.told, read if len(read) == len(devices) else [])


class _Seen(NamedTuple):
    """What ran of the matrix ops of the steps.

    Attributes:
        ran: which ops count, shape (ops,). kernel: name id of the longest kernel of each op, -1 for none.
        covered_ns, matrix_ns: as in ``StepUse``, over all steps.
    """

    ran: Mask
    kernel: Index
    covered_ns: int
    matrix_ns: int


def _kernels(ctx: Context, work: MatrixWork, mine: Mask) -> _Seen:
    """The kernels of matrix ops; without a GPU every op of the steps counts."""
    source = ctx.frame
    known = mine & ~np.isnan(work.flops)
    kernel = np.full(len(work.slices), -1, dtype=np.int64)
    if not len(source.gpu):
        return _Seen(known, kernel, 0, 0)
    ids = ctx.step_kernels
    counted = np.zeros(len(source) + 1, dtype=bool)
    counted[work.slices] = True
    owner = source.launching_op(ids)
    op = np.where(counted[owner], owner, np.where(owner >= 0, source.chase(counted[:-1])[owner], -1))
    place = np.where(op >= 0, np.searchsorted(work.slices, op), -1)
    durs = source.durs(ids)
    good = (place >= 0) & known[place]
    order = np.lexsort((durs[good], place[good]))
    kernel[place[good][order]] = source.name[ids[good][order]]  # the last write stays: the longest
    names = {n for n, one in ctx.names.items() if one.category in _MAYBE_MATRIX}
    other = ~good & source.has_name(ids, sorted(names))
    covered = int(durs[good].sum())
    return _Seen(known & (kernel >= 0), kernel, covered, covered + int(durs[other].sum()))


def _clock(ctx: Context, device: int) -> MeanReading | None:
    spans = ctx.judged.spans.get(int(ctx.frame.devices[device]["process"]))
    return None if spans is None else sm_clock(ctx.trace, device, *spans)


def _types(
    ctx: Context,
    work: MatrixWork,
    seen: _Seen,
    scale: float,
    used: Mapping[int, Peaks | None],
    clocks: Mapping[int, MeanReading | None],
    given: Mapping[str, float],
) -> tuple[TypeWork, ...]:
    """FLOPs by dtype, with the peaks of all GPUs; ``given``: rates of one rank, for ranks without a GPU."""
    sums: dict[tuple[str | None, bool], list[float]] = {}
    ran = np.flatnonzero(seen.ran)
    first, group = groups(seen.kernel[ran], work.kind[ran])
    every = np.bincount(group, weights=work.flops[ran], minlength=len(first)) * scale
    model = np.bincount(group, weights=(work.flops * work.needed)[ran], minlength=len(first)) * scale
    for number, place in enumerate(ran[first]):
        reading = ctx.names.get(int(seen.kernel[place]))
        dtype = reading.dtype if reading is not None and reading.dtype else work.dtypes[work.kind[place]]
        both = sums.setdefault((dtype, reading is None or reading.matrix_core is not False), [0.0, 0.0])
        both[0] += float(every[number])
        both[1] += float(model[number])
    ranks = len(ctx.judged.spans)
    found = []
    for (dtype, matrix), (flops, needed) in sums.items():
        rates: list[float | None] = [given.get(dtype or "")] * ranks
        at_clock: list[float | None] = []
        if used:
            rates = [one.for_dtype(dtype, matrix=matrix) if one else None for one in used.values()]
            at_clock = [
                one.at_clock(dtype, _mhz(clocks[device]), matrix=matrix) if one else None
                for device, one in used.items()
            ]
        found.append(TypeWork(dtype, flops, needed, _sum(rates), _sum(at_clock)))
    return tuple(sorted(found, key=lambda one: (-one.flops, one.dtype or "")))


def _mhz(clock: MeanReading | None) -> float | None:
    return None if clock is None else clock.value


def _sum(values: list[float | None]) -> float | None:
    """The sum; None where a part is not known, or there is none."""
    known = [value for value in values if value]
    return sum(known) if known and len(known) == len(values) else None


def _unknown(ctx: Context, work: MatrixWork, mine: Mask, scale: float) -> dict[str, float]:
    source = ctx.frame
    more = unknown_like(ctx.trace)
    more = more[np.isin(more, ctx.judged.of_host(source, more))]
    ids = np.concatenate((work.slices[mine & np.isnan(work.flops)], more))
    calls = Counter(source.name[ids].tolist())
    return {source.names[name]: count * scale for name, count in calls.most_common()}


def _with_shares(found: StepUse, told: bool, read: list[MeanReading]) -> StepUse:
    """With its FLOPs and the shares of the peaks, or with what is missing."""
    covered = found.covered_ns / found.matrix_ns if found.matrix_ns else None
    if not found.types or (covered is not None and covered < LEAST_COVERED):
        known = f"of {percent_text(covered)} of the GPU time of matrix kernels" if covered else "of no kernel"
        needed = percent_text(LEAST_COVERED)
        return replace(found, types=(), missing=f"FLOPs are known {known}; {needed} are needed")
    flops = sum(one.flops for one in found.types)
    model = sum(one.model_flops for one in found.types) if told else None
    found = replace(found, flops=flops, model_flops=model)
    if read:
        mhz = sum(one.value for one in read) / len(read)
        found = replace(found, clock_mhz=mhz, clock_readings=sum(one.readings for one in read))
    lacking = sorted({one.dtype or "its dtype" for one in found.types if one.peak_tflops is None})
    if lacking:
        return replace(found, missing=f"the peak for {', '.join(lacking)} is not known (--peak gives it)")
    hfu, hfu_at_clock = _at_peaks(found, [one.flops for one in found.types])
    mfu, mfu_at_clock = _at_peaks(found, [one.model_flops for one in found.types])
    if hfu_at_clock is not None and hfu_at_clock > 1:
        hfu_at_clock = mfu_at_clock = None  # the clock that was read is not the one that ran
    found = replace(found, hfu=hfu, hfu_at_clock=hfu_at_clock)
    if not told:
        return replace(
            found, missing="the trace does not tell recomputed forwards from others, so there is no MFU"
        )
    return replace(found, mfu=mfu, mfu_at_clock=mfu_at_clock)


def _at_peaks(found: StepUse, flops: Sequence[float]) -> tuple[float | None, float | None]:
    """The time that FLOPs take as a share of the step: at the datasheet's peaks, at those of the clock.

    Args:
        flops: of each of ``found.types``.
    """
    return (
        _at(found.step_ns, flops, [one.peak_tflops for one in found.types]),
        _at(found.step_ns, flops, [one.peak_tflops_at_clock for one in found.types]),
    )


def _at(step_ns: float, flops: Sequence[float], peaks: Sequence[float | None]) -> float | None:
    known = [peak for peak in peaks if peak]
    if len(known) < len(peaks) or not step_ns:
        return None
    time_ns = sum(one / peak for one, peak in zip(flops, known, strict=True)) / 1e3
    return time_ns / step_ns
