"""The variables of launch blocking belong to one vendor each."""

from __future__ import annotations

from profrun.contract.launch_blocking import BLOCKING_ENV, BLOCKING_VARIABLES


def test_every_variable_belongs_to_one_vendor() -> None:
    assert sorted(BLOCKING_VARIABLES) == [
        "AMD_SERIALIZE_KERNEL",
        "CUDA_LAUNCH_BLOCKING",
        "HIP_LAUNCH_BLOCKING",
    ]
    assert not BLOCKING_ENV["nvidia"].keys() & BLOCKING_ENV["amd"].keys()
