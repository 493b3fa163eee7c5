"""The docs page of the peaks, made from their table: ``python -m profrun.analysis.trace.peak_page docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from profrun.analysis.trace.peaks import DTYPES, Peaks, table

_MADE = "made by `python -m profrun.analysis.trace.peak_page docs`"
_HEAD = f"<!-- {_MADE}; edit analysis/trace/peaks.csv, not this page -->\n"
_TEXT = """# Peak rates of GPUs

The roofline and each share of a peak rest on this table. TFLOP/s (int8: TOP/s), dense, that is without
structured sparsity; GB/s of device memory, 1e9 bytes per second. fp16, bf16, tf32, fp8, fp4 and int8 are
rates of tensor or matrix cores, fp64 and fp32 those of the vector units. A dash: no such rate. Python:
`summarize(trace, peaks={"bf16": 800, "memory_gb_s": 4000})` puts other numbers in their place.

*Source* is the vendor's document that the numbers are of. The documents themselves were not at hand:
*confirmed* says which published text that quotes them agrees, and with what.

"""
_CLOCKS = """
## The clock of a peak

A peak holds at one clock: units x dense FLOPs of a unit per clock x clock. Units are SMs (NVIDIA) or compute
units (AMD). *matrix*: fp16 on tensor or matrix cores, and the clock of all rates of these; *vector*: fp32 on
vector units, and the clock of all rates of fp32 and fp64. Where a trace has samples of the clock, the peak
at the clock that ran is peak x mean clock / this clock ([numbers.md](numbers.md#roofline)). It can be higher
than the datasheet's: an H200 may run matrix work at 1980 MHz, and its 989.4 TFLOP/s are those at 1830 MHz.
The bandwidth of the memory does not follow this clock. A GPU that is not in this list has no peak at the
clock that ran.

| GPU | units | matrix | vector | confirmed |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page, Markdown."""
    text = f"{_HEAD}{_TEXT}| GPU | GB/s | {' | '.join(DTYPES)} | source | confirmed |\n"
    text += "|---" * (len(DTYPES) + 4) + "|\n"
    text += "".join(_line(peaks) for peaks in table().values())
    return text + _CLOCKS + "".join(_clock_line(peaks) for peaks in table().values() if peaks.clocks)


def _line(peaks: Peaks) -> str:
    rates = " | ".join(f"{peaks.tflops[name]:g}" if name in peaks.tflops else "-" for name in DTYPES)
    return f"| {peaks.name} | {peaks.memory_gb_s:g} | {rates} | {peaks.source} | {peaks.confirmed} |\n"


def _clock_line(peaks: Peaks) -> str:
    one = peaks.clocks
    assert one is not None
    matrix = f"{one.matrix_per_clock} x {one.matrix_mhz:g} MHz"
    vector = f"{one.vector_per_clock} x {one.vector_mhz:g} MHz"
    return f"| {peaks.name} | {one.units} | {matrix} | {vector} | {one.confirmed} |\n"


if __name__ == "__main__":
    (Path(sys.argv[1]) / "peaks.md").write_text(page(), encoding="utf-8")
