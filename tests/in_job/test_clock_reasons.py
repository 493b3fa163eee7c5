"""NVML's bits and their meaning."""

from __future__ import annotations

from profrun.contract.sampling import reasons_in
from profrun.in_job.clock_reasons import NVML, nvml_names, nvml_reasons


def test_a_mask_has_names_and_a_meaning() -> None:
    assert nvml_names(0x4 | 0x20) == ["sw_power_cap", "sw_thermal_slowdown"]
    assert reasons_in(nvml_reasons(0x4 | 0x20 | 0x40)) == ("power cap", "thermal")
    assert reasons_in(nvml_reasons(0x8 | 0x80)) == ("hardware slowdown", "power brake")
    assert nvml_reasons(0) == 0
    assert nvml_reasons(1 << 40) == 0


def test_every_bit_is_there_once() -> None:
    assert [bit for bit, _, _ in NVML] == [1 << place for place in range(9)]
