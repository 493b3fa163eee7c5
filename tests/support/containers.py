"""What tests with containers share: a real engine, a stand-in base image made without a registry, and a
caller who is not root. The fixtures are imported by the conftest.py of the folders that use them."""

from __future__ import annotations

import fcntl
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from profrun.errors import ProfrunError
from profrun.images.engine import connect
from profrun.images.engine_kind import EngineKind, stated_kind
from tests.conftest import ROOT, missing, need_tool

STANDIN = "profrun/standin:bookworm"
CALLER_UID = 12345
CALLER_GID = 12346
_NO_SUDO = {key: value for key, value in os.environ.items() if not key.startswith("SUDO_")}


@dataclass
class Cli:
    """profrun, called as a user who is not root and may talk to the engine.

    A root test run becomes user 12345 and keeps one capability, to read files: the Python that runs the tests
    may lie in a folder of root's.
    """

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    engine: bool = True
    sudo: bool = False

    def argv(self, *args: str) -> list[str]:
        """The whole command."""
        words = [sys.executable, "-m", "profrun.cli", *args]
        if os.getuid() != 0 or self.sudo:
            return words
        groups = str(_engine_socket().stat().st_gid) if self.engine else str(CALLER_GID)
        return [
            need_tool("setpriv"),
            f"--reuid={CALLER_UID}",
            f"--regid={CALLER_GID}",
            f"--groups={groups}",
            "--inh-caps=-all,+dac_read_search",
            "--ambient-caps=-all,+dac_read_search",
            *words,
        ]

    def environ(self) -> dict[str, str]:
        """Like a shell of that user's."""
        behind = {"SUDO_UID": str(CALLER_UID), "SUDO_GID": str(CALLER_GID)} if self.sudo else {}
        return {**_NO_SUDO, **behind, "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", **self.env}

    def run(self, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return subprocess.run(
            self.argv(*args),
            cwd=cwd or self.folder,
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=280,
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start in a process group of its own, as a shell does."""
        return subprocess.Popen(
            self.argv(*args),
            cwd=self.folder,
            env=self.environ(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def write(self, name: str, text: str) -> Path:
        """A file of the caller's."""
        path = self.folder / name
        path.write_text(text)
        own(path)
        return path

    def only_run(self) -> Path:
        """The folder of the one run."""
        (found,) = (self.folder / "runs").iterdir()
        return found


def _engine_socket() -> Path:
    """The socket of the engine under test: $DOCKER_HOST names another one than Docker's own."""
    return Path((os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock").removeprefix("unix://"))


def own(path: Path) -> None:
    """Give a path to the caller."""
    if os.getuid() == 0:
        os.chown(path, CALLER_UID, CALLER_GID)


def until(found: Callable[[], Any], what: str, seconds: float = 300.0) -> Any:
    """Wait for something; fail with its name when it does not come."""
    deadline = time.monotonic() + seconds
    while True:
        value = found()
        if value:
            return value
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come within {seconds} s")
        time.sleep(0.05)


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """The engine, or no test."""
    try:
        client = connect()
    except ProfrunError as error:
        missing(f"a container engine ({error})")
    yield client
    client.close()


@pytest.fixture(scope="session")
def kind(engine: Any) -> EngineKind:
    """Which kind of engine is under test."""
    return stated_kind(engine.version(), engine.info())


def import_empty(engine: Any, name: str) -> None:
    """Give the engine an image that has one empty file, under ``repository:tag``."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("nothing"))
    repository, _, tag = name.partition(":")
    said = engine.api.import_image_from_data(data.getvalue(), repository=repository, tag=tag)
    made = engine.images.get(json.loads(said.splitlines()[-1])["status"])
    made.tag(repository, tag)
    for other in engine.images.get(made.id).tags:  # Podman 4.3 calls it ``latest``
        if not other.endswith(name):
            engine.images.remove(other)


@contextmanager
def alone(what: str) -> Iterator[None]:
    """One test process of this machine at a time: two suites would build the same image at the same time."""
    with (Path(tempfile.gettempdir()) / f"profrun-tests-{what}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def standin(engine: Any) -> str:
    """The stand-in base; made here when it is not there and can be."""
    script = ROOT / "scripts/standin-base"
    if os.getuid() == 0:
        need_tool("debootstrap")
        with alone("images"):
            subprocess.run(
                [str(script), STANDIN], env={**os.environ, "PYTHON": sys.executable}, check=True, timeout=900
            )
    elif not engine.images.list(STANDIN):
        missing(f"{STANDIN} (as root: {script} {STANDIN})")
    return STANDIN


def build_cuda(base: str, folder: Path) -> str:
    """Build our cuda image on a base by the command line; the name that only this content has."""
    own(folder)
    with alone("images"):
        done = Cli(folder).run("images", "build", "cuda", "--base", base, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    return str(json.loads(done.stdout)["image"])


@pytest.fixture(scope="session")
def cuda(standin: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Our cuda image on the stand-in base, built by the command line."""
    build_cuda(standin, tmp_path_factory.mktemp("build"))
    return "profrun/cuda:latest"
