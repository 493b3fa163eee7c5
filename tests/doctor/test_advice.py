"""The doctor's short answer, on made-up machines."""

from __future__ import annotations

import dataclasses

from profrun.backends.docker.survey import Survey
from profrun.contract.finding import Finding
from profrun.doctor.advice import Answer, advise
from profrun.doctor.model import Machine
from profrun.errors import UnavailableError
from tests.doctor.test_checks import AMD, GOOD, NO_GPU, NVIDIA, changed, inside, usable


def answers(machine: Machine) -> dict[str, Answer]:
    return {answer.profiler: answer for answer in advise(machine).answers}


def test_what_works_has_no_obstacle_and_nothing_to_mend() -> None:
    found = answers(GOOD)
    for name in ("none", "torch", "nsys", "ncu"):
        assert (found[name].local, found[name].images, found[name].obstacle) == (
            True,
            ("profrun/cuda:latest",),
            None,
        )
    assert advise(GOOD).machine == ("NVIDIA H200, NVIDIA H200, driver 570.86", "Docker 28.2")
    assert not {finding.code for finding in advise(GOOD).mend} & {"nsys", "ncu", "torch"}


def test_what_works_in_an_image_is_no_problem_of_the_machine() -> None:
    machine = dataclasses.replace(GOOD, preflight=usable("none", "torch"))
    nsys = answers(machine)["nsys"]
    assert (nsys.local, nsys.images, nsys.obstacle) == (False, ("profrun/cuda:latest",), None)
    assert "nsys" not in {finding.code for finding in advise(machine).mend}


def test_what_works_nowhere_has_one_reason_and_its_remedy() -> None:
    images = (inside("none", "torch"),)
    machine = dataclasses.replace(changed(images=images), preflight=usable("none", "torch"))
    nsys = answers(machine)["nsys"].obstacle
    assert nsys == Finding(
        "tool-missing", "critical", "x is not on this machine", "not on the PATH", "install x"
    )
    assert [finding.fix for finding in advise(machine).mend if finding.code == "nsys"] == ["install x"]


def test_a_profiler_for_other_gpus_is_nothing_to_mend() -> None:
    rocprof = answers(GOOD)["rocprof"].obstacle
    assert rocprof is not None
    assert (rocprof.what, rocprof.fix) == ("it needs an AMD GPU", "")
    amd = dataclasses.replace(GOOD, found=Survey(AMD, None), preflight=usable("none"))
    ncu = answers(amd)["ncu"].obstacle
    assert ncu is not None
    assert ncu.what == "it needs an NVIDIA GPU"
    nothing = dataclasses.replace(GOOD, found=Survey(NO_GPU, None), preflight=usable("none"))
    proton = answers(nothing)["proton"].obstacle
    assert proton is not None
    assert proton.what == "it needs an NVIDIA or AMD GPU"
    assert {"ncu", "rocprof", "proton"}.isdisjoint({finding.code for finding in advise(nothing).mend})


def test_a_missing_package_is_installed_by_pip() -> None:
    machine = dataclasses.replace(
        GOOD, found=Survey(NVIDIA, None), packages={}, preflight=usable("none", "torch")
    )
    torch = answers(machine)["torch"].obstacle
    assert torch is not None
    assert (torch.code, torch.fix) == ("package-missing", "pip install torch")


def test_what_limits_the_machine_is_listed_the_gravest_first() -> None:
    problem = UnavailableError("no engine answers", why="refused", fix="start Docker")
    host = dataclasses.replace(NVIDIA, nvidia_counters=False)
    machine = dataclasses.replace(GOOD, found=Survey(host, None, problem=problem))
    assert [
        (finding.code, finding.severity) for finding in advise(machine).mend if finding.code != "proton"
    ] == [
        ("engine", "critical"),
        ("gpu-counters", "warning"),
    ]
    assert advise(machine).machine[1] == "no container engine"
