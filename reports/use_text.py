"""FLOPs, MFU and HFU of a step as sentences: ``use_lines``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import amount_text, counted, percent_text, rate_text, time_text

if TYPE_CHECKING:
    from profrun.analysis.rules.step_cost import StepCost
    from profrun.analysis.rules.step_use import StepUse

NAMED = 3
"""Ops of unknown work that are named."""
ALONE = 0.995
"""Part of the FLOPs from which one dtype is named as if it were the only one; the shares count them all."""


def use_lines(use: StepUse, cost: StepCost) -> list[str]:
    """What a step computes, and which part of the peak that is.

    Args:
        use: as ``step_use`` gives it.
        cost: of the same step.
    """
    lines = []
    if use.flops is not None:
        lines.append(f"matrix work {cost.denominator.per} {_work(use)}{_unknown(use)}")
    if use.mfu is not None or use.hfu is not None:
        lines.append(_shares(use, cost))
    if use.mfu_at_clock is not None and use.hfu_at_clock is not None:
        lines.append(
            f"  at the clock that ran ({use.clock_mhz:.0f} MHz, {counted(use.clock_readings, 'reading')},"
            f" up to 200 ms late): MFU {percent_text(use.mfu_at_clock)}, HFU {percent_text(use.hfu_at_clock)}"
        )
    if use.missing:
        lines.append(f"{'no MFU' if use.hfu is None else 'HFU only'}: {use.missing}")
    return lines


def _work(use: StepUse) -> str:
    """'12.3 TFLOP, and 4.1 TFLOP that are computed again'."""
    if use.model_flops is None or use.flops is None:
        return f"{amount_text(use.flops)}FLOP"
    again = use.flops - use.model_flops
    more = f", and {amount_text(again)}FLOP that are computed again" if again >= 0.0005 * use.flops else ""
    return f"{amount_text(use.model_flops)}FLOP{more}"


def _unknown(use: StepUse) -> str:
    if not use.unknown:
        return ""
    calls = sum(use.unknown.values())
    names = ", ".join(list(use.unknown)[:NAMED])
    return f"; this is a lower bound: the work of {rate_text(calls)} ops is not known ({names})"


def _shares(use: StepUse, cost: StepCost) -> str:
    """'MFU 41.2 %, HFU 51.0 % of the dense bf16 peak (989 TFLOP/s) in 30 ms without a profiler'."""
    shares = f"MFU {percent_text(use.mfu)}, " if use.mfu is not None else ""
    most = use.types[0]
    whole = f"{most.dtype} peak ({rate_text(most.peak_tflops, 'TFLOP/s')}"
    part = most.flops / use.flops if use.flops else 1.0
    if part < ALONE:
        whole = f"peaks of each dtype ({most.dtype}: {percent_text(part)} of the FLOPs, "
        whole += rate_text(most.peak_tflops, "TFLOP/s")
    of = f", {use.gpus} GPUs" if use.gpus > 1 else ""
    where = "without a profiler" if use.basis == "unprofiled" else "as recorded, under the profiler"
    at_least = "at least " if use.unknown else ""
    return (
        f"{at_least}{shares}HFU {percent_text(use.hfu)} of the dense {whole}{of}) "
        f"in {time_text(use.step_ns)}, {where}"
    )
