"""The container engine: ``connect`` finds it, ``explain`` says what its errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.errors import FailedError, ProfrunError, UnavailableError

if TYPE_CHECKING:
    import docker

_DEFAULT = "unix:///var/run/docker.sock"
TIMEOUT_S = 120
"""How long one answer of the engine may take, seconds. Builds and logs are streams and not bound by it."""


def connect(*, timeout: float = TIMEOUT_S) -> docker.DockerClient:
    """A client of the engine that the ``docker`` command would use: $DOCKER_HOST, else the current context.

    Raises:
        UnavailableError: no engine answers, or this user may not talk to it.
    """
    where = engine_address()
    if where.startswith("unix://"):
        _try_socket(where.removeprefix("unix://"))
    import docker  # only now: it takes longer than a dry run without an engine does

    with docker_errors("the container engine cannot be reached", where=where):
        # from_env also takes the TLS settings of the environment
        in_env = bool(os.environ.get("DOCKER_HOST"))
        client = (
            docker.from_env(timeout=int(timeout))
            if in_env
            else docker.DockerClient(where, timeout=int(timeout))
        )
        client.ping()
    return client


def engine_address() -> str:
    """Address of the engine that the ``docker`` command would use."""
    return os.environ.get("DOCKER_HOST") or _context_host() or _DEFAULT


def _try_socket(path: str) -> None:
    """Connect once before the SDK does, which leaves a socket open when there is no engine."""
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(5.0)
        try:
            trial.connect(path)
        except OSError as error:
            raise _no_engine(error, path) from error


def _context_host() -> str | None:
    """The socket of the current docker context; None for the default one or when it cannot be read."""
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path("~/.docker").expanduser())
    if not os.environ.get("DOCKER_CONTEXT") and not (folder / "config.json").is_file():
        return None
    with contextlib.suppress(Exception):  # a broken context file: the default socket is tried instead
        from docker.context import ContextAPI

        context = ContextAPI.get_current_context()
        if context.name != "default":
            return str(context.Host) or None
    return None


@contextlib.contextmanager
def docker_errors(what: str, *, where: str | None = None) -> Iterator[None]:
    """Turns every error of the docker SDK inside into one of ``profrun.errors``.

    Args:
        what: what did not work, as the beginning of a sentence.
        where: the engine's address, for the message.

    Raises:
        UnavailableError: the engine, an image, a device or a permission is not there.
        FailedError: the engine tried and failed.
    """
    import docker.errors
    import requests.exceptions

    try:
        yield
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise explain(error, what, where=where) from error


def explain(error: BaseException, what: str, *, where: str | None = None) -> ProfrunError:
    """What an exception of the docker SDK means, with its likely reason and what to do.

    Args:
        error: what the SDK raised.
        what: what did not work, as the beginning of a sentence.
        where: the engine's address, for the message.
    """
    os_error = _os_error(error)
    if os_error is not None:
        return _no_engine(os_error, where)
    text = _engine_text(error)
    for pattern, make in _KNOWN:
        found = re.search(pattern, text, re.IGNORECASE | re.DOTALL)
        if found:
            return make(what, text, found)
    if "timed out" in text.lower():
        return UnavailableError(
            what, why="the engine did not answer in time", fix="look at the engine's log, then try again"
        )
    return FailedError(what, why=one_line(text))


def one_line(text: str, limit: int = 300) -> str:
    """Whitespace folded, cut to ``limit`` characters, without a full stop."""
    folded = " ".join(text.split()).rstrip(".")
    return folded if len(folded) <= limit else folded[: limit - 3] + "..."


def _engine_text(error: BaseException) -> str:
    explanation = getattr(error, "explanation", None)
    if isinstance(explanation, bytes):
        explanation = explanation.decode(errors="replace")
    return str(explanation or error)


def _os_error(error: BaseException | None) -> OSError | None:
    """The OSError of a failed connection, however deep requests and urllib3 wrapped it."""
    seen: set[int] = set()
    queue: list[Any] = [error]
    while queue:
        item = queue.pop()
        if id(item) in seen or not isinstance(item, BaseException):
            continue
        seen.add(id(item))
        if isinstance(item, (FileNotFoundError, PermissionError, ConnectionError)) and item.errno is not None:
            return item
        queue += [item.__cause__, item.__context__, *item.args, getattr(item, "reason", None)]
    return None


def _no_engine(error: OSError, where: str | None) -> UnavailableError:
    at = where or _DEFAULT
    if error.errno in (errno.EACCES, errno.EPERM):
        return UnavailableError(
            f"this user may not talk to the container engine at {at}",
            why="permission denied on its socket",
            fix="add the user to the group that owns the socket (often docker) and log in again,"
            " or use a rootless engine and set DOCKER_HOST",
        )
    return UnavailableError(
        f"no container engine answers at {at}",
        why=os.strerror(error.errno) if error.errno else str(error),
        fix="start Docker (or Podman with its socket), or set DOCKER_HOST",
    )


_Make = Callable[[str, str, "re.Match[str]"], ProfrunError]


def _known(pattern: str, cls: type[ProfrunError], why: str, fix: str) -> tuple[str, _Make]:
    """One row of the table: ``why`` and ``fix`` may use the pattern's groups as {1}, {2}."""

    def make(what: str, text: str, found: re.Match[str]) -> ProfrunError:
        words = [one_line(text), *(group or "" for group in found.groups())]
        return cls(what, why=why.format(*words), fix=fix.format(*words))

    return pattern, make


_KNOWN: tuple[tuple[str, _Make], ...] = (
    _known(
        r"no space left on device|disk quota exceeded",
        UnavailableError,
        "the engine's disk is full",
        "free space (`docker system df` shows what uses it, `docker image prune` removes unused images)",
    ),
    _known(
        r'could not select device driver "(?:nvidia)?" with capabilities',
        UnavailableError,
        "the engine has no NVIDIA container toolkit",
        "install nvidia-container-toolkit, run `nvidia-ctk runtime configure`, restart Docker",
    ),
    _known(
        r'could not select device driver "?cdi|CDI.*(?:not enabled|disabled|not supported)',
        UnavailableError,
        "this engine does not know CDI devices",
        "use Docker 25 or later with CDI switched on in daemon.json, or remove the CDI specification",
    ),
    _known(
        r"unresolvable CDI devices? ([^\s:]+)",
        UnavailableError,
        "the CDI specification has no device {1}",
        "make it anew: `nvidia-ctk cdi generate` or `amd-ctk cdi generate`",
    ),
    _known(
        r"nvidia-container-cli|nvml error|libnvidia-ml",
        UnavailableError,
        "the NVIDIA driver or toolkit refused: {0}",
        "run `nvidia-smi` on the host; driver and toolkit must both work there",
    ),
    _known(
        r'gathering device information while adding custom device "([^"]+)"',
        UnavailableError,
        "this host has no device {1}",
        "ask for no GPU (resources: {{gpus: 0}}) or run where the device is",
    ),
    _known(
        r"(?:bind source path does not exist|bind mount source).*?:? *(/\S+)?",
        UnavailableError,
        "a folder to mount does not exist on the engine's machine: {0}",
        "correct `mounts` in the job; with a remote engine, paths are those of its machine",
    ),
    _known(
        r"unknown or invalid runtime name: (\S+)",
        UnavailableError,
        "the engine has no runtime {1}",
        "configure it in daemon.json and restart Docker",
    ),
    _known(
        r"unknown capability: \"?(\w+)",
        UnavailableError,
        "this engine is too old to know the capability {1}",
        "use Docker 23 or later, or set the host permission that `profrun doctor` names instead",
    ),
    _known(
        r'exec: "([^"]+)".*(?:not found|no such file)',
        UnavailableError,
        "the image has no {1}",
        "use an image with Python 3.9 or later on its PATH",
    ),
    _known(
        r"exec (\S+) failed: No such file",
        UnavailableError,
        "the image has no {1}",
        "use an image with Python 3.9 or later on its PATH",
    ),
    _known(
        r"exec format error|does not match the (?:specified|detected) (?:host )?platform",
        UnavailableError,
        "the image is made for another processor architecture",
        "use an image for this machine's architecture",
    ),
    _known(
        r"error setting rlimit|setrlimit|RLIMIT_\w+",
        UnavailableError,
        "the engine may not raise limits: {0}",
        "raise the limits of the engine's user (rootless engines inherit them); for Podman, default_ulimits"
        " in containers.conf",
    ),
    _known(
        r"failed to exec pid1: No such file",  # catatonit, Podman's init, does not say which
        UnavailableError,
        "the image has no python3 or no sh",
        "use an image with Python 3.9 or later on its PATH",
    ),
    _known(
        r"container-init binary not found|stat \S*catatonit",
        UnavailableError,
        "Podman has no init program for containers",
        "install the package catatonit",
    ),
    _known(
        r"cgroups in hybrid mode not supported",
        UnavailableError,
        "crun does not work with cgroup v1 and v2 beside each other",
        'use runc (runtime = "runc" in containers.conf), or boot with cgroup v2 alone',
    ),
    _known(
        r"requested cgroup controller `?(\w+)`? is not available",
        UnavailableError,
        "the engine may not limit {1}",
        "delegate it to the user (Delegate= in user@.service), or leave the limit out of `resources`",
    ),
    _known(
        r"slirp4netns failed|failed to mount runtime directory for rootless netns",
        UnavailableError,
        "the rootless engine cannot make a network: {0}",
        "use `network: false`, or let the user open /dev/net/tun (chmod 666)",
    ),
    _known(
        r"unauthorized|authentication required|denied: requested access|access forbidden",
        UnavailableError,
        "the registry refuses: {0}",
        "check the name; log in with `docker login` if the image is private",
    ),
    _known(
        r"manifest (?:for \S+ )?(?:not found|unknown)|repository does not exist|name unknown",
        UnavailableError,
        "the registry has no such image",
        "check name and tag (`profrun images list` shows known bases)",
    ),
    _known(
        r"no matching manifest for (\S+)",
        UnavailableError,
        "the image does not exist for {1}",
        "use an image for this machine's architecture",
    ),
    _known(
        r"toomanyrequests|rate limit",
        UnavailableError,
        "the registry limits pulls",
        "log in with `docker login`, or wait",
    ),
    _known(
        r"no such host|dial tcp|connection refused|i/o timeout|server misbehaving|TLS handshake|x509|"
        r"request canceled|context deadline|client\.timeout|EOF$",
        UnavailableError,
        "the registry cannot be reached: {0}",
        "check network and proxy of the engine, or load the image with `docker load`",
    ),
    _known(
        r"invalid reference format|invalid reference|must be lowercase",
        UnavailableError,
        "that is not an image reference",
        "write it as [registry/]name[:tag] or name@sha256:...",
    ),
)
