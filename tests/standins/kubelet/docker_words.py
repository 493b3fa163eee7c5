"""What a pod asks for, as the words of ``docker run``. Pure.

Honoured: the container's command, arguments, folder and variables (with ``$(NAME)``), user and groups,
capabilities, privilege escalation, the read-only root file system, seccomp, limits of CPU and memory, host
network and host IPC, the claims and empty folders that it mounts, its host name, and the name that a headless
Service gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.support.kube_api import Object

_REFERENCE = re.compile(r"\$(\$|\([^()]*\))")
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Unsupported(Exception):
    """The stand-in does not know this; the pod waits with CreateContainerConfigError."""


def docker_words(
    pod: Object, env: Mapping[str, str], folders: Mapping[str, str], *, name: str, network: str, label: str
) -> list[str]:
    """``docker run`` for a pod of one container.

    Args:
        env: the container's variables, resolved.
        folders: volume -> folder of this machine; one that is missing is an ``emptyDir`` in memory.
        name: of the docker container.
        network: docker network of the pods.
        label: KEY=VALUE.

    Raises:
        Unsupported: the pod asks for something that this stand-in does not do.
    """
    spec = pod["spec"]
    if len(spec["containers"]) != 1 or spec.get("initContainers"):
        raise Unsupported("this kubelet runs pods of one container")
    (container,) = spec["containers"]
    words = ["docker", "run", "--detach", "--name", name, "--label", label]
    words += _network(pod, network)
    words += _rights(container.get("securityContext") or {}, spec.get("securityContext") or {})
    words += ["--ipc", "host"] if spec.get("hostIPC") else []
    words += _limits((container.get("resources") or {}).get("limits") or {})
    for mount in container.get("volumeMounts") or ():
        words += _mount(mount, spec, folders)
    for key, value in env.items():
        words += ["--env", f"{key}={value}"]
    if container.get("workingDir"):
        words += ["--workdir", container["workingDir"]]
    command = [expand(word, env) for word in container.get("command") or ()]
    arguments = [expand(word, env) for word in container.get("args") or ()]
    if command:
        return [*words, "--entrypoint", command[0], container["image"], *command[1:], *arguments]
    return [*words, container["image"], *arguments]


def expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` as its value if the container has it, and ``$$`` as one dollar sign."""

    def replaced(found: re.Match[str]) -> str:
        word = found[1]
        return "$" if word == "$" else env.get(word[1:-1], found[0])

    return _REFERENCE.sub(replaced, text)


def amount(quantity: Any) -> float:
    """A quantity as a number: ``500m`` is 0.5, ``1Gi`` is 1073741824."""
    text = str(quantity)
    if text[-2:] in _BINARY:
        return float(text[:-2]) * _BINARY[text[-2:]]
    if text[-1:] in _DECIMAL:
        return float(text[:-1]) * _DECIMAL[text[-1:]]
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def _network(pod: Object, network: str) -> list[str]:
    """Pods of one network find each other by the names that a headless Service would give them."""
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        return ["--network", "host"]
    host = spec.get("hostname") or pod["metadata"]["name"]
    words = ["--network", network, "--hostname", host[:63]]
    if spec.get("subdomain"):
        inside = f"{host}.{spec['subdomain']}"
        whole = f"{inside}.{pod['metadata']['namespace']}.svc.cluster.local"
        words += ["--network-alias", inside, "--network-alias", whole]
    return words


def _rights(own: Object, whole: Object) -> list[str]:
    """Of the container, else of the pod."""
    words = []
    user, group = (own.get(key, whole.get(key)) for key in ("runAsUser", "runAsGroup"))
    if user is not None:
        words += ["--user", f"{user}:{0 if group is None else group}"]
    for number in (*(whole.get("supplementalGroups") or ()), whole.get("fsGroup")):
        words += [] if number is None else ["--group-add", str(number)]
    capabilities = own.get("capabilities") or {}
    for flag, key in (("--cap-drop", "drop"), ("--cap-add", "add")):
        for capability in capabilities.get(key) or ():
            words += [flag, capability]
    if own.get("allowPrivilegeEscalation") is False:
        words += ["--security-opt", "no-new-privileges"]
    seccomp = own.get("seccompProfile") or whole.get("seccompProfile") or {"type": "Unconfined"}
    if seccomp["type"] == "Unconfined":
        words += ["--security-opt", "seccomp=unconfined"]
    if own.get("readOnlyRootFilesystem"):
        words += ["--read-only"]
    return words


def _limits(limits: Object) -> list[str]:
    """Other resources, such as GPUs, are only counted by the scheduler."""
    words = []
    if "cpu" in limits:
        words += ["--cpus", str(amount(limits["cpu"]))]
    if "memory" in limits:
        words += ["--memory", str(int(amount(limits["memory"])))]
    return words


def _mount(mount: Object, spec: Object, folders: Mapping[str, str]) -> list[str]:
    volume = next(item for item in spec["volumes"] if item["name"] == mount["name"])
    target, folder = mount["mountPath"], folders.get(mount["name"])
    if folder is not None:
        source = f"{folder}/{mount['subPath']}" if mount.get("subPath") else folder
        return ["--volume", f"{source}:{target}" + (":ro" if mount.get("readOnly") else "")]
    limit = volume["emptyDir"].get("sizeLimit")
    size = f",size={int(amount(limit))}" if limit else ""
    return ["--tmpfs", f"{target}:rw,exec,nosuid,nodev,mode=1777{size}"]
