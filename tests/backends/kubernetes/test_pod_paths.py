"""Paths of this machine as the pods see them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.kubernetes.backend import KubernetesBackend
from profrun.contract.command import Command, ImageUsed
from profrun.errors import UsageError
from profrun.plans.model import Plan
from profrun.store.runs import Run
from tests.backends.kubernetes.made import NGC, RUN, bundles, pod
from tests.backends.plans import plan


def test_paths_of_this_machine_become_those_of_the_pod() -> None:
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia, shared: /shared, pvc_path: /data")
    backend = KubernetesBackend()
    known = backend.prepare(made, made.trials, Run(RUN), Path("/shared/me/project"), ask=False)
    command = Command("t", "r", "j", "v", "none", ("x",), cwd="/shared/me/project")
    told = backend.adapt(known, made.trials[0], Run(RUN), command)
    assert told == replace(
        command, cwd="/data/me/project", vendor="nvidia", image=ImageUsed(NGC), patience_s=130
    )
    with pytest.raises(UsageError, match="the pods do not see /home/me, where the command is to run"):
        backend.adapt(known, made.trials[0], Run(RUN), replace(command, cwd="/home/me"))
    env = pod(bundles(made)[0])["containers"][0]["env"]
    assert {"name": "PROFRUN_RUN", "value": f"/data/runs/{RUN.name}"} in env


def test_mounts_are_parts_of_the_claim() -> None:
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia, shared: /shared")

    def mounted(text: str) -> list[dict[str, Any]]:
        job = type(made.job)(**{**vars(made.job), "mounts": (text,)})
        found: list[dict[str, Any]] = pod(bundles(Plan(job, made.trials, made.vendor))[0])["containers"][0][
            "volumeMounts"
        ]
        return found

    assert mounted("/shared/data:/data:ro")[-1] == {
        "name": "runs",
        "mountPath": "/data",
        "subPath": "data",
        "readOnly": True,
    }
    with pytest.raises(UsageError, match="/etc/data cannot be mounted in a pod"):
        mounted("/etc/data:/data")
