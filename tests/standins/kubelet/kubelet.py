"""A node: it registers, says that it is ready, runs the pods that are bound to it, and can die.

Real: images, volumes, users, capabilities, signals, exit codes, limits of CPU and memory, names, logs. Not
real: device plugins (a GPU is only a number on the node), CSI, NetworkPolicies, probes, pods of several
containers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from urllib3.exceptions import HTTPError

from tests.standins.kubelet.log_server import LogServer
from tests.standins.kubelet.pod_life import PodLife, docker, now
from tests.support.kube_api import CORE, ApiError, KubeApi, Object

_BEAT_S = 5.0
_WATCH_S = 30


class Kubelet:
    """A node of a cluster.

    Args:
        api: an account that may write nodes and pods.
        name: of the node.
        network: docker network of its pods.
        label: KEY=VALUE, for its containers.
        logs: who answers for the logs of its pods.
        labels: of the node.
        room: more resources than CPU, memory and pods, e.g. ``{"nvidia.com/gpu": "4"}``.
    """

    def __init__(
        self,
        api: KubeApi,
        name: str,
        *,
        network: str,
        label: str,
        logs: LogServer,
        labels: Mapping[str, str] | None = None,
        room: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._api, self._network, self._label = api, network, label
        self._labels, self._room, self.logs = dict(labels or {}), dict(room or {}), logs
        self._dead = threading.Event()
        self.pods: dict[str, PodLife] = {}
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._beat, self._watch_pods)
        ]

    def start(self) -> Kubelet:
        """Register the node and begin to work."""
        names = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            **self._labels,
        }
        self._api.post(f"{CORE}/nodes", {"metadata": {"name": self.name, "labels": names}})
        self._say_ready()
        for thread in self._threads:
            thread.start()
        return self

    def die(self) -> None:
        """The machine is gone: no word comes from it any more, and nothing on it runs."""
        self._dead.set()
        for life in list(self.pods.values()):
            life.kill()

    def stop(self) -> None:
        """End without a trace: no container, no node."""
        self.die()
        for life in list(self.pods.values()):
            life.thread.join(30)
        self._api.delete(f"{CORE}/nodes/{self.name}")

    def _beat(self) -> None:
        while not self._dead.wait(_BEAT_S):
            try:
                self._say_ready()
            except (ApiError, HTTPError):
                continue  # a node that was deleted, or a server that is busy

    def _say_ready(self) -> None:
        room = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "50Gi", **self._room}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "",
            "lastHeartbeatTime": now(),
        }
        status: Object = {
            "capacity": room,
            "allocatable": room,
            "conditions": [{**ready, "lastTransitionTime": now()}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.logs.port}},
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        }
        self._api.patch(f"{CORE}/nodes/{self.name}/status", {"status": status})

    def _watch_pods(self) -> None:
        path = f"{CORE}/pods?fieldSelector=spec.nodeName%3D{self.name}"
        while not self._dead.is_set():
            try:
                listed = self._api.get(path)
                self._forget({pod["metadata"]["uid"] for pod in listed["items"]})
                for pod in listed["items"]:
                    self._see(pod)
                for kind, pod in self._api.watch(path, listed["metadata"]["resourceVersion"], _WATCH_S):
                    if self._dead.is_set():
                        return
                    if kind == "DELETED":
                        self._lose(pod["metadata"]["uid"])
                    else:
                        self._see(pod)
            except (ApiError, HTTPError, OSError):
                time.sleep(0.5)

    def _see(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self.pods:
            self.pods[uid].pod = pod
        elif pod["status"].get("phase") == "Pending":
            made = PodLife(self._api, pod, network=self._network, label=self._label, dead=self._dead)
            self.pods[uid] = made
            self.logs.containers[pod["metadata"]["namespace"], pod["metadata"]["name"]] = made.container

    def _lose(self, uid: str) -> None:
        if uid in self.pods:
            self.pods[uid].gone.set()

    def _forget(self, there: set[str]) -> None:
        """Pods that were removed while nobody watched."""
        for uid in self.pods.keys() - there:
            self._lose(uid)


def make_network(name: str, label: str) -> None:
    """A docker network in which pods find each other by name, without a way out."""
    done = docker("network", "create", "--internal", "--label", label, name)
    if done.returncode:
        raise RuntimeError(done.stderr)
