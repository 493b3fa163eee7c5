"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Test processes that run side by side share one. Each holds a shared lock on the file ``users`` while it uses
it. A guard waits for the exclusive lock, so the plane is taken down when the last one has let go, even when
pytest was killed.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from tests.support.kube_api import KubeApi

LABEL = "profrun.test.plane"
"""Label of the containers and networks of pods; its value is the plane's folder."""
_GUARD = """
exec 9>>"$1/users"
flock 9
bash "$2" "$1"
for item in $(docker ps -aq --filter "label=$3=$1"); do docker rm -f "$item"; done
for item in $(docker network ls -q --filter "label=$3=$1"); do docker network rm "$item"; done
rm -rf "$1/etcd" "$1/kube" "$1"/kube-*
touch "$1/down"
"""


@contextmanager
def control_plane(scripts: Path, folder: Path) -> Iterator[KubeApi]:
    """Start the control plane in ``folder``, or join the one that another test process started there.

    Args:
        scripts: where k8s_up.sh and k8s_down.sh are.

    Yields:
        Its administrator.

    Raises:
        subprocess.CalledProcessError: it did not start; the output says why.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users").open("a") as users:
        with (folder / "starting").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)  # waits while the guard takes an earlier one down
            if not (folder / "scheduler.pid").exists():
                _start(scripts, folder)
        try:
            yield _admin(folder)
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            _wait_for_guard(folder)


def _start(scripts: Path, folder: Path) -> None:
    (folder / "down").unlink(missing_ok=True)
    subprocess.run(
        ["setsid", "--fork", "bash", "-c", _GUARD, "guard", str(folder), str(scripts / "k8s_down.sh"), LABEL],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with (folder / "up.log").open("wb") as log:  # a pipe would be held open by what the script starts
        subprocess.run(
            ["bash", str(scripts / "k8s_up.sh"), str(folder), str(_free_ports(3))],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=180,
        )


def _admin(folder: Path) -> KubeApi:
    config = yaml.safe_load((folder / "kubeconfig").read_text())
    server = config["clusters"][0]["cluster"]["server"]
    return KubeApi(server, folder / "certs/apiserver.crt", config["users"][0]["user"]["token"])


def _wait_for_guard(folder: Path, patience_s: float = 60.0) -> None:
    """The last user waits until the guard has taken everything down; others leave at once."""
    deadline = time.monotonic() + patience_s
    while not (folder / "down").exists() and time.monotonic() < deadline:
        if _others_use_it(folder):
            return
        time.sleep(0.1)


def _others_use_it(folder: Path) -> bool:
    """Whether a test process holds the shared lock: then no exclusive one can be had."""
    with (folder / "users").open("a") as probe:
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False  # the guard has it
        try:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _free_ports(count: int) -> int:
    """The first of so many free ports in a row, below those that the kernel gives away."""
    start = random.Random(os.getpid()).randrange(15000, 30000)
    for first in range(start, 32000, count):
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
    raise RuntimeError("no free ports")
