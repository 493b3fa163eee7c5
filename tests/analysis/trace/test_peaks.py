"""The table of peak rates: names that drivers write, overrides, and numbers that hold together."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.peaks import peaks_for, table
from profrun.errors import UsageError


def test_peaks_have_sources_and_are_dense() -> None:
    for gpu in table().values():
        assert gpu.source
        assert gpu.memory_gb_s > 0
        if {"bf16", "tf32"} <= set(gpu.tflops):
            assert gpu.tflops["bf16"] / gpu.tflops["tf32"] == pytest.approx(2, rel=0.05)
        if {"bf16", "fp8"} <= set(gpu.tflops):
            assert gpu.tflops["fp8"] / gpu.tflops["bf16"] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(
    ("name", "mhz", "units", "flops_a_clock"),
    [
        ("Tesla V100-SXM2-32GB", 1530, 640, 128), ("Tesla T4", 1590, 320, 128),
        ("NVIDIA A100-SXM4-80GB", 1410, 432, 512), ("NVIDIA H200", 1830, 528, 1024),
        ("AMD Instinct MI210", 1700, 104, 1024), ("AMD Instinct MI250X", 1700, 110, 1024),
        ("AMD Instinct MI300X", 2100, 304, 2048), ("AMD Instinct MI325X", 2100, 304, 2048),
        ("AMD Instinct MI350X", 2200, 256, 4096), ("AMD Instinct MI355X", 2400, 256, 4096),
    ],
)  # fmt: skip
def test_half_precision_follows_from_clock_and_units(
    name: str, mhz: int, units: int, flops_a_clock: int
) -> None:
    """Tensor cores (NVIDIA) or CUs (AMD), and dense FLOPs a clock of each."""
    found = peaks_for(name)
    assert found is not None
    assert found.tflops["fp16"] == pytest.approx(mhz * units * flops_a_clock / 1e6, rel=0.005)


@pytest.mark.parametrize(
    ("name", "bf16"),
    [
        ("NVIDIA H200", 989.4), ("NVIDIA H100 80GB HBM3", 989.4), ("NVIDIA H100 PCIe", 756.0),
        ("NVIDIA B200", 2250.0), ("NVIDIA GB200", 2500.0),
        ("NVIDIA A100-SXM4-80GB", 312.0), ("AMD Instinct MI300X VF", 1307.4), ("AMD Instinct MI250X", 191.5),
        ("AMD Instinct MI355X", 2516.6), ("Tesla V100-SXM2-32GB", None),
    ],
)  # fmt: skip
def test_names_as_drivers_write_them(name: str, bf16: float | None) -> None:
    found = peaks_for(name)
    assert found is not None
    assert found.tflops.get("bf16") == bf16


def test_overrides_of_peaks() -> None:
    found = peaks_for("NVIDIA H200", overrides={"bf16": 800, "memory_gb_s": 4000})
    assert found is not None
    assert (found.tflops["bf16"], found.memory_gb_s, found.overridden) == (800, 4000, ("bf16", "memory_gb_s"))
    own = peaks_for("Frobnicator", overrides={"bf16": 10, "memory_gb_s": 100})
    assert own is not None
    assert own.ridge == {"bf16": 100.0}
    with pytest.raises(UsageError, match="no memory bandwidth"):
        peaks_for("Frobnicator", overrides={"bf16": 10})
    with pytest.raises(UsageError, match="not a positive number"):
        peaks_for("NVIDIA H200", overrides={"bf16": -1})
