"""Manifests of small plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profrun.backends.kubernetes.manifest import JobObjects, job_objects
from profrun.backends.kubernetes.resource_groups import Caller, resource_groups
from profrun.plans.model import Plan

RUN = Path("/shared/runs/transformer-20260101T000000Z-abcd")
CWD = Path("/shared/me/project")
ME = Caller(1000, 1000)
NGC = "nvcr.io/nvidia/pytorch:25.12-py3"
CASES: dict[str, dict[str, str]] = {
    "nvidia": {"image": NGC, "cluster": "pvc: runs, vendor: nvidia, parallel: 4"},
    "amd": {
        "image": "rocm",
        "resources": "gpus: 1, cpus: 8, memory: 64GiB, shm: 8GiB, timeout: 10m, grace: 30s",
        "cluster": (
            "pvc: runs, vendor: amd, namespace: ml, queue: gpu, priority_class: high, service_account: prof, "
            "pvc_path: /data, shared: /shared, node_selector: {gpu: mi300x}, labels: {team: a}, ttl: 10m, "
            "annotations: {note: b}, image_pull_secrets: [pull], image_pull_policy: Always, "
            "tolerations: [{key: amd.com/gpu, operator: Exists, effect: NoExecute, seconds: 30}]"
        ),
    },
    "nodes": {
        "image": NGC,
        "command": "torchrun train.py --batch {batch}",
        "resources": "gpus: 8, nodes: 2, ranks_per_node: 8",
        "cluster": "pvc: runs, gpu_resource: nvidia.com/gpu",
    },
    "rdma": {
        "image": NGC,
        "command": "torchrun train.py --batch {batch}",
        "resources": "gpus: 8, nodes: 2, ranks_per_node: 8, memory: 512GiB",
        "cluster": (
            "pvc: runs, vendor: nvidia, ipc_lock: true, fs_group: 2000, supplemental_groups: [3000], "
            "pod_resources: {rdma/ib: 1, hugepages-2Mi: 5120Mi}, scheduler_name: volcano, "
            "runtime_class: nvidia, host_ipc: true, "
            "topology_spread: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}], "
            "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
            "podAffinityTerm: {topologyKey: rack, labelSelector: {matchLabels: {team: a}}}}]}}"
        ),
    },
    "patched": {
        "image": NGC,
        "command": "torchrun train.py --batch {batch}",
        "resources": "gpus: 8, nodes: 2, ranks_per_node: 8",
        "cluster": (
            "pvc: runs, vendor: nvidia, pod_patch_allow: [hostPath, capabilities, runAsUser, runAsNonRoot], "
            "pod_patch: {metadata: {annotations: {networking.gke.io/default-interface: eth0}}, spec: {"
            "volumes: [{name: sys, hostPath: {path: /sys}}, {name: lib, emptyDir: {}}], "
            "initContainers: [{name: daemon, image: gpu-net/daemon:1, restartPolicy: Always, "
            "securityContext: {runAsUser: 0, runAsNonRoot: false, capabilities: {add: [NET_ADMIN]}}, "
            "volumeMounts: [{name: sys, mountPath: /hostsysfs}, {name: lib, mountPath: /lib64}]}], "
            "containers: [{name: trial, env: [{name: NCCL_NET, value: FasTrak}], "
            "volumeMounts: [{name: lib, mountPath: /opt/lib64, readOnly: true}]}]}}"
        ),
    },
    "cpu": {"image": "python:3.12", "resources": "gpus: 0, shm: 1GiB", "cluster": "pvc: runs"},
}


def bundles(made: Plan) -> list[JobObjects]:
    """What a plan asks of the API."""
    return [
        job_objects(made, group, RUN, CWD, number=number, caller=ME)
        for number, group in enumerate(resource_groups(made, made.trials))
    ]


def pod(bundle: JobObjects) -> dict[str, Any]:
    """The pods' spec."""
    spec: dict[str, Any] = bundle.job["spec"]["template"]["spec"]
    return spec
