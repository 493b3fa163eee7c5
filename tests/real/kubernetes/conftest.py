"""A real control plane; for each test a namespace, nodes and an account with the rights that docs list."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, SHARED, missing, need_tool
from tests.standins.kubelet.kubelet import Kubelet, make_network
from tests.standins.kubelet.log_server import LogServer
from tests.standins.kubelet.pod_life import docker
from tests.support.containers import Cli, build_cuda, engine, own, standin
from tests.support.control_plane import LABEL, control_plane
from tests.support.kube_api import CORE, KubeApi, Object

__all__ = ["engine", "standin"]

NODE_LABEL = "profrun.test/nodes"
_RIGHT = re.compile(r"^\| (?P<resources>`[^|]+) \| (?P<verbs>[a-z, ]+)[;|]", re.MULTILINE)
_RESOURCE = re.compile(r"`([a-z/]+)`(?: \(([a-z.0-9]+)\))?")


@dataclass(frozen=True)
class Plane:
    """A running control plane.

    Attributes:
        api: its administrator.
        label: of everything that is made with docker.
    """

    api: KubeApi
    label: str


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """etcd, API server, controllers and scheduler; test processes that run side by side share them."""
    for tool in ("etcd", "openssl", "curl", "xz", "docker", "flock"):
        need_tool(tool)
    if os.geteuid() != 0:
        missing("root, which starts the control plane")
    scripts = SHARED / "kubernetes"
    if not (scripts / "kube.xz").exists():
        missing(str(scripts / "kube.xz"))
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "control-plane"
    with control_plane(scripts, folder) as api:
        yield Plane(api, f"{LABEL}={folder}")


@pytest.fixture(scope="session")
def image(standin: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Our cuda image on the stand-in base, under the name that only its content has."""
    return build_cuda(standin, tmp_path_factory.mktemp("build"))


@dataclass
class Desk:
    """A user with a namespace, a claim that is their folder, an account and some nodes.

    Attributes:
        folder: the claim's root, from which jobs are submitted.
        image: for ``spec``.
        cluster: the job's cluster block.
    """

    plane: Plane
    namespace: str
    folder: Path
    cli: Cli
    image: str
    cluster: dict[str, Any]
    nodes: list[Kubelet] = field(default_factory=list)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Of the namespace."""
        return f"{CORE}/namespaces/{self.namespace}"

    @property
    def jobs_path(self) -> str:
        """Of the namespace's Jobs."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    def spec(self, command: str, rest: str, **cluster: Any) -> str:
        """A job; ``cluster`` is added to the cluster block."""
        block = json.dumps({**self.cluster, **cluster})
        text = f"name: tiny\nimage: {self.image}\ncommand: {command}\n{rest}\ncluster: {block}\n"
        self.cli.write("job.yaml", text)
        return text

    def start(self, *more: str) -> subprocess.Popen[str]:
        """``profrun submit job.yaml``, in a process group of its own."""
        return self.begin("submit", "job.yaml", "--backend", "kubernetes", *more)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """``profrun ...``; its output is in files, so that nobody must read it meanwhile."""
        number = len(self.processes)
        with (self.folder / f"out{number}").open("w") as out, (self.folder / f"err{number}").open("w") as err:
            process = subprocess.Popen(
                self.cli.argv(*words),
                cwd=self.folder,
                env=self.cli.environ(),
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def said(self, process: subprocess.Popen[str]) -> str:
        """What it printed so far, with its errors."""
        number = self.processes.index(process)
        return (self.folder / f"out{number}").read_text() + (self.folder / f"err{number}").read_text()

    def finish(self, process: subprocess.Popen[str], seconds: float = 600) -> Object:
        """What ``--json`` says when it has ended, its exit code, and what failed trials printed."""
        process.wait(seconds)
        text = (self.folder / f"out{self.processes.index(process)}").read_text()
        assert text, self.said(process)
        value: Object = json.loads(text)
        said = self.said(process) + _printed(value)
        return {**value, "exit_code": process.returncode, "said": said}

    def submit(self, command: str, rest: str, **cluster: Any) -> Object:
        """Submit to the end."""
        self.spec(command, rest, **cluster)
        return self.finish(self.start("--json"))

    def run_folder(self) -> Path:
        """The only run's folder."""
        (found,) = (self.folder / "runs").iterdir()
        return found

    def trial_folders(self) -> list[Path]:
        """Of the only run, in order."""
        return sorted((self.run_folder() / "trials").iterdir())

    def jobs(self) -> list[Object]:
        """The namespace's Jobs."""
        return self.plane.api.items(self.jobs_path)

    def pods(self) -> list[Object]:
        """The namespace's pods."""
        return self.plane.api.items(f"{self.path}/pods")

    def containers(self) -> list[str]:
        """Names of the containers that run for the namespace."""
        listed = docker("ps", "--filter", f"network={self.namespace}", "--format", "{{.Names}}")
        return listed.stdout.split()

    def add_node(self, room: Mapping[str, str] | None = None) -> Kubelet:
        """One more node."""
        logs = self.nodes[0].logs if self.nodes else LogServer(self.folder.parent)
        made = Kubelet(
            self.plane.api,
            f"{self.namespace}-{len(self.nodes)}",
            network=self.namespace,
            label=self.plane.label,
            labels={NODE_LABEL: self.namespace},
            room=room,
            logs=logs,
        )
        self.nodes.append(made.start())
        return made

    def close(self) -> None:
        """End what was started."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for node in self.nodes:
            node.stop()
        if self.nodes:
            self.nodes[0].logs.close()
        self.plane.api.delete(self.path)
        docker("network", "rm", self.namespace)


def _printed(document: Object) -> str:
    """The end of what the trials of a run printed that did not finish."""
    names = [trial["trial"] for trial in document.get("trials", ()) if trial["state"] != "finished"]
    logs = [log for name in names for log in sorted(Path(document["path"], "trials", name).glob("std*.log"))]
    return "".join(f"\n== {log}\n{log.read_text()[-2000:]}" for log in logs)


@pytest.fixture
def desk(plane: Plane, image: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A namespace that enforces Pod Security ``restricted``, with two nodes of its own.

    The account has the rights of docs/kubernetes.md and no other.
    """
    namespace = f"t-{uuid.uuid4().hex[:8]}"
    folder = tmp_path / "claim"
    folder.mkdir()
    own(folder)
    token = make_namespace(plane.api, namespace, folder)
    account = KubeApi(plane.api.server, plane.api.authority, token)
    cli = Cli(folder, engine=False)
    cli.env["KUBECONFIG"] = str(cli.write("kubeconfig", account.kubeconfig(namespace)))
    cluster = {"pvc": "runs", "shared": str(folder), "node_selector": {NODE_LABEL: namespace}}
    make_network(namespace, plane.label)
    made = Desk(plane, namespace, folder, cli, image, cluster)
    try:
        for _ in range(2):
            made.add_node()
        yield made
    finally:
        made.close()


def make_namespace(api: KubeApi, name: str, folder: Path, level: str = "restricted") -> str:
    """A namespace with a claim ``runs``, and a token of an account that has the documented rights in it."""
    path = f"{CORE}/namespaces/{name}"
    labels = {"pod-security.kubernetes.io/enforce": level}
    api.post(f"{CORE}/namespaces", {"metadata": {"name": name, "labels": labels}})
    storage = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {"hostPath": {"path": str(folder)}, "claimRef": {"namespace": name, "name": "runs"}}
    api.post(
        f"{CORE}/persistentvolumes",
        {"metadata": {"name": name}, "spec": {**storage, **volume, "capacity": {"storage": "10Gi"}}},
    )
    wanted = {"volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
    api.post(
        f"{path}/persistentvolumeclaims",
        {"metadata": {"name": "runs"}, "spec": {**storage, **wanted}},
    )
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}"
    api.post(f"{path}/serviceaccounts", {"metadata": {"name": "profrun"}})
    api.post(f"{rights}/roles", {"metadata": {"name": "profrun"}, "rules": documented_rules()})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "profrun"}
    subject = {"kind": "ServiceAccount", "name": "profrun", "namespace": name}
    api.post(
        f"{rights}/rolebindings", {"metadata": {"name": "profrun"}, "roleRef": role, "subjects": [subject]}
    )
    asked = api.post(f"{path}/serviceaccounts/profrun/token", {"spec": {"expirationSeconds": 7200}})
    return str(asked["status"]["token"])


def documented_rules() -> list[Object]:
    """The table of docs/kubernetes.md as the rules of a Role."""
    text = (ROOT / "docs/kubernetes.md").read_text().partition("## Rights that the account needs")[2]
    text = text.partition("\n## ")[0]
    rules: list[Object] = []
    for row in _RIGHT.finditer(text):
        for resource, group in _RESOURCE.findall(row["resources"]):
            verbs = [verb.strip() for verb in row["verbs"].split(",")]
            rules.append({"apiGroups": [group], "resources": [resource], "verbs": verbs})
    return rules
