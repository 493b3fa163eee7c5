"""What stands against a profiler on a machine: its own checks, and those of all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from profrun.contract.finding import Finding
from profrun.contract.profilers import profiler
from profrun.in_job import preflight, tools, vendor
from profrun.in_job.tools import Tool
from tests.in_job.roots import fake_root

RESTRICTED = {
    "proc/driver/nvidia/params": "RmProfilingAdminOnly: 1\n",
    "proc/self/status": "CapEff:\t0000000000000000\n",
}
COMMON = ("disk-full", "disk-low", "shm-small")


def check(
    root: Path, name: str, gpus: str, files: Mapping[str, str], *, stated: bool = False, **options: object
) -> list[Finding]:
    """Findings but for those about disks, which are this machine's own."""
    here = preflight.machine(gpus, stated=stated, root=fake_root(root, dict(files)))
    found = preflight.check(profiler(name), options, here, Tool(), Path("/"))
    return [finding for finding in found if finding.code not in COMMON]


def codes(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.severity, finding.code) for finding in found]


def test_restricted_counters_stop_ncu_and_degrade_nsys(tmp_path: Path) -> None:
    assert codes(check(tmp_path, "ncu", "nvidia", RESTRICTED)) == [("critical", "gpu-counters-denied")]
    assert check(tmp_path, "nsys", "nvidia", RESTRICTED) == []
    found = check(tmp_path, "nsys", "nvidia", RESTRICTED, gpu_metrics="all")
    assert codes(found) == [("warning", "gpu-counters-denied")]


@pytest.mark.parametrize(
    ("driver", "allowed"), [("550.54.14", False), ("565.57.01", True), ("580.159.04", True)]
)
def test_perfmon_is_enough_for_counters_from_driver_565(tmp_path: Path, driver: str, allowed: bool) -> None:
    files = {
        **RESTRICTED,
        "proc/self/status": f"CapEff:\t{1 << 38:016x}\n",
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Sun\n",
    }
    assert (check(tmp_path, "ncu", "nvidia", files) == []) is allowed
    admin = RESTRICTED | {"proc/self/status": f"CapEff:\t{1 << 21:016x}\n"}
    assert check(tmp_path, "ncu", "nvidia", admin) == []


def test_ncu_needs_an_nvidia_gpu(tmp_path: Path) -> None:
    assert codes(check(tmp_path, "ncu", "none", {})) == [("critical", "no-gpu-to-profile")]


def test_cpu_sampling_is_left_out_where_the_kernel_forbids_it(tmp_path: Path) -> None:
    files = {"proc/sys/kernel/perf_event_paranoid": "4\n", "proc/self/status": "CapEff:\t0\n"}
    assert check(tmp_path, "nsys", "none", files) == []
    found = check(tmp_path, "nsys", "none", files, sample="process-tree")
    assert codes(found) == [("warning", "cpu-sampling-denied")]
    found = check(tmp_path, "nsys", "none", files, python_backtrace="cuda")
    assert codes(found) == [("warning", "cpu-sampling-denied")]


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("cpu-sampling-denied", {"trace": ["nvtx"], "gpu_metrics": "all"}),
        ("gpu-counters-denied", {"trace": ["nvtx"], "sample": "process-tree"}),
        ("other", {"trace": ["nvtx"], "gpu_metrics": "all", "sample": "process-tree"}),
    ],
)
def test_options_are_dropped_by_the_code_of_a_finding_whatever_it_says(
    code: str, left: dict[str, object]
) -> None:
    options = {"trace": ["nvtx"], "gpu_metrics": "all", "sample": "process-tree"}
    found = [Finding(code, "warning", "counters and CPU sampling are named here")]
    assert preflight.degrade(profiler("nsys"), options, found) == left
    assert preflight.degrade(profiler("torch"), options, found) == options, "torch declares none"


def test_amd_needs_its_device(tmp_path: Path) -> None:
    assert codes(check(tmp_path, "rocprof", "none", {})) == [("critical", "amd-device-missing")]
    found = check(tmp_path, "rocprof", "amd", {}, stated=True)
    assert codes(found) == [("warning", "amd-device-missing")], "a stated vendor is believed"
    assert codes(check(tmp_path, "torch", "amd", {})) == [("warning", "amd-device-missing")]
    assert check(tmp_path, "rocprof", "amd", {"dev/kfd": ""}) == []


def test_a_nearly_full_disk_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(100 << 30, 100 << 30, 10 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    first = preflight.check(profiler("none"), {}, preflight.machine("none"), Tool(), tmp_path)[0]
    assert (first.code, first.severity) == ("disk-full", "critical")
    assert "only 10 MiB are free" in first.what


def test_the_gravest_comes_first(tmp_path: Path) -> None:
    missing = Tool("nsys", problem=Finding("tool-missing", "critical", "nsys is not on this machine"))
    here = preflight.machine("nvidia", root=fake_root(tmp_path, RESTRICTED))
    found = preflight.check(profiler("nsys"), {"gpu_metrics": "all"}, here, missing, Path("/"))
    assert [finding.severity for finding in found][:2] == ["critical", "warning"]


def test_a_probe_resolves_neutral_collectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vendor, "detect", lambda: ("none", "no driver"))
    monkeypatch.setattr(tools, "find", lambda *_: None)
    answer = preflight.probe(
        ["none", "timeline", "counters", "vtune"], Path("/"), where="on this machine"
    ).collectors
    assert answer["none"].usable
    timeline, counters, unknown = answer["timeline"], answer["counters"], answer["vtune"]
    assert (timeline.usable, timeline.profiler) == (False, "nsys")
    assert timeline.findings[0].what == "nsys is not on this machine"
    assert (counters.usable, counters.profiler) == (False, None)
    assert str(counters.reason).startswith("no counters can be recorded here: there is no GPU")
    assert str(unknown.reason).startswith("unknown collector 'vtune'")
