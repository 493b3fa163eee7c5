"""What a pod asks its node for."""

from __future__ import annotations

import pytest

from profrun.backends.kubernetes.probe import probe_manifest
from profrun.backends.node_probe import probe_job
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from tests.backends.kubernetes.made import ME, NGC, RUN, bundles, pod
from tests.backends.plans import plan


def asked(resources: str, cluster: str) -> dict[str, dict[str, str]]:
    """Resources of the container of a job."""
    made = plan(image=NGC, resources=resources, cluster=f"pvc: runs, vendor: nvidia, {cluster}")
    found: dict[str, dict[str, str]] = pod(bundles(made)[0])["containers"][0]["resources"]
    return found


def test_what_the_cluster_block_adds_is_requested_and_limited() -> None:
    found = asked(
        "gpus: 8, memory: 2GiB",
        "pod_resources: {rdma/ib: 1, vpc.amazonaws.com/efa: 32, hugepages-2Mi: 5120Mi}",
    )
    assert found["limits"] == {
        "memory": str(2 << 30),
        "nvidia.com/gpu": "8",
        "rdma/ib": "1",
        "vpc.amazonaws.com/efa": "32",
        "hugepages-2Mi": "5120Mi",
    }
    assert found["requests"] == found["limits"]


@pytest.mark.parametrize(
    ("name", "key"),
    [("cpu", "cpus"), ("memory", "memory"), ("nvidia.com/gpu", "gpus"), ("amd.com/gpu", "gpus")],
)
def test_what_has_a_key_of_its_own_is_refused(name: str, key: str) -> None:
    with pytest.raises(UsageError, match=rf"pod_resources has {name}, and resources\.{key} is its key"):
        asked("gpus: 1", f"pod_resources: {{{name}: 1}}")


def test_huge_pages_alone_are_refused_before_kubernetes_does() -> None:
    with pytest.raises(UsageError, match=r"has huge pages, .* set resources\.memory or resources\.cpus"):
        asked("gpus: 1", "pod_resources: {hugepages-2Mi: 1Gi}")
    found = asked("gpus: 0, cpus: 2", "pod_resources: {hugepages-2Mi: 1Gi}")
    assert found["limits"]["hugepages-2Mi"] == "1Gi"


def test_a_probe_asks_for_the_same_and_for_the_memory_that_huge_pages_need() -> None:
    further = {"rdma/ib": "1", "hugepages-2Mi": "1Gi"}
    settings = ClusterSettings(pvc="runs", vendor="nvidia", pod_resources=further)
    manifest = probe_manifest(probe_job(settings, "auto"), RUN, ME)
    limits = manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": str(4 << 30), "nvidia.com/gpu": "1", **further}
