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


def page() -> str:
    """The whole page, Markdown."""
    text = f"{_HEAD}{_TEXT}| GPU | GB/s | {' | '.join(DTYPES)} | source | confirmed |\n"
    text += "|---" * (len(DTYPES) + 4) + "|\n"
    return text + "".join(_line(peaks) for peaks in table().values())


def _line(peaks: Peaks) -> str:
    rates = " | ".join(f"{peaks.tflops[name]:g}" if name in peaks.tflops else "-" for name in DTYPES)
    return f"| {peaks.name} | {peaks.memory_gb_s:g} | {rates} | {peaks.source} | {peaks.confirmed} |\n"


if __name__ == "__main__":
    (Path(sys.argv[1]) / "peaks.md").write_text(page(), encoding="utf-8")
