"""A real Slurm with two nodes and fake GPUs on this machine, for tests marked ``slurm``."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED, missing, need_tool
from tests.support.containers import engine, standin

__all__ = ["engine", "standin"]


@dataclass(frozen=True)
class Cluster:
    """A running Slurm: its environment, and a folder that its nodes see."""

    environ: Mapping[str, str]
    base: Path

    def run(self, *argv: str, timeout: float = 240) -> str:
        """Output of a Slurm command."""
        done = subprocess.run(
            argv, env=dict(self.environ), capture_output=True, text=True, timeout=timeout, check=True
        )
        return done.stdout


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests of this process."""
    with running_cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@contextlib.contextmanager
def running_cluster(base: Path) -> Iterator[Cluster]:
    """Two nodes, n1 (gpu:h200:4) and n2 (gpu:mi300x:4); no accounting database, KillWait 15 s.

    Args:
        base: an empty folder for its files.
    """
    for tool in ("slurmctld", "slurmd", "munged"):
        need_tool(tool)
    if os.geteuid() != 0:
        missing("root, which starts the Slurm daemons")
    up, down = SHARED / "slurm/slurm_up.sh", SHARED / "slurm/slurm_down.sh"
    if not up.exists():
        missing(str(up))
    port = str(20000 + 40 * os.getpid() % 20000)  # it takes ports up to 22 above
    subprocess.run(["bash", str(up), str(base), port], check=True, capture_output=True, timeout=120)
    bin_ = Path(sys.executable).parent
    environ = {
        **os.environ,
        "SLURM_CONF": str(base / "slurm.conf"),
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "HOSTNAME": socket.gethostname(),
    }
    try:
        yield Cluster(environ, base)
    finally:
        subprocess.run(["scancel", "--user=root"], env=environ, check=False, capture_output=True, timeout=240)
        subprocess.run(["bash", str(down), str(base)], check=False, capture_output=True, timeout=240)


@dataclass(frozen=True)
class Desk:
    """A user's folder from which jobs are submitted."""

    cluster: Cluster
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        """Where runs go."""
        return self.folder / "runs"

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        """A file beside the job."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def start(self, *argv: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """``profrun ...`` as a process."""
        process = subprocess.Popen(
            [sys.executable, "-m", "profrun.cli", *argv],
            cwd=self.folder,
            env={**self.cluster.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def profrun(
        self, *argv: str, environ: Mapping[str, str] | None = None, timeout: float = 540
    ) -> subprocess.CompletedProcess[str]:
        """``profrun ...`` to its end."""
        process = self.start(*argv, environ=environ)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def submit(self, spec: str, *argv: str, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Submit a job to Slurm and return what ``--json`` says."""
        self.write("job.yaml", spec)
        done = self.profrun("submit", "job.yaml", "--backend", "slurm", "--json", *argv, environ=environ)
        assert done.stdout, done.stderr
        value: dict[str, Any] = json.loads(done.stdout)
        value["exit_code"] = done.returncode
        return value

    def run_folder(self) -> Path:
        """The only run's folder."""
        (found,) = self.runs.iterdir()
        return found


@pytest.fixture
def desk(cluster: Cluster, tmp_path: Path) -> Iterator[Desk]:
    """A folder to submit from; what it left in the queue is cancelled afterwards, and its commands end."""
    made = Desk(cluster, tmp_path)
    yield made
    cluster.run("scancel", "--user=root")
    for process in made.started:
        process.kill()  # nothing where it has ended
        process.communicate()


def wait_for(what: Path | Any, seconds: float = 240.0) -> None:
    """Until a file exists (or a callable returns something true)."""
    deadline = time.monotonic() + seconds
    while not (what.exists() if isinstance(what, Path) else what()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)
