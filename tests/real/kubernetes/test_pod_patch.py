"""Patches and keys of the cluster block on a real API server: taken, merged as it merges, in the pod."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.kubernetes.strategic_merge import MERGE_KEYS, merge
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from tests.backends.kubernetes.made import CASES, NGC, bundles
from tests.backends.plans import plan
from tests.conftest import ROOT
from tests.real.kubernetes.conftest import Desk, Plane, make_namespace
from tests.real.kubernetes.test_runs import ends
from tests.support.containers import CALLER_UID
from tests.support.kube_api import CORE, ApiError, Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

SAYS = """
import json, os
open("said.json", "w").write(json.dumps({"groups": os.getgroups(), "net": os.environ.get("NCCL_NET")}))
"""
RIGHTS = """
import json, os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
open("said.json", "w").write(json.dumps({
    "user": os.getresuid(),
    "groups": os.getgroups(),
    "capabilities": {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")},
    "no new privileges": status["NoNewPrivs"],
    "ipc": os.readlink("/proc/self/ns/ipc"),
}))
"""
IPC_LOCK = 1 << 14
"""CAP_IPC_LOCK of linux/capability.h."""
SIDECAR = {"name": "net", "image": "net:1", "restartPolicy": "Always"}
PATCHES: list[dict[str, Any]] = [
    {},
    {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}},
    {"spec": {"nodeSelector": {"disk": "nvme"}, "enableServiceLinks": None, "dnsPolicy": "Default"}},
    {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}], "hostAliases": [{"ip": "10.0.0.1"}]}},
    {"spec": {"volumes": [{"name": "lib", "emptyDir": {}}, {"name": "tmp", "emptyDir": {"medium": None}}]}},
    {
        "spec": {
            "initContainers": [{**SIDECAR, "env": [{"name": "A", "value": "1"}]}],
            "containers": [
                {
                    "name": "trial",
                    "env": [{"name": "NCCL_NET", "value": "x"}, {"name": "USER", "value": "y"}],
                    "ports": [{"containerPort": 29500, "name": "meet"}],
                    "resources": {"limits": {"rdma/ib": "1"}, "requests": {"rdma/ib": "1"}},
                    "securityContext": {"runAsGroup": None, "capabilities": {"add": ["IPC_LOCK"]}},
                    "volumeMounts": [{"mountPath": "/dev/shm", "$patch": "delete"}],
                }
            ],
        }
    },
    {
        "spec": {
            "topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 3}],
            "affinity": {"podAffinity": None},
        }
    },
]


@pytest.fixture
def namespace(plane: Plane, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Makes a namespace of a Pod Security level; returns its name."""
    made: list[str] = []

    def make(level: str) -> str:
        made.append(f"t-{uuid.uuid4().hex[:8]}")
        make_namespace(plane.api, made[-1], tmp_path, level)
        return made[-1]

    yield make
    for name in made:
        plane.api.delete(f"{CORE}/namespaces/{name}")


def test_a_patch_gives_what_the_servers_own_merge_gives(
    plane: Plane, namespace: Callable[[str], str]
) -> None:
    """Compared as PodTemplates in the server, which fills both up with the same defaults."""
    path = f"{CORE}/namespaces/{namespace('restricted')}/podtemplates"
    base = bundles(plan(**CASES["rdma"]))[0].job["spec"]["template"]
    for number, patch in enumerate(PATCHES):
        plane.api.post(path, {"metadata": {"name": f"theirs{number}"}, "template": base})
        theirs = plane.api.patch(f"{path}/theirs{number}", {"template": patch})
        merged = {"metadata": {"name": f"ours{number}"}, "template": merge(base, patch)}
        ours = plane.api.post(path, merged)
        assert in_order(ours["template"]) == in_order(theirs["template"]), patch
        assert not patch or in_order(ours["template"]) != in_order(base)


def in_order(value: Any, field: str = "") -> Any:
    """Lists that have a merge key in its order: the server puts new items first, and we put them last."""
    if isinstance(value, dict):
        return {key: in_order(item, key) for key, item in value.items()}
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        key = MERGE_KEYS.get(field)
        return sorted(items, key=lambda item: str(item[key])) if key else items
    return value


def test_keys_and_a_patch_are_in_the_pod_under_restricted(desk: Desk) -> None:
    desk.add_node({"rdma/ib": "1", "hugepages-2Mi": "64Mi"})
    desk.cli.write("says.py", SAYS)
    document = desk.submit(
        "python says.py",
        "collectors: [none]\nresources: {gpus: 0, timeout: 60s, grace: 5s, memory: 1GiB}",
        pod_resources={"rdma/ib": 1, "hugepages-2Mi": "2Mi"},
        fs_group=2000,
        supplemental_groups=[3000],
        scheduler_name="default-scheduler",
        affinity={"podAntiAffinity": {}},
        topology_spread=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        pod_patch={
            "metadata": {"annotations": {"site/note": "x"}},
            "spec": {
                "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["license"]}],
                "containers": [{"name": "trial", "env": [{"name": "NCCL_NET", "value": "FasTrak"}]}],
            },
        },
    )
    assert ends(document) == [("finished", None)], document["said"]
    said = json.loads((desk.folder / "said.json").read_text())
    assert said["net"] == "FasTrak"
    assert {2000, 3000} <= set(said["groups"])
    (pod,) = desk.pods()
    assert pod["spec"]["nodeName"] == desk.nodes[-1].name  # no other has an rdma/ib
    assert pod["metadata"]["annotations"]["site/note"] == "x"
    assert pod["spec"]["hostAliases"] == [{"ip": "10.0.0.9", "hostnames": ["license"]}]


def test_a_program_that_may_lock_memory_is_the_caller_and_has_nothing_else(desk: Desk) -> None:
    """The container starts as root; `setpriv` of the image becomes the caller and keeps one capability."""
    label = {"pod-security.kubernetes.io/enforce": "privileged"}
    desk.plane.api.patch(desk.path, {"metadata": {"labels": label}})
    desk.cli.write("says.py", RIGHTS)
    document = desk.submit(
        "python says.py",
        "collectors: [none]\nresources: {gpus: 0, timeout: 60s, grace: 5s}",
        ipc_lock=True,
        host_ipc=True,
        fs_group=2000,
    )
    assert ends(document) == [("finished", None)], document["said"]
    assert json.loads((desk.folder / "said.json").read_text()) == {
        "user": [CALLER_UID] * 3,
        "groups": [2000],
        "capabilities": {"CapEff": IPC_LOCK, "CapPrm": IPC_LOCK, "CapBnd": IPC_LOCK},
        "no new privileges": "1",
        "ipc": str(Path("/proc/self/ns/ipc").readlink()),
    }


def documented(what: str) -> str:
    """An example of the page: the YAML block of the section that has these words."""
    text = (ROOT / "docs/kubernetes.md").read_text().partition("## The fast network")[2].partition("\n## ")[0]
    (found,) = [block for block in text.split("```yaml\n")[1:] if what in block.partition("```")[0]]
    return found.partition("```")[0]


@pytest.mark.parametrize(
    ("what", "level"),
    [("rdma/ib", "restricted"), ("vpc.amazonaws.com/efa", "restricted"), ("network-daemon", "privileged")],
)
def test_the_examples_of_the_page_are_taken(
    plane: Plane, namespace: Callable[[str], str], what: str, level: str
) -> None:
    """The Job by the server's strict dry run, and its pods by Pod Security, which does not judge Jobs."""
    text = f"name: net\nimage: {NGC}\ncommand: torchrun work.py\n{documented(what)}"
    for bundle in bundles(make_plan(load_text(text))):
        assert accepted(plane, namespace(level), bundle.job) is None
        refused = accepted(plane, namespace("restricted"), bundle.job)
        assert (refused is None) == (level == "restricted")
        assert refused is None or "violates PodSecurity" in refused


def accepted(plane: Plane, namespace: str, job: Object) -> str | None:
    """Why the server does not take the pods of a Job that it takes; None: it takes them."""
    strict = "?dryRun=All&fieldValidation=Strict"
    plane.api.post(f"/apis/batch/v1/namespaces/{namespace}/jobs{strict}", job)
    template = job["spec"]["template"]
    pod = {"metadata": {**template["metadata"], "name": "one"}, "spec": template["spec"]}
    try:
        plane.api.post(f"{CORE}/namespaces/{namespace}/pods{strict}", pod)
    except ApiError as error:
        return str(error)
    return None
