"""The doctor's lines: from what was found on made-up machines to what it means and how to fix it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from profrun.backends.docker.leftovers import Leftover
from profrun.backends.docker.survey import Engine, ImageAnswer, Survey
from profrun.backends.host import HostFacts, RenderNode
from profrun.doctor import cannot, lines, report, verdicts
from profrun.doctor.model import COLLECTORS, Line, Machine
from profrun.errors import UnavailableError, UsageError

GIB = 1 << 30
DOCKER = Engine("Docker", "28.2", "1.50", "amd64", ("runc",), "/var/lib/docker", 200 * GIB)
HOST = HostFacts(uid=1000, paranoid=2)
NVIDIA = dataclasses.replace(HOST, nvidia_gpus=2, nvidia_driver=(570, 86), nvidia_counters=True)
AMD = dataclasses.replace(HOST, amd_gpus=(RenderNode("/dev/dri/renderD128", 109),), kfd_gid=109)


def usable(*names: str) -> dict[str, Any]:
    """A preflight in which these collectors can work and the others' tool is missing."""
    lacks = [
        {
            "severity": "critical",
            "what": "x is not on this machine",
            "why": "not on the PATH",
            "fix": "install x",
        }
    ]
    rows = {
        name: {"usable": name in names, "tool": f"/usr/bin/{name}", "version": "1.2", "findings": []}
        if name in names
        else {"usable": False, "tool": None, "version": None, "findings": lacks}
        for name in COLLECTORS
    }
    return {"collectors": rows}


def inside(*names: str, **contents: Any) -> ImageAnswer:
    """An image in which these collectors can work."""
    found = {"os": "Ubuntu 24.04", "torch": {"version": "2.10"}, **contents}
    return ImageAnswer("profrun/cuda:latest", "sha256:" + "ab" * 32, usable(*names), found)


GOOD = Machine(
    Survey(NVIDIA, DOCKER, images=(inside("none", "torch", "nsys", "ncu"),)),
    preflight=usable("none", "torch", "nsys", "ncu"),
    torch="2.10",
    parser=True,
    shm=16 * GIB,
    disks=(("runs", "/r", 90 * GIB),),
    gpu_names=("NVIDIA H200", "NVIDIA H200"),
)


def changed(**what: Any) -> Machine:
    """The good machine with another answer of its engine."""
    return dataclasses.replace(GOOD, found=dataclasses.replace(GOOD.found, **what))


def found(machine: Machine, check: str, where: str = "host") -> Line:
    """The one line of a check."""
    (line,) = [line for line in lines(machine) if (line.check, line.where) == (check, where)]
    return line


def test_a_machine_where_all_is_well_but_for_containers_gpus() -> None:
    states = {line.check: line.state for line in lines(GOOD) if line.where == "host"}
    assert states == {
        "gpu": "ok",
        "engine": "ok",
        "gpu-access": "fail",
        "gpu-counters": "ok",
        "perf-events": "ok",
        "shm": "ok",
        "disk-runs": "ok",
        "torch": "ok",
        "torch-traces": "ok",
        "nsys": "ok",
        "ncu": "ok",
    }
    access = found(GOOD, "gpu-access")
    assert "nvidia-ctk runtime configure" in (access.fix or "")
    with_runtime = changed(engine=dataclasses.replace(DOCKER, runtimes=("nvidia", "runc")))
    assert found(with_runtime, "gpu-access").state == "ok"
    with_cdi = changed(host=dataclasses.replace(NVIDIA, nvidia_cdi=True))
    assert found(with_cdi, "gpu-access").found == "a CDI specification for nvidia"


def test_every_line_that_is_not_ok_says_what_it_means_and_how_to_fix_it() -> None:
    worst = Machine(
        Survey(
            dataclasses.replace(NVIDIA, nvidia_counters=False, paranoid=4, raise_limits=False),
            dataclasses.replace(DOCKER, api="1.41"),
            images=(inside("none", torch=None, nvtx="0.2.17", profilers={"nsys": {"version": "2023.4.4"}}),),
            leftovers=(
                Leftover("0123456789abcdef", "running", "j-1", "000-a", "/r/j-1/trials/000-a", 0.0),
                Leftover("1123456789abcdef", "exited", "j-1", "000-b", "/r/j-1/trials/000-b", 0.0),
            ),
        ),
        preflight=usable("none"),
        shm=64 << 20,
        disks=(("runs", "/r", GIB), ("images", "/var/lib/docker", GIB)),
    )
    bad = [line for line in lines(worst) if line.state != "ok"]
    assert {line.check for line in bad} == {
        *("engine-limits", "engine-age", "gpu-access", "gpu-counters", "perf-events", "shm", "disk-runs"),
        *("disk-images", "torch", "torch-traces", "nsys", "ncu", "nvtx", "leftover"),
    }
    for line in bad:
        assert line.means, line
        assert line.fix, line
    names = ("ncu", "nsys", "torch", "NCCL", "every collector", "trials", "images", "image", "run", "room")
    assert all(any(name in (line.means or "") for name in names) for line in bad)


def test_no_gpu() -> None:
    line = found(changed(host=HOST), "gpu")
    assert line.state == "warn"
    assert "ncu and rocprof have nothing to record" in (line.means or "")
    assert "gpu-counters" not in {line.check for line in lines(changed(host=HOST))}


def test_no_engine_keeps_why_and_fix_apart() -> None:
    refused = UnavailableError("no engine answers", why="refused; by a rule", fix="start it")
    none = changed(engine=None, images=(), problem=refused)
    line = found(none, "engine")
    assert (line.state, line.found, line.fix) == ("fail", "no engine answers: refused; by a rule", "start it")
    assert "--backend docker cannot run" in (line.means or "")


def test_amd() -> None:
    machine = dataclasses.replace(changed(host=AMD), preflight=usable("none", "torch"))
    assert found(machine, "gpu-access").found == "/dev/kfd and render nodes, by number of their group"
    assert found(machine, "rocprof").state == "fail"
    assert not [line for line in lines(machine) if line.check in ("nsys", "ncu", "gpu-counters")]
    strict = changed(host=dataclasses.replace(AMD, paranoid=3))
    assert "rocprof with pmc" in (found(strict, "perf-events").means or "")


def test_an_image_that_must_not_be_used() -> None:
    why = UnavailableError("profrun/cuda:latest is stale", why="its base changed", fix="build it again")
    machine = changed(images=(ImageAnswer("profrun/cuda:latest", problem=why),))
    line = found(machine, "image", "profrun/cuda:latest")
    assert (line.state, line.fix) == ("fail", "build it again")
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
        "reasons": ["profrun/cuda:latest: x is not on this machine (not on the PATH)"],
    }


def test_torch_needs_torch() -> None:
    bare = dataclasses.replace(changed(images=(inside("torch", torch=None),)), torch=None)
    (verdict,) = [verdict for verdict in verdicts(bare) if verdict.collector == "torch"]
    assert (verdict.local, verdict.images) == (False, {"profrun/cuda:latest": False})
    assert verdict.reasons[0] == "host: no torch in the Python that runs profrun"


def test_wrong_words() -> None:
    with pytest.raises(UsageError, match="no collector 'nsight'"):
        cannot(GOOD, ["nsight"])
    with pytest.raises(UsageError, match="does not look at backend 'slurm'"):
        cannot(GOOD, ["nsys"], "slurm")
