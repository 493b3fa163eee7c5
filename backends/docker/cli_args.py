"""The same container as a `docker run` line that a person can paste into a shell. Pure."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator
from typing import Any

from profrun.backends.docker.request import LOG_DRIVER, LOG_OPTIONS, Container
from profrun.backends.mounts import Mount


def docker_run(what: Container) -> str:
    """A shell command, one option a line. Secrets stand there by name only: the shell must have them set."""
    words = [shlex.join(group) for group in _words(what)]
    return " \\\n  ".join(["docker run", *words])


def _words(what: Container) -> Iterator[tuple[str, ...]]:
    yield from (("--rm",), ("--init",), ("--name", what.name), ("--hostname", what.hostname))
    yield ("--user", what.user)
    yield from (("--group-add", str(gid)) for gid in what.groups)
    yield ("--cap-drop", "ALL")
    yield from (("--cap-add", name) for name in what.cap_add)
    yield from (("--security-opt", option) for option in what.security_opt)
    yield ("--network", what.network)
    yield from _resources(what)
    yield from _gpus(what)
    yield from (("--label", f"{name}={value}") for name, value in sorted(what.labels.items()))
    yield from (("--env", f"{name}={value}") for name, value in sorted(what.env.items()))
    if what.env_file:
        yield ("--env-file", what.env_file)
    yield from (("--env", name) for name in what.secrets)
    yield from (("--mount", mount_field(mount)) for mount in what.mounts)
    yield ("--workdir", what.workdir)
    yield ("--entrypoint", what.argv[0])
    yield (what.image,)
    yield what.argv[1:]


def _resources(what: Container) -> Iterator[tuple[str, ...]]:
    if what.read_only:
        yield ("--read-only",)
    yield from (("--tmpfs", f"{folder}:{options}") for folder, options in what.tmpfs.items())
    if what.shm is not None:
        yield ("--shm-size", str(what.shm))
    if what.memory is not None:
        yield ("--memory", str(what.memory), "--memory-swap", str(what.memory))
    if what.cpus is not None:
        yield ("--cpus", str(what.cpus))
    yield from (("--ulimit", f"{name}={soft}:{hard}") for name, soft, hard in what.ulimits)
    yield ("--log-driver", LOG_DRIVER)
    yield from (("--log-opt", f"{name}={value}") for name, value in LOG_OPTIONS.items())
    yield ("--stop-timeout", str(what.stop_s))


def _gpus(what: Container) -> Iterator[tuple[str, ...]]:
    for request in what.gpus.device_requests:
        yield from _device_request(request)
    yield from (("--device", path) for path in what.gpus.devices)
    if what.gpus.runtime:
        yield ("--runtime", what.gpus.runtime)


def _device_request(request: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """CDI devices go to --device; the others to --gpus, which reads its value as one line of CSV."""
    if request.get("driver") == "cdi":
        yield from (("--device", name) for name in request["device_ids"])
        return
    wanted = [name for name in request["capabilities"][0] if name != "gpu"]
    yield ("--gpus", _csv(f"device={','.join(request['device_ids'])}", f"capabilities={','.join(wanted)}"))


def mount_field(mount: Mount) -> str:
    """The value of --mount, which is one line of CSV too: paths may hold commas and quotes."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return _csv(*fields, *(["readonly"] if mount.read_only else []))


def _csv(*fields: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(fields)
    return buffer.getvalue()
