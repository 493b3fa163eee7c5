"""Containers of one-trial jobs on hosts of every kind."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profrun.backends.docker.request import Container, container
from profrun.backends.gpu_choice import GpuSurvey, choose
from profrun.backends.host import HostFacts, RenderNode
from profrun.images.engine_kind import EngineKind
from profrun.in_job.gpu_use import GpuUse
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run

RUN = Run(Path("/runs/t-0a1b"))


SOURCE = Path("/home/ada/work")


CPU = HostFacts(uid=1001, gid=1002, user="ada")


AMD_NODES = (RenderNode("/dev/dri/renderD128", 992), RenderNode("/dev/dri/renderD129", 992))


HOSTS = {
    "cpu": CPU,
    "nvidia": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_driver=(570, 86, 15)),
    "nvidia-cdi": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_driver=(570, 86, 15), nvidia_cdi=True),
    "nvidia-old-engine": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_cdi=True, api=(1, 41)),
    "nvidia-old-driver": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_driver=(550, 54, 14)),
    "nvidia-open": dataclasses.replace(CPU, nvidia_gpus=1, nvidia_driver=(570, 1), nvidia_counters=True),
    "amd": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, paranoid=4),
    "amd-cdi": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, amd_cdi=True),
    "amd-runtime": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, amd_runtime=True),
    "amd-open": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, paranoid=2),
    "rootless": dataclasses.replace(CPU, engine=EngineKind.ROOTLESS_DOCKER, raise_limits=False),
    "podman": dataclasses.replace(CPU, engine=EngineKind.PODMAN, engine_version=(4, 3, 1)),
    "podman-nvidia": dataclasses.replace(
        CPU, engine=EngineKind.PODMAN, engine_version=(5, 4, 0), nvidia_gpus=2, nvidia_cdi=True, api=(1, 41)
    ),
    "podman-amd": dataclasses.replace(
        CPU,
        engine=EngineKind.PODMAN,
        engine_version=(4, 9, 3),
        amd_gpus=AMD_NODES,
        kfd_gid=993,
        amd_cdi=True,
        amd_runtime=True,
        paranoid=2,
    ),
    "rootless-podman": dataclasses.replace(
        CPU, engine=EngineKind.ROOTLESS_PODMAN, raise_limits=False, unlimited=("memory", "cpus")
    ),
    "weak-engine": dataclasses.replace(CPU, raise_limits=False),
    "selinux": dataclasses.replace(CPU, selinux=True),
    "root": dataclasses.replace(CPU, uid=0, gid=0, user="root", nvidia_gpus=1, nvidia_driver=(570, 1)),
}


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "torch": {"with_stack": True},
    "nsys": {},
    "nsys-sample": {"sample": "process-tree"},
    "nsys-metrics": {"gpu_metrics": "all"},
    "ncu": {},
    "rocprof": {},
    "rocprof-pmc": {"pmc": [["SQ_WAVES"]]},
}


def asked(host: str = "cpu", collector: str = "none", image: str = "img:1", **job: Any) -> Container:
    """The container of a one-trial job on one of the hosts."""
    spec = Job(name="transformer", command="python train.py", **job)
    name = collector.partition("-")[0]
    options = {name: OPTIONS[collector]}
    argv = ("python", "train.py")
    trial = Trial(0, f"000-a-{collector}-r1", "a", {}, name, False, 1, argv, options=options)
    facts = HOSTS[host]
    unused = GpuSurvey(tuple(GpuUse(index) for index in range(facts.gpus)))
    ids = choose(spec.resources, unused, facts, {}).ids
    return container(Plan(spec, (trial,)), trial, RUN, SOURCE, facts, image, ids)


def options_of(text: str) -> list[str]:
    """The options of a `docker run` line, one each, without the shell's quoting."""
    return [" ".join(shlex.split(line)) for line in text.split(" \\\n  ")[1:]]
