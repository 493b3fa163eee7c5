"""What a comparison of two kinds of GPU needs: ``vendor_view`` is given both sides and the rows by kernel.

It returns rates against each GPU's own peak, fusion, the time of launches, and memory work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profrun.analysis.compare.compared_trial import ComparedTrial, Rate
from profrun.analysis.compare.model import RatePair, Row, VendorView
from profrun.analysis.compare.sides import Side, Sides

MOST_RATES = 30


def vendor_view(sides: Sides, rows: Sequence[Row]) -> VendorView:
    """What a comparison across vendors or GPU models adds.

    ``copies_ns`` counts copies and fills by role: the runtime of AMD copies with kernels, that of NVIDIA with
    copy engines, and both count as memory work.
    """
    a, b = sides
    return VendorView(
        launch_us=(_launch(a.trials), _launch(b.trials)),
        latency_us=(_latency(a.trials), _latency(b.trials)),
        copies_ns=(_copies(a), _copies(b)),
        rates=_rates(sides),
        fusions=tuple(text for row in rows if (text := _fusion(row, a.denominator.rate))),
    )


def _copies(side: Side) -> float:
    time = sum(group.ns for group in side.kernel_groups if group.role in ("memcpy", "memset"))
    return time / side.samples / side.per


def _launch(trials: Sequence[ComparedTrial]) -> float | None:
    calls = sum(trial.launch_calls for trial in trials)
    return sum(trial.launch_ns for trial in trials) / calls / 1e3 if calls else None


def _latency(trials: Sequence[ComparedTrial]) -> float | None:
    values = [trial.latency_ns for trial in trials if trial.latency_ns is not None]
    return sum(values) / len(values) / 1e3 if values else None


def _rates(sides: Sides) -> tuple[RatePair, ...]:
    tables = [_table(side.trials) for side in sides]
    keys = sorted({*tables[0], *tables[1]}, key=lambda key: -sum(t[key].gpu_ns for t in tables if key in t))
    return tuple(
        RatePair(key[0], key[1], tables[0].get(key), tables[1].get(key)) for key in keys[:MOST_RATES]
    )


def _table(trials: Sequence[ComparedTrial]) -> dict[tuple[str, str], Rate]:
    """Rates by op and shapes; trials of a side, and dtypes of one shape, are added up."""
    found: dict[tuple[str, str], Rate] = {}
    for trial in trials:
        for rate in trial.rates:
            old = found.get((rate.op, rate.shapes))
            found[(rate.op, rate.shapes)] = _added(old, rate) if old else rate
    return found


def _added(one: Rate, two: Rate) -> Rate:
    time, calls = one.gpu_ns + two.gpu_ns, one.calls + two.calls
    flops = None
    if one.flops is not None and two.flops is not None and time:
        flops = (one.flops * one.calls + two.flops * two.calls) / time / 1e3
    peak = one.peak_tflops if one.peak_tflops == two.peak_tflops else None
    share = flops / peak if flops is not None and peak else None
    return replace(one, calls=calls, gpu_ns=time, tflops=flops, peak_tflops=peak, share=share)


def _fusion(row: Row, rate: str) -> str | None:
    """In words, which side needs fewer kernels than the other; None where both need about as many."""
    if row.status != "replaced" or not row.a_calls or not row.b_calls:
        return None
    ratio = row.a_calls / row.b_calls
    if 0.7 < ratio < 1.4:
        return None
    fewer = "b" if ratio > 1 else "a"
    return f"side {fewer} fuses: {row.label} ({row.a_calls:.3g} kernels {rate} against {row.b_calls:.3g})"
