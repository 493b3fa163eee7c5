"""What a pod asks its node for."""

from __future__ import annotations

import pytest

from profrun.errors import UsageError
from tests.backends.kubernetes.made import NGC, bundles, pod
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
    with pytest.raises(UsageError, match=r"hugepages-2Mi, .* set resources\.memory or resources\.cpus"):
        asked("gpus: 1", "pod_resources: {hugepages-2Mi: 1Gi}")
    assert (
        asked("gpus: 0, cpus: 2", "pod_resources: {hugepages-2Mi: 1Gi}")["limits"]["hugepages-2Mi"] == "1Gi"
    )
