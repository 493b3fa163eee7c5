"""What is read of ROCm SMI: values of a stand-in library, new and old. No AMD GPU was there."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.contract.sampling import REASONS
from profrun.in_job.gpu_source import LibraryError
from profrun.in_job.rsmi import open_gpus
from tests.in_job.sampled import first_reading, library


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(library(tmp_path_factory.mktemp("rsmi"), "rocm_smi64"))


def test_every_value_has_its_unit(standin: str) -> None:
    gpu, other = open_gpus({}, standin)
    source = gpu.source
    assert (source.vendor, source.index, source.uuid, source.name) == (
        "amd",
        0,
        "000000000000abc0",
        "Stand-in",
    )
    assert (source.power_limit_w, source.max_sm_clock_mhz) == (750.0, 2100.0)
    assert source.library == "ROCm SMI 7.8.0"
    assert (other.source.index, other.source.uuid) == (1, "000000000000abc1")
    found, watts = first_reading(gpu)
    assert watts == pytest.approx(700, rel=0.05)
    assert found == {
        "power": 700.25,
        "sm_clock": 2000.0,
        "memory_clock": 1200.0,
        "temperature": 71.0,
        "reasons": REASONS["power cap"] | REASONS["thermal"],
        "memory_used": 600,
        "utilization": 97,
    }


def test_an_old_library_and_gpu_give_what_they_can(standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older GPUs have the average of the power only, no junction temperature and no throttle status."""
    monkeypatch.setenv("RSMI_OLD", "1")
    gpu, _ = open_gpus({}, standin)
    assert gpu.source.max_sm_clock_mhz == 2100.0
    found = dict(zip(gpu.source.quantities, gpu.read()[1], strict=True))
    assert found.pop("energy") is not None
    assert found == {
        "power_average": 650.5,
        "sm_clock": 2100.0,
        "memory_clock": 1300.0,
        "temperature": 52.0,
        "memory_used": 600,
        "utilization": 97,
    }


@pytest.mark.parametrize(
    ("env", "seen"),
    [
        ({"ROCR_VISIBLE_DEVICES": "1"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-000000000000abc0"}, [0]),
        ({"HIP_VISIBLE_DEVICES": "1,0"}, [0, 1]),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, [0, 1]),
    ],
)
def test_the_program_s_gpus_are_read(standin: str, env: dict[str, str], seen: list[int]) -> None:
    assert [gpu.source.index for gpu in open_gpus(env, standin)] == seen


def test_no_library_is_told(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match=r"nowhere\.so"):
        open_gpus({}, str(tmp_path / "nowhere.so"))
