"""What is read of NVML: values of a stand-in library, new and old, and which GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.contract.sampling import REASONS
from profrun.in_job import nvml
from profrun.in_job.gpu_source import LibraryError
from profrun.in_job.nvml import open_gpus
from tests.in_job.sampled import first_reading, library


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(library(tmp_path_factory.mktemp("nvml"), "nvml"))


def test_every_value_has_its_unit(standin: str) -> None:
    (gpu,) = open_gpus({}, standin)
    source = gpu.source
    assert (source.vendor, source.index, source.uuid, source.name) == ("nvidia", 0, "0aaa-0", "Stand-in")
    assert (source.power_limit_w, source.max_sm_clock_mhz) == (700.0, 1980.0)
    assert source.library == "NVML 12.580.1, driver 580.1"
    found, watts = first_reading(gpu)
    assert watts == pytest.approx(700, rel=0.05)
    assert found == {
        "power_average": 650.5,
        "power": 700.25,
        "sm_clock": 1440,
        "memory_clock": 3201,
        "temperature": 61,
        "reasons": REASONS["power cap"] | REASONS["thermal"],
        "memory_used": 600,
        "utilization": 97,
        "processes": 2,
    }


def test_an_old_library_gives_what_it_can(standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its power is the average, and it is not called the power of one moment."""
    monkeypatch.setenv("NVML_OLD", "1")
    (gpu,) = open_gpus({}, standin)
    found = dict(zip(gpu.source.quantities, gpu.read()[1], strict=True))
    assert found.pop("energy") is not None
    assert found == {
        "power_average": 600.0,
        "sm_clock": 1440,
        "memory_clock": 3201,
        "temperature": 61,
        "reasons": REASONS["idle"],
        "memory_used": 600,
        "processes": 2,
    }


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        (None, [0, 1, 2]),
        ("2,0", [0, 2]),
        ("GPU-1A", [1]),
        ("MIG-1", [1]),
        ("MIG-2", []),
        ("", []),
        ("-1", []),
    ],
)
def test_the_program_s_gpus_are_read(
    standin: str, monkeypatch: pytest.MonkeyPatch, visible: str | None, seen: list[int]
) -> None:
    monkeypatch.setenv("NVML_GPUS", "3")
    env = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert [gpu.source.index for gpu in open_gpus(env, standin)] == seen
    assert len(open_gpus(env, standin, everyone=True)) == 3


def test_no_library_and_no_driver_are_told(
    standin: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(LibraryError, match=r"nowhere\.so"):
        open_gpus({}, str(tmp_path / "nowhere.so"))
    monkeypatch.setenv("NVML_NO_DRIVER", "1")
    with pytest.raises(LibraryError, match=r"nvmlInit_v2 gives 9 .Driver Not Loaded."):
        open_gpus({}, standin)


def test_the_structure_is_that_of_the_header() -> None:
    """nvml.h, nvmlFieldValue_t: 4 + 4 + 8 + 8 + 4 + 4 + 8 bytes."""
    import ctypes

    assert ctypes.sizeof(nvml._Field) == 40
