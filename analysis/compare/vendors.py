"""Two kinds of GPU beside each other: rates against each one's own peak, fusion, launch overhead, copies."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.analysis.compare.breakdown import Sides
from profrun.analysis.compare.model import RatePair, Row, VendorView
from profrun.analysis.compare.trial import Atom, Rate, Trial

MOST_RATES = 30


def vendor_view(
    sides: Sides,
    atoms: tuple[Sequence[Atom], Sequence[Atom]],
    rows: Sequence[Row],
    units: tuple[int, int],
    per: tuple[float, float],
) -> VendorView:
    """What a comparison across vendors or GPU models adds.

    ``copies_ns`` counts copies and fills by role: AMD's runtime copies with kernels, NVIDIA's with copy
    engines, and both count as memory work.
    """
    copies = [
        sum(atom.ns for atom in side if atom.role in ("memcpy", "memset")) / count / divisor
        for side, count, divisor in zip(atoms, units, per, strict=True)
    ]
    return VendorView(
        launch_us=(_launch(sides[0]), _launch(sides[1])),
        latency_us=(_latency(sides[0]), _latency(sides[1])),
        copies_ns=(copies[0], copies[1]),
        rates=_rates(sides),
        fusions=tuple(text for row in rows if (text := _fusion(row))),
    )


def _launch(trials: Sequence[Trial]) -> float | None:
    calls = sum(trial.launch_calls for trial in trials)
    return sum(trial.launch_ns for trial in trials) / calls / 1e3 if calls else None


def _latency(trials: Sequence[Trial]) -> float | None:
    values = [trial.latency_ns for trial in trials if trial.latency_ns is not None]
    return sum(values) / len(values) / 1e3 if values else None


def _rates(sides: Sides) -> tuple[RatePair, ...]:
    tables = [_table(trials) for trials in sides]
    keys = sorted({*tables[0], *tables[1]}, key=lambda key: -sum(t[key].gpu_ns for t in tables if key in t))
    return tuple(
        RatePair(key[0], key[1], tables[0].get(key), tables[1].get(key)) for key in keys[:MOST_RATES]
    )


def _table(trials: Sequence[Trial]) -> dict[tuple[str, str], Rate]:
    """Rates by op and shapes, trials of a side (and dtypes of one shape) added up."""
    found: dict[tuple[str, str], Rate] = {}
    for trial in trials:
        for rate in trial.rates:
            old = found.get((rate.op, rate.shapes))
            found[(rate.op, rate.shapes)] = _added(old, rate) if old else rate
    return found


def _added(one: Rate, two: Rate) -> Rate:
    from dataclasses import replace

    time, calls = one.gpu_ns + two.gpu_ns, one.calls + two.calls
    flops = None
    if one.flops is not None and two.flops is not None and time:
        flops = (one.flops * one.calls + two.flops * two.calls) / time / 1e3
    peak = one.peak_tflops if one.peak_tflops == two.peak_tflops else None
    share = flops / peak if flops is not None and peak else None
    return replace(one, calls=calls, gpu_ns=time, tflops=flops, peak_tflops=peak, share=share)


def _fusion(row: Row) -> str | None:
    """Which side does with fewer kernels what the other does with more."""
    if row.status != "replaced" or not row.a_calls or not row.b_calls:
        return None
    ratio = row.a_calls / row.b_calls
    if 0.7 < ratio < 1.4:
        return None
    fewer = "b" if ratio > 1 else "a"
    return f"side {fewer} fuses: {row.label} ({row.a_calls:.3g} kernels a step against {row.b_calls:.3g})"
