"""The life of one pod on a node: its volumes, its container, its end, and what the kubelet says of each."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.standins.kubelet.docker_words import Unsupported, docker_words, expand
from tests.support.kube_api import CORE, ApiError, KubeApi, Object

_AGAIN_S = 0.5


class PodLife:
    """A pod that is bound to the node.

    Args:
        api: as which states are written.
        pod: as the node first sees it.
        network, label: as ``docker_words`` has them.
        dead: set when the node dies: from then on nothing is written any more.
    """

    def __init__(self, api: KubeApi, pod: Object, *, network: str, label: str, dead: threading.Event) -> None:
        self._api, self._network, self._label, self._dead = api, network, label, dead
        self.pod = pod
        self.gone = threading.Event()
        """Set when the API server no longer has the pod."""
        self.container = f"k8s_{pod['metadata']['uid']}"
        self._path = f"{CORE}/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._scratch = tempfile.TemporaryDirectory(prefix="kubelet-", ignore_cleanup_errors=True)
        self._started: str | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def _deleted(self) -> bool:
        return self.gone.is_set() or bool(self.pod["metadata"].get("deletionTimestamp"))

    def _run(self) -> None:
        try:
            if self._start():
                self._tell("Running", {"running": {"startedAt": self._started}}, ready=True)
                self._follow()
            elif not self._dead.is_set():
                self._end({"exitCode": 137, "reason": "ContainerStatusUnknown"})
        finally:
            docker("rm", "--force", "--volumes", self.container)
            self._scratch.cleanup()

    def kill(self) -> None:
        """The node has died: the container is gone without a word."""
        docker("kill", self.container)

    def _start(self) -> bool:
        """Until the container runs; False when the pod is to be deleted before that."""
        told: tuple[str, str] | None = None
        while not self._deleted and not self._dead.is_set():
            try:
                self._make_container()
                self._started = now()
                return True
            except Waits as why:
                if told != why.args:
                    told = why.args
                    self._tell("Pending", {"waiting": {"reason": told[0], "message": told[1]}}, ready=False)
            time.sleep(_AGAIN_S)
        return False

    def _make_container(self) -> None:
        spec = self.pod["spec"]["containers"][0]
        if docker("image", "inspect", spec["image"]).returncode:
            raise Waits("ErrImagePull", f"{spec['image']} is not on this node, and there is no registry")
        try:
            words = docker_words(
                self.pod,
                self._env(spec),
                self._folders(),
                name=self.container,
                network=self._network,
                label=self._label,
            )
        except Unsupported as error:
            raise Waits("CreateContainerConfigError", str(error)) from None
        except ApiError as error:
            raise Waits("CreateContainerConfigError", f"{error}") from None
        rights = spec.get("securityContext") or {}
        if rights.get("runAsNonRoot") and not rights.get("runAsUser"):
            raise Waits("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            docker("rm", "--force", self.container)
            raise Waits("RunContainerError", done.stderr.strip()[-300:])

    def _env(self, spec: Object) -> dict[str, str]:
        """The container's variables; in a value ``$(NAME)`` is a variable that stands before it."""
        found: dict[str, str] = {}
        for source in spec.get("envFrom") or ():
            secret = self._api.get(f"{self._namespace}/secrets/{source['secretRef']['name']}")
            for key, value in (secret.get("data") or {}).items():
                found[key] = base64.b64decode(value).decode()
        for item in spec.get("env") or ():
            if "valueFrom" in item:
                found[item["name"]] = self._field(item["valueFrom"])
            else:
                found[item["name"]] = expand(item.get("value", ""), found)
        return found

    @property
    def _namespace(self) -> str:
        return self._path.partition("/pods/")[0]

    def _field(self, source: Object) -> str:
        """A field of the pod: ``metadata.uid``, ``spec.nodeName``, ``metadata.annotations['key']``."""
        if "fieldRef" not in source:
            raise Unsupported(f"a variable from {', '.join(source)}")
        path = source["fieldRef"]["fieldPath"]
        where, _, key = path.partition("[")
        value: Any = self.pod
        for part in where.split("."):
            value = (value or {}).get(part)
        if key:
            value = (value or {}).get(key.strip("'\"]"))
        return str(value or "")

    def _folders(self) -> dict[str, str]:
        """Volume -> folder of this machine; an ``emptyDir`` in memory has none."""
        found = {}
        for volume in self.pod["spec"].get("volumes") or ():
            if "persistentVolumeClaim" in volume:
                name = volume["persistentVolumeClaim"]["claimName"]
                claim = self._api.get(f"{self._namespace}/persistentvolumeclaims/{name}")
                bound = self._api.get(f"{CORE}/persistentvolumes/{claim['spec']['volumeName']}")
                found[volume["name"]] = bound["spec"]["hostPath"]["path"]
            elif "emptyDir" in volume:
                if (volume["emptyDir"] or {}).get("medium") != "Memory":
                    folder = Path(self._scratch.name) / volume["name"]
                    folder.mkdir(exist_ok=True)
                    folder.chmod(0o777)
                    found[volume["name"]] = str(folder)
            else:
                kinds = ", ".join(key for key in volume if key != "name")
                raise Unsupported(f"this kubelet has no volumes of the kind {kinds}")
        return found

    def _follow(self) -> None:
        """Until the container has ended, by itself or because it must."""
        waiting = subprocess.Popen(
            ["docker", "wait", self.container], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        deadline = time.monotonic() + limit if limit else None
        late, asked = False, None
        while waiting.poll() is None:
            if self._dead.is_set():
                self.kill()
            late = late or (deadline is not None and time.monotonic() > deadline)
            grace = self._grace(late=late)
            if grace is not None and (asked is None or grace < asked):
                asked = grace
                stop = ["stop", "--time", str(grace), self.container]
                stop = stop if grace else ["kill", self.container]
                threading.Thread(target=docker, args=stop, daemon=True).start()
            time.sleep(0.1)
        if not self._dead.is_set():
            self._end(self._terminated(), late=late)

    def _grace(self, *, late: bool) -> int | None:
        """Seconds between SIGTERM and SIGKILL, once the pod must end."""
        if self.gone.is_set():
            return 0
        if self.pod["metadata"].get("deletionTimestamp"):
            return int(self.pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        return int(self.pod["spec"].get("terminationGracePeriodSeconds") or 30) if late else None

    def _terminated(self) -> Object:
        state = json.loads(docker("inspect", "--format", "{{json .State}}", self.container).stdout or "{}")
        code = int(state.get("ExitCode", 137))
        reason = "OOMKilled" if state.get("OOMKilled") else "Error" if code else "Completed"
        return {"exitCode": code, "reason": reason, "startedAt": self._started, "finishedAt": now()}

    def _end(self, terminated: Object, *, late: bool = False) -> None:
        """The last state, which stays as long as the pod's object; then the object goes, if it is to go."""
        said = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than allowed"}
        phase = "Succeeded" if terminated["exitCode"] == 0 and not late else "Failed"
        self._tell(phase, {"terminated": terminated}, ready=False, **(said if late else {}))
        while not self._deleted and not self._dead.is_set():
            time.sleep(0.1)  # the container's log stays until then
        if not self._dead.is_set() and not self.gone.is_set():
            self._api.delete(self._path, grace=0)

    def _tell(self, phase: str, state: Object, *, ready: bool, **more: str) -> None:
        """Write the pod's status."""
        spec = self.pod["spec"]["containers"][0]
        container = {
            "name": spec["name"],
            "image": spec["image"],
            "ready": ready,
            "restartCount": 0,
            "state": state,
        }
        container["imageID"] = docker("image", "inspect", "--format", "{{.Id}}", spec["image"]).stdout.strip()
        condition = {"status": str(ready), "lastTransitionTime": now()}
        status = {
            "phase": phase,
            "hostIP": "127.0.0.1",
            "startTime": self._started or now(),
            "containerStatuses": [container],
            "conditions": [{"type": kind, **condition} for kind in ("Ready", "ContainersReady")],
            **more,
        }
        try:
            self._api.patch(f"{self._path}/status", {"status": status})
        except ApiError as error:
            if error.status != 404:
                raise


class Waits(Exception):
    """The container cannot be made yet: reason and message."""


def docker(*words: str) -> subprocess.CompletedProcess[str]:
    """One call of docker's command line."""
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False)


def now() -> str:
    """The time as Kubernetes writes it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
