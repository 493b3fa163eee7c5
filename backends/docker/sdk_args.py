"""A container as arguments of the docker SDK (``sdk_arguments``, pure), and its creation with the values of
secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from profrun.backends.docker.request import LOG_DRIVER, LOG_OPTIONS, Container

if TYPE_CHECKING:
    import docker


def sdk_arguments(what: Container) -> dict[str, Any]:
    """JSON-safe arguments: ``create`` for ``APIClient.create_container``, ``host_config`` for its host part.

    ``secrets`` and ``env_file`` stand there by name: ``create_container`` fills in their values.
    """
    return {
        "create": {
            "name": what.name,
            "image": what.image,
            "entrypoint": [what.argv[0]],
            "command": list(what.argv[1:]),
            "user": what.user,
            "hostname": what.hostname,
            "working_dir": what.workdir,
            "environment": dict(sorted(what.env.items())),
            "labels": dict(sorted(what.labels.items())),
            "stop_timeout": what.stop_s,
            **({"runtime": what.gpus.runtime} if what.gpus.runtime else {}),
        },
        "host_config": _host_config(what),
        "secrets": list(what.secrets),
        "env_file": what.env_file,
    }


def _host_config(what: Container) -> dict[str, Any]:
    config: dict[str, Any] = {
        "auto_remove": True,
        "init": True,
        "cap_drop": ["ALL"],
        "cap_add": list(what.cap_add),
        "security_opt": list(what.security_opt),
        "network_mode": what.network,
        "group_add": list(what.groups),
        "mounts": [
            {"Type": "bind", "Source": m.source, "Target": m.target, "ReadOnly": m.read_only}
            for m in what.mounts
        ],
        "log_config": {"Type": LOG_DRIVER, "Config": LOG_OPTIONS},
        "ulimits": [{"name": name, "soft": soft, "hard": hard} for name, soft, hard in what.ulimits],
        "device_requests": [dict(request) for request in what.gpus.device_requests],
        "devices": [f"{path}:{path}:rwm" for path in what.gpus.devices],
    }
    if what.read_only:
        config["read_only"] = True
    if what.tmpfs:
        config["tmpfs"] = dict(what.tmpfs)
    if what.shm is not None:
        config["shm_size"] = what.shm
    if what.memory is not None:
        config |= {"mem_limit": what.memory, "memswap_limit": what.memory}
    if what.cpus is not None:
        config["nano_cpus"] = what.cpus * 10**9
    return {name: value for name, value in config.items() if value not in ([], None)}


def create_container(client: docker.DockerClient, asked: Mapping[str, Any], hidden: Mapping[str, str]) -> str:
    """Create the container and return its id; nothing runs yet.

    Args:
        asked: from ``sdk_arguments``.
        hidden: values of ``secrets`` and ``env_file``.
    """
    given = dict(asked["create"])
    given["environment"] = {**hidden, **given["environment"]}
    config = client.api.create_host_config(**asked["host_config"])
    return str(client.api.create_container(**given, host_config=config)["Id"])
