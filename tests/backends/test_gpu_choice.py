"""Which GPUs a job gets, by who uses them and by what the caller may see."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from profrun.backends.gpu_choice import GpuChoice, GpuSurvey, choose, seen_by_caller, survey_gpus, visible_env
from profrun.backends.host import HostFacts, RenderNode
from profrun.errors import UnavailableError
from profrun.in_job.gpu_use import GpuProcess, GpuUse
from profrun.jobs.model import Job, Resources
from profrun.plans.model import Plan
from tests.in_job.sampled import library

ME, OTHER = 1001, 4242
GIB = 1 << 30
NVIDIA = HostFacts(uid=ME, nvidia_gpus=4)
AMD = HostFacts(
    uid=ME, amd_gpus=tuple(RenderNode(f"/dev/dri/renderD{128 + i}", 992) for i in range(4)), kfd_gid=993
)
BUSY = {
    "other": (40 * GIB, (GpuProcess(812, OTHER, 40 * GIB),)),
    "mine": (2 * GIB, (GpuProcess(7, ME, 2 * GIB),)),
    "unseen": (3 * GIB, (GpuProcess(9, None, None),)),
    "memory": (5 * GIB, ()),
    "free": (4 << 20, ()),
    "desktop": (700 << 20, ()),
}


def four(*states: str) -> GpuSurvey:
    return GpuSurvey(tuple(GpuUse(i, f"GPU-{i}abc", *BUSY[state]) for i, state in enumerate(states)))


def chosen(asked: object, found: GpuSurvey, facts: HostFacts = NVIDIA, **environ: str) -> GpuChoice:
    return choose(Resources(gpus=asked), found, facts, environ)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "states", "ids"),
    [
        (2, ("free", "free", "free", "free"), ("0", "1")),
        (2, ("other", "free", "unseen", "desktop"), ("1", "3")),
        ("auto", ("other", "memory", "free", "free"), ("2",)),
        (2, ("mine", "other", "other", "free"), ("0", "3")),
        (1, ("mine", "free", "free", "free"), ("1",)),
        (0, ("other", "other", "other", "other"), ()),
        ((3, 1), ("free", "free", "free", "free"), ("3", "1")),
    ],
)
@pytest.mark.parametrize("facts", [NVIDIA, AMD])
def test_free_ones_come_first(
    asked: object, states: tuple[str, ...], ids: tuple[str, ...], facts: HostFacts
) -> None:
    assert chosen(asked, four(*states), facts).ids == ids


def test_what_others_use_is_never_taken_by_a_number() -> None:
    with pytest.raises(UnavailableError) as caught:
        chosen(2, four("other", "unseen", "memory", "free"))
    said = str(caught.value)
    assert "asks for 2 GPUs, and 1 of 4 is free" in said
    assert "GPU 0 (pid 812 of user 4242, 40.0 GiB), GPU 1 (pid 9), GPU 2 (5.0 GiB in use)" in said
    assert "resources.gpus: [3, 0]" in said


def test_a_named_one_is_taken_with_a_note() -> None:
    found = chosen((0, 3), four("other", "free", "free", "mine"))
    assert found.ids == ("0", "3")
    named, own = found.notes
    assert named.startswith("GPU 0 (pid 812 of user 4242, 40.0 GiB) is taken, and it is in use: times and")
    assert own.startswith("GPU 3 (pid 7 of user 1001, 2.0 GiB) is taken, and you use it yourself: times and")


@pytest.mark.parametrize(
    ("facts", "environ", "ids"),
    [
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "2,3"}, {2, 3}),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "GPU-3abc, GPU-1"}, {1, 3}),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": ""}, set()),
        (NVIDIA, {"CUDA_VISIBLE_DEVICES": "-1"}, set()),
        (NVIDIA, {"HIP_VISIBLE_DEVICES": "1"}, {0, 1, 2, 3}),
        (AMD, {"ROCR_VISIBLE_DEVICES": "1,3"}, {1, 3}),
        (AMD, {"ROCR_VISIBLE_DEVICES": "GPU-2abc"}, {2}),
        (AMD, {"HIP_VISIBLE_DEVICES": "2"}, {2}),
        (AMD, {"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "1"}, {3}),
        (AMD, {"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "0"}, {2}),
        (AMD, {"CUDA_VISIBLE_DEVICES": "0"}, {0}),
    ],
)
def test_the_callers_variables_are_respected(
    facts: HostFacts, environ: dict[str, str], ids: set[int]
) -> None:
    assert seen_by_caller(four("free", "free", "free", "free").uses, facts.vendor, environ) == ids


@pytest.mark.parametrize(
    ("asked", "environ", "said"),
    [
        (3, {"CUDA_VISIBLE_DEVICES": "2,3"}, "asks for 3 GPUs, and CUDA_VISIBLE_DEVICES=2,3 lists 2"),
        (
            (0, 2),
            {"CUDA_VISIBLE_DEVICES": "2,3"},
            "asks for GPU 0, 2, and CUDA_VISIBLE_DEVICES=2,3 leaves out 0",
        ),
        ((2, 9), {}, "asks for GPU 2, 9, and this machine has 4"),
        (5, {}, "asks for 5 GPUs, and this machine has 4"),
        ((1,), {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"}, "lists 2 parts of GPUs"),
        (
            3,
            {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"},
            "asks for 3 GPUs, and CUDA_VISIBLE_DEVICES lists 2 parts",
        ),
    ],
)
def test_what_is_refused(asked: object, environ: dict[str, str], said: str) -> None:
    with pytest.raises(UnavailableError, match=said):
        chosen(asked, four("free", "free", "free", "free"), NVIDIA, **environ)


def test_parts_of_a_gpu_are_taken_as_the_caller_names_them() -> None:
    found = chosen("auto", four("other", "free", "free", "free"), CUDA_VISIBLE_DEVICES="MIG-a, MIG-b")
    assert found == GpuChoice(("MIG-a",), (), 4)


def test_a_repeated_run_has_the_same_gpus() -> None:
    plan = Plan(Job(name="j", command="x", resources=Resources(gpus=2)), ())
    assert chosen(2, four("other", "free", "free", "free")).resolved(plan).job.resources.gpus == (1, 2)
    assert GpuChoice(("0", "1"), (), 2).resolved(plan) == plan
    assert GpuChoice(("MIG-a",), (), 2).resolved(plan) == plan


def test_the_variables_of_a_process() -> None:
    assert visible_env(GpuChoice(("2", "3")), "nvidia") == (
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,3"},
        (),
    )
    assert visible_env(GpuChoice(("1",)), "amd") == (
        {"ROCR_VISIBLE_DEVICES": "1"},
        ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    )


def test_nvidias_library_says_who_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVML_GPUS", "4")
    monkeypatch.setenv("NVML_FREE", "2")
    found = survey_gpus(NVIDIA, library=str(library(tmp_path, "nvml")))
    assert found.unknown is None
    assert [use.free for use in found.uses] == [False, False, True, True]
    assert found.uses[0].processes == (GpuProcess(1, 0, 40 * GIB), GpuProcess(4194999, None, None))
    assert chosen(2, found).ids == ("2", "3")


def test_without_the_library_the_first_ones_are_taken_and_it_is_said(tmp_path: Path) -> None:
    found = survey_gpus(NVIDIA, library=str(tmp_path / "none.so"))
    assert chosen(2, found).ids == ("0", "1")
    assert "could not be told (NVML: " in chosen(2, found).notes[0]
    assert chosen(4, found).notes == ()
    assert chosen((1,), found).notes == ()


def test_another_number_of_gpus_than_the_drivers_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVML_GPUS", "3")
    found = survey_gpus(NVIDIA, library=str(library(tmp_path, "nvml")))
    assert len(found.uses) == 4
    assert "another number" in str(found.unknown)


def test_no_gpu_at_all() -> None:
    none = dataclasses.replace(NVIDIA, nvidia_gpus=0)
    assert survey_gpus(none) == GpuSurvey()
    assert choose(Resources(), GpuSurvey(), none, {}) == GpuChoice()
    with pytest.raises(UnavailableError, match="asks for GPU 1, and no GPU was found here"):
        choose(Resources(gpus=(1,)), GpuSurvey(), none, {})
