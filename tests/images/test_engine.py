"""What engines say, and the one line that profrun makes of it. The texts are engines' own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import docker.errors
import pytest
import requests.exceptions
import urllib3.exceptions

from profrun.errors import FailedError, ProfrunError, UnavailableError
from profrun.images.build import _follow
from profrun.images.engine import connect, docker_errors, explain

# engine's words -> what must be in our line
SAID = [
    ('could not select device driver "" with capabilities: [[gpu]]', "no NVIDIA container toolkit"),
    ('could not select device driver "cdi" with capabilities: []', "does not know CDI"),
    (
        "error modifying OCI spec: failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=7",
        "no device nvidia.com/gpu=7",
    ),
    (
        'error gathering device information while adding custom device "/dev/kfd": no such file or directory',
        "no device /dev/kfd",
    ),
    ('invalid mount config for type "bind": bind source path does not exist: /nope', "does not exist"),
    ("unknown or invalid runtime name: amd", "no runtime amd"),
    ('invalid CapAdd: unknown capability: "CAP_PERFMON"', "too old to know the capability CAP_PERFMON"),
    (
        'unable to start container process: exec: "python3": executable file not found in $PATH: unknown',
        "the image has no python3",
    ),
    ("[FATAL tini (6)] exec python3 failed: No such file or directory", "the image has no python3"),
    ("ERROR (catatonit:6): failed to exec pid1: No such file or directory", "the image has no python3"),
    ("container-init binary not found on the host: stat /usr/libexec/podman/catatonit", "no init program"),
    ("crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2", "does not work with"),
    ("crun: the requested cgroup controller `cpu` is not available: OCI runtime error", "may not limit cpu"),
    ("setrlimit `RLIMIT_NPROC`: Operation not permitted", "may not raise limits"),
    ('/usr/bin/slirp4netns failed: "open(/dev/net/tun): Permission denied', "cannot make a network"),
    ("standard_init_linux.go:228: exec user process caused: exec format error", "another processor"),
    ("write /var/lib/docker/tmp/x: no space left on device", "disk is full"),
    ("manifest for nvcr.io/nvidia/pytorch:99.99-py3 not found: manifest unknown", "no such image"),
    (
        "pull access denied for x, repository does not exist: denied: requested access to the resource",
        "the registry refuses",
    ),
    ("Get https://r.example/v2/: dial tcp: lookup r.example: no such host", "cannot be reached"),
    ("toomanyrequests: You have reached your pull rate limit", "limits pulls"),
    ("no matching manifest for linux/arm64/v8 in the list", "does not exist for linux/arm64/v8"),
    ("invalid reference format: repository name must be lowercase", "not an image reference"),
    ("error setting rlimit type 8: operation not permitted", "may not raise limits"),
    (
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
        "NVIDIA driver or toolkit refused",
    ),
]


@pytest.mark.parametrize(("text", "expected"), SAID)
def test_known_words(text: str, expected: str) -> None:
    error = explain(docker.errors.APIError("500 Server Error", explanation=text), "it cannot be started")
    assert isinstance(error, UnavailableError)
    assert str(error).startswith("it cannot be started: ")
    assert expected in str(error)
    assert error.fix
    assert "\n" not in str(error)


def test_unknown_words_are_kept() -> None:
    error = explain(docker.errors.APIError("x", explanation="flux\ncapacitor  broke."), "it failed")
    assert isinstance(error, FailedError)
    assert str(error) == "it failed: flux capacitor broke"


def _wrapped(inner: OSError) -> requests.exceptions.ConnectionError:
    """As requests and urllib3 wrap what a socket says."""
    protocol = urllib3.exceptions.ProtocolError("Connection aborted.", inner)
    return requests.exceptions.ConnectionError(protocol, request=None)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (FileNotFoundError(2, "No such file or directory"), "no container engine answers at /x.sock"),
        (ConnectionRefusedError(111, "Connection refused"), "no container engine answers at /x.sock"),
        (
            PermissionError(13, "Permission denied"),
            "this user may not talk to the container engine at /x.sock",
        ),
    ],
)
def test_no_engine(inner: OSError, expected: str) -> None:
    with pytest.raises(UnavailableError, match=expected), docker_errors("ping", where="/x.sock"):
        raise _wrapped(inner)


def test_connecting_where_nothing_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(UnavailableError, match="no container engine answers"):
        connect()


def test_connecting_to_an_address_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(ProfrunError, match="cannot be reached"):
        connect()


def _build(*events: dict[str, Any]) -> tuple[list[str], str]:
    lines = []
    stream: Iterator[dict[str, Any]] = iter(events)
    follower = _follow(stream, "profrun/cuda")
    while True:
        try:
            lines.append(next(follower))
        except StopIteration as end:
            return lines, end.value


def test_a_build_that_works() -> None:
    lines, image = _build(
        {"stream": "Step 1/2 : FROM x\n"},
        {"stream": "\n"},
        {"stream": " ---> 1\n"},
        {"aux": {"ID": "sha256:1"}},
    )
    assert (lines, image) == (["Step 1/2 : FROM x", " ---> 1"], "sha256:1")


def test_a_step_that_fails_is_named_with_its_last_words() -> None:
    with pytest.raises(FailedError) as caught:
        _build(
            {"stream": "Step 2/3 : RUN apt-get install -y nosuch\n"},
            {"stream": "E: Unable to locate package nosuch\n"},
            {"stream": " ---> Running in 1\n"},
            {"error": "The command '/bin/sh -c apt-get ...' returned a non-zero code: 100"},
        )
    said = str(caught.value)
    assert "failed at Step 2/3 : RUN apt-get install -y nosuch" in said
    assert "its last line: E: Unable to locate package nosuch" in said


@pytest.mark.parametrize(
    "events",
    [
        ({"error": "write /var/lib/docker/x: no space left on device"},),
        (
            {"stream": "dd: error writing '/x': No space left on device\n"},
            {"stream": "65+0 records in\n"},
            {"error": "returned a non-zero code: 1"},
        ),
    ],
)
def test_a_full_disk_is_no_broken_step(events: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(UnavailableError, match="disk is full"):
        _build(*events)


def test_a_build_that_just_ends() -> None:
    with pytest.raises(FailedError, match="ended without an image"):
        _build({"stream": "Step 1/2 : FROM x\n"})
