"""The doctor's lines: from what was found on made-up machines to what it means and how to fix it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from profrun.backends.docker.leftovers import Leftover
from profrun.backends.docker.survey import Engine, ImageAnswer, Survey
from profrun.backends.gpu_choice import GpuSurvey
from profrun.backends.host import HostFacts, RenderNode
from profrun.contract.finding import Finding, Passed
from profrun.contract.preflight import Preflight, Readiness
from profrun.contract.profilers import names
from profrun.doctor import cannot, check_machine, report, verdicts
from profrun.doctor.model import HOST, Machine
from profrun.errors import UnavailableError, UsageError
from profrun.images.inspect import Contents, ToolFound, TorchFound
from profrun.in_job.gpu_use import GpuProcess, GpuUse

GIB = 1 << 30
DOCKER = Engine("Docker", "28.2", "1.50", "amd64", ("runc",), "/var/lib/docker", 200 * GIB)
NO_GPU = HostFacts(uid=1000, paranoid=2)
NVIDIA = dataclasses.replace(NO_GPU, nvidia_gpus=2, nvidia_driver=(570, 86), nvidia_counters=True)
AMD = dataclasses.replace(NO_GPU, amd_gpus=(RenderNode("/dev/dri/renderD128", 109),), kfd_gid=109)


def usable(*wanted: str, where: str = "on this machine") -> Preflight:
    """A preflight in which these collectors can work and the others' tool is missing."""
    lacks = Finding("tool-missing", "critical", f"x is not {where}", "not on the PATH", "install x")
    rows = {
        name: Readiness(True, name, f"/usr/bin/{name}", "1.2")
        if name in wanted
        else Readiness(False, name, findings=(lacks,))
        for name in names()
    }
    return Preflight("nvidia", "made up", collectors=rows)


def inside(*wanted: str, torch: str | None = "2.10", **contents: Any) -> ImageAnswer:
    """An image in which these collectors can work."""
    found = Contents(os="Ubuntu 24.04", torch=TorchFound(torch) if torch else None, **contents)
    preflight = usable(*wanted, where="in this image")
    return ImageAnswer("profrun/cuda:latest", "sha256:" + "ab" * 32, preflight, found)


PASSED = Passed("torch-traces", "read by the compiled parser")
SLOW = Finding("torch-traces", "warning", "it is not there", "traces are read slowly", "install cc")
GOOD = Machine(
    Survey(NVIDIA, DOCKER, images=(inside("none", "torch", "nsys", "ncu"),)),
    usable("none", "torch", "nsys", "ncu"),
    packages={"torch": "2.10"},
    reading=(PASSED,),
    shm=16 * GIB,
    disks=(("runs", "/r", 90 * GIB),),
    gpu_names=("NVIDIA H200", "NVIDIA H200"),
)


def changed(**what: Any) -> Machine:
    """The good machine with another answer of its engine."""
    return dataclasses.replace(GOOD, found=dataclasses.replace(GOOD.found, **what))


def found(machine: Machine, code: str, where: str = HOST) -> Finding | Passed:
    """The one result of a check."""
    (one,) = [one for one in check_machine(machine) if (one.result.code, one.where) == (code, where)]
    return one.result


def finding(machine: Machine, code: str, where: str = HOST) -> Finding:
    """The one result of a check, which did not pass."""
    one = found(machine, code, where)
    assert isinstance(one, Finding)
    return one


def test_a_machine_where_all_is_well_but_for_containers_gpus() -> None:
    found_here = {one.result.code: one.severity for one in check_machine(GOOD) if one.where == HOST}
    assert {code: severity for code, severity in found_here.items() if code in EXPECTED} == {
        code: "critical" if code == "gpu-access" else None for code in EXPECTED
    }
    assert found_here.keys() - EXPECTED <= {"proton"}  # where that is installed
    assert "nvidia-ctk runtime configure" in finding(GOOD, "gpu-access").fix
    with_runtime = changed(engine=dataclasses.replace(DOCKER, runtimes=("nvidia", "runc")))
    assert isinstance(found(with_runtime, "gpu-access"), Passed)
    with_cdi = changed(host=dataclasses.replace(NVIDIA, nvidia_cdi=True))
    assert found(with_cdi, "gpu-access").what == "a CDI specification for nvidia"


EXPECTED = {
    *("gpu", "engine", "gpu-access", "gpu-counters", "perf-events", "shm", "disk-runs"),
    *("torch", "torch-traces", "nsys", "ncu"),
}


def test_every_finding_says_what_it_means_and_how_to_fix_it() -> None:
    old = ToolFound("/usr/bin/nsys", "2023.4.4")
    worst = Machine(
        Survey(
            dataclasses.replace(NVIDIA, nvidia_counters=False, paranoid=4, raise_limits=False),
            dataclasses.replace(DOCKER, api="1.41"),
            images=(inside("none", torch=None, nvtx="0.2.17", tools={"nsys": old}),),
            leftovers=(
                Leftover("0123456789abcdef", "running", "j-1", "000-a", "/r/j-1/trials/000-a", 0.0),
                Leftover("1123456789abcdef", "exited", "j-1", "000-b", "/r/j-1/trials/000-b", 0.0),
            ),
        ),
        usable("none"),
        reading=(SLOW,),
        shm=64 << 20,
        disks=(("runs", "/r", GIB), ("images", "/var/lib/docker", GIB)),
    )
    bad = [one.result for one in check_machine(worst) if isinstance(one.result, Finding)]
    assert {one.code for one in bad} - {"proton"} == {
        *("engine-limits", "engine-age", "gpu-access", "gpu-counters", "perf-events", "shm", "disk-runs"),
        *("disk-images", "torch", "torch-traces", "nsys", "ncu", "nvtx", "leftover"),
    }
    for one in bad:
        assert one.why, one
        assert one.fix, one


def test_no_gpu() -> None:
    none = changed(host=NO_GPU)
    assert finding(none, "gpu").severity == "warning"
    assert "torch and nsys record the CPU side only; ncu and rocprof" in finding(none, "gpu").why
    assert "gpu-counters" not in {one.result.code for one in check_machine(none)}


def test_no_engine_keeps_why_and_fix_apart() -> None:
    refused = UnavailableError("no engine answers", why="refused; by a rule", fix="start it")
    none = changed(engine=None, images=(), problem=refused)
    one = finding(none, "engine")
    assert (one.severity, one.fix) == ("critical", "start it")
    assert one.what == "no engine answers: refused; by a rule"
    assert "--backend docker cannot run" in one.why


def test_amd() -> None:
    machine = dataclasses.replace(changed(host=AMD), preflight=usable("none", "torch"))
    assert found(machine, "gpu-access").what == "/dev/kfd and render nodes, by number of their group"
    assert finding(machine, "rocprof").severity == "critical"
    codes = {one.result.code for one in check_machine(machine)}
    assert not codes & {"nsys", "ncu", "gpu-counters"}
    strict = changed(host=dataclasses.replace(AMD, paranoid=3))
    assert "rocprof with pmc" in finding(strict, "perf-events").why


def test_an_image_that_must_not_be_used() -> None:
    why = UnavailableError("profrun/cuda:latest is stale", why="its base changed", fix="build it again")
    machine = changed(images=(ImageAnswer("profrun/cuda:latest", problem=why),))
    one = finding(machine, "image", "profrun/cuda:latest")
    assert (one.severity, one.fix) == ("critical", "build it again")
    assert all(not verdict.images["profrun/cuda:latest"] for verdict in verdicts(machine))


def test_verdicts_and_what_was_asked_for() -> None:
    machine = changed(images=(inside("none", "nsys"),))
    machine = dataclasses.replace(machine, preflight=usable("none", "torch"))
    by_name = {verdict.collector: verdict for verdict in verdicts(machine)}
    assert (by_name["nsys"].local, by_name["nsys"].images) == (False, {"profrun/cuda:latest": True})
    assert by_name["nsys"].reasons == ("host: x is not on this machine (not on the PATH)",)
    assert [verdict.collector for verdict in cannot(machine, ["nsys", "ncu", "torch"])] == ["ncu"]
    assert [verdict.collector for verdict in cannot(machine, ["timeline"], "local")] == ["nsys"]
    assert [verdict.collector for verdict in cannot(machine, ["counters"])] == ["ncu"]
    assert cannot(machine, ["nsys"], "docker") == []
    assert report(machine)["collectors"]["torch"] == {
        "local": True,
        "docker": False,
        "images": {"profrun/cuda:latest": False},
        "reasons": ["profrun/cuda:latest: x is not in this image (not on the PATH)"],
    }


def test_torch_needs_torch() -> None:
    bare = dataclasses.replace(changed(images=(inside("torch", torch=None),)), packages={})
    (verdict,) = [verdict for verdict in verdicts(bare) if verdict.collector == "torch"]
    assert (verdict.local, verdict.images) == (False, {"profrun/cuda:latest": False})
    assert verdict.reasons[0] == "host: no torch in the Python that runs profrun"


def test_wrong_words() -> None:
    with pytest.raises(UsageError, match="no collector 'nsight'"):
        cannot(GOOD, ["nsight"])
    with pytest.raises(UsageError, match="does not look at backend 'slurm'"):
        cannot(GOOD, ["nsys"], "slurm")


def test_gpus_that_somebody_uses_are_named() -> None:
    busy = GpuUse(0, "", 40 << 30, (GpuProcess(812, 0, 40 << 30),))

    def said(survey: GpuSurvey) -> list[str]:
        found = check_machine(dataclasses.replace(GOOD, gpus=survey))
        return [f"{one.severity}: {one.result.what}" for one in found if one.result.code == "gpu-use"]

    assert said(GpuSurvey((GpuUse(0), GpuUse(1)))) == ["None: 2 of 2 GPUs free"]
    assert said(GpuSurvey((busy, GpuUse(1)))) == [
        "warning: 1 of 2 GPUs free; in use: GPU 0 (pid 812 of root, 40.0 GiB)"
    ]
    assert said(GpuSurvey((GpuUse(0),), "NVML: no")) == [
        "warning: which GPUs are in use could not be told: NVML: no"
    ]
    assert said(GpuSurvey()) == []
