"""Peak rates of GPUs: dense TFLOP/s by dtype and memory bandwidth, each with the document it is from.

The table is ``peaks.csv``, one row per GPU. Dense means without structured sparsity: vendors print twice
these numbers for NVIDIA's sparse modes. fp16, bf16, tf32, fp8, fp4 and int8 are rates of tensor or matrix
cores; fp32 and fp64 are those of the vector units (CUDA cores), and the matrix rates of these types are
``fp32_matrix`` and ``fp64_matrix``. MI200 figures are those of one GCD, which HIP shows as one device. The
user can override each number (``peaks_for(..., overrides=...)``).

No vendor document was at hand: ``confirmed`` names a published text that quotes it and agrees, or
``NOT_CONFIRMED``.

A peak holds at one clock: units (SMs or compute units) x dense FLOPs of a unit per clock x clock = peak. The
table has these factors for fp16 on matrix units and for fp32 on vector units. Some GPUs state the rates of
their matrix units at a lower clock than the others (H100 and H200 SXM: 1830 and 1980 MHz), so a GPU that
runs matrix work at 1980 MHz can do more than its datasheet says.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from profrun.errors import UsageError

NOT_CONFIRMED = "not confirmed"
DTYPES = ("fp64", "fp64_matrix", "fp32", "fp32_matrix", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Columns of rates in the table."""
VECTOR = frozenset({"fp64", "fp64_matrix", "fp32", "fp32_matrix"})
"""Rates that hold at the clock of the vector units; the others hold at that of the matrix units."""


@dataclass(frozen=True)
class PeakClocks:
    """The clocks at which the peaks of a GPU hold.

    Attributes:
        units: SMs (NVIDIA) or compute units (AMD).
        matrix_per_clock: dense fp16 FLOPs of one unit in one clock.
        vector_per_clock: fp32 FLOPs of one unit's vector lanes in one clock.
        matrix_mhz: clock at which the rates of matrix units hold, MHz.
        vector_mhz: clock at which the rates in ``VECTOR`` hold, MHz.
        confirmed: which published text has these clocks, or how they were told from the peaks.
    """

    units: int
    matrix_per_clock: int
    vector_per_clock: int
    matrix_mhz: float
    vector_mhz: float
    confirmed: str


@dataclass(frozen=True)
class Peaks:
    """Peak rates of one GPU.

    Attributes:
        name: product.
        tflops: TFLOP/s (int8: TOP/s) by dtype, dense.
        memory_gb_s: bandwidth of device memory, 1e9 bytes per second.
        source: the document that the numbers are from.
        confirmed: where a text that quotes it was found to agree, ``NOT_CONFIRMED`` where none was.
        overridden: keys that the user set.
        clocks: at which the rates hold; None where that is not known.
    """

    name: str
    tflops: Mapping[str, float]
    memory_gb_s: float
    source: str
    confirmed: str
    overridden: tuple[str, ...] = ()
    clocks: PeakClocks | None = None

    def for_dtype(self, dtype: str | None, *, matrix: bool = True) -> float | None:
        """TFLOP/s for a dtype; fp32 and fp64 on matrix units where the GPU has such a rate."""
        key = self._key(dtype, matrix)
        return None if key is None else self.tflops.get(key)

    def at_clock(self, dtype: str | None, mhz: float | None, *, matrix: bool = True) -> float | None:
        """TFLOP/s for a dtype when the SMs or compute units run at ``mhz``.

        None where the peak, the clock at which it holds, or the clock that ran is not known. A rate that the
        user gave holds at no clock that is known.
        """
        key = self._key(dtype, matrix)
        rate = None if key is None else self.tflops.get(key)
        if rate is None or not mhz or self.clocks is None or key in self.overridden:
            return None
        return rate * mhz / (self.clocks.vector_mhz if key in VECTOR else self.clocks.matrix_mhz)

    def _key(self, dtype: str | None, matrix: bool) -> str | None:
        return f"{dtype}_matrix" if matrix and f"{dtype}_matrix" in self.tflops else dtype

    @property
    def ridge(self) -> dict[str, float]:
        """FLOP per byte at which a dtype turns from memory-bound to compute-bound."""
        return {dtype: rate * 1e3 / self.memory_gb_s for dtype, rate in self.tflops.items()}


@functools.cache
def table() -> dict[str, Peaks]:
    """Pattern on a device's name -> peaks. The first match wins: special models come before general ones."""
    with Path(__file__).with_name("peaks.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["pattern"]: Peaks(
                name=row["name"],
                tflops={dtype: float(row[dtype]) for dtype in DTYPES if row[dtype]},
                memory_gb_s=float(row["memory_gb_s"]),
                source=row["source"],
                confirmed=row["confirmed"],
                clocks=_clocks(row),
            )
            for row in csv.DictReader(file)
        }


def _clocks(row: Mapping[str, str]) -> PeakClocks | None:
    if not row["units"]:
        return None
    return PeakClocks(
        units=int(row["units"]),
        matrix_per_clock=int(row["matrix_per_clock"]),
        vector_per_clock=int(row["vector_per_clock"]),
        matrix_mhz=float(row["matrix_mhz"]),
        vector_mhz=float(row["vector_mhz"]),
        confirmed=row["clock_confirmed"],
    )


def peaks_for(
    name: str,
    *,
    arch: str | None = None,
    sm_count: int | None = None,
    overrides: Mapping[str, float] | None = None,
) -> Peaks | None:
    """Peaks of a device by its product name; None for a GPU that is not in the table.

    Args:
        name: as the driver calls it: 'NVIDIA H200', 'AMD Instinct MI300X'.
        arch, sm_count: used for AMD devices that are only called 'AMD Radeon Graphics' or by their arch.
        overrides: dtype -> TFLOP/s, and 'memory_gb_s'; for an unknown GPU they are all there is.

    Raises:
        UsageError: an override is not a positive number, or a key is not known.
    """
    found = next((peaks for pattern, peaks in table().items() if re.search(pattern, name)), None)
    if found is None and arch == "gfx942" and sm_count in (304, 228):
        model = "MI300X" if sm_count == 304 else "MI300A"  # MI325X has 304 CUs too: stated in the source
        base = table()[model]
        told = f"told from gfx942 with {sm_count} CUs, bandwidth may be more"
        found = replace(base, source=f"{base.source}; {told}")
    if not overrides:
        return found
    for key, value in overrides.items():
        if not value > 0:
            raise UsageError(f"peak {key}={value!r} is not a positive number", fix="give TFLOP/s or GB/s")
    if found is None:
        found = Peaks(name, {}, 0.0, "given by the user", "given by the user")
    rates = {key: float(value) for key, value in overrides.items() if key != "memory_gb_s"}
    memory = float(overrides.get("memory_gb_s", found.memory_gb_s))
    if memory <= 0:
        raise UsageError(f"no memory bandwidth is known for {name}", fix="give memory_gb_s as well")
    return replace(
        found,
        tflops={**found.tflops, **rates},
        memory_gb_s=memory,
        source=f"{found.source}; overridden: {', '.join(sorted(overrides))}",
        overridden=tuple(sorted(overrides)),
    )
