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


def test_every_peak_follows_from_its_clock_and_units() -> None:
    """Units x FLOPs of a unit per clock x clock is the peak, within the rounding of datasheets."""
    for gpu in table().values():
        if gpu.clocks is None:
            assert gpu.name in ("B200", "GB200, one GPU")
            continue
        one = gpu.clocks
        matrix = one.units * one.matrix_per_clock * one.matrix_mhz / 1e6
        vector = one.units * one.vector_per_clock * one.vector_mhz / 1e6
        error = 0.007 if "V100" in gpu.name else 0.006 if gpu.name == "T4" else 0.0015
        assert gpu.tflops["fp16"] == pytest.approx(matrix, rel=error), gpu.name
        assert gpu.tflops["fp32"] == pytest.approx(vector, rel=error), gpu.name


def test_the_peak_at_the_clock_that_ran() -> None:
    """An H200's matrix rates hold at 1830 MHz and its vector rates at 1980 MHz."""
    h200 = peaks_for("NVIDIA H200")
    assert h200 is not None
    assert h200.at_clock("bf16", 1830) == pytest.approx(989.4)
    assert h200.at_clock("bf16", 1980) == pytest.approx(132 * 4096 * 1980 / 1e6, rel=1e-4)  # 1070.5
    assert h200.at_clock("fp32", 1980) == pytest.approx(66.9)
    assert h200.at_clock("bf16", None) is None
    assert h200.at_clock("fp4", 1980) is None
    own = peaks_for("NVIDIA H200", overrides={"bf16": 800})
    assert own is not None
    assert own.at_clock("bf16", 1980) is None  # nobody says at which clock the user's number holds
    b200 = peaks_for("NVIDIA B200")
    assert b200 is not None
    assert b200.at_clock("bf16", 1900) is None


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
