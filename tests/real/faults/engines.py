"""Engines that belong to the suite and may be killed: a Docker engine with its own folders and socket."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real.faults.desk import until
from tests.real.faults.jobs import IMAGE

_LEFT_OUT = ("usr/local/lib/", "usr/share/doc/", "usr/share/locale/", "var/lib/apt/", "dev/")


@dataclass(frozen=True)
class Engines:
    """What carries out the runs that are no processes of this machine.

    Attributes:
        base: folder of the Docker engine; None: there is none.
    """

    base: Path | None = None

    @property
    def socket(self) -> Path | None:
        """The engine's socket."""
        return self.base / "docker.sock" if self.base is not None else None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One scenario at a time: each may kill the engine."""
        assert self.base is not None
        with (self.base / "turn").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def docker(self, *words: str, check: bool = True) -> str:
        """Output of a command of this engine."""
        argv = ["docker", "-H", f"unix://{self.socket}", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=check, timeout=300).stdout

    def start(self) -> None:
        """Start the engine, if it does not run, and wait until it answers."""
        assert self.base is not None
        base = self.base
        if self._pid() is None:
            (base / "docker.pid").unlink(missing_ok=True)
            with (base / "dockerd.log").open("ab") as log:
                subprocess.Popen(
                    [
                        "dockerd",
                        *("--host", f"unix://{self.socket}", "--pidfile", str(base / "docker.pid")),
                        *("--data-root", str(base / "data"), "--exec-root", str(base / "exec")),
                        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        if not until(lambda: self.docker("version", check=False).count("Version") > 2, nap=0.2):
            raise RuntimeError(f"the engine does not answer: {(base / 'dockerd.log').read_text()[-2000:]}")

    def load(self, standin: Path) -> None:
        """Make the image of the runs of the stand-in base: its Debian with Python, without torch.

        Args:
            standin: the root filesystem that ``scripts/standin-base`` keeps.
        """
        argv = ["docker", "-H", f"unix://{self.socket}", "import", "-", IMAGE]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
            assert child.stdin is not None
            with (
                tarfile.open(standin) as whole,
                tarfile.open(fileobj=child.stdin, mode="w|") as small,
            ):
                for member in whole:
                    if not member.name.removeprefix("./").startswith(_LEFT_OUT):
                        small.addfile(member, whole.extractfile(member) if member.isreg() else None)
        if child.returncode:
            raise RuntimeError(f"the image cannot be imported ({child.returncode})")

    def kill(self) -> bool:
        """SIGKILL to the engine; it is started again by ``start``."""
        pid = self._pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        return until(lambda: self._pid() is None)

    def stop(self) -> None:
        """End the engine."""
        pid = self._pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            until(lambda: self._pid() is None)
        if self.base is not None:  # an engine that was killed has left its folder mounted
            argv = ["umount", "--lazy", str(self.base / "data")]
            subprocess.run(argv, capture_output=True, check=False)

    def _pid(self) -> int | None:
        assert self.base is not None
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.base / "docker.pid").read_text())
            if b"dockerd" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return None

    def containers(self, folder: Path) -> list[str]:
        """Ids of the containers whose trial lies below a folder, also of those that have ended."""
        if self.base is None:
            return []
        words = ("ps", "-aq", "--no-trunc", "--filter", "label=profrun.role")
        found = self.docker(*words).split()
        path = '{{index .Config.Labels "profrun.path"}}'
        return [
            one
            for one in found
            if self.docker("inspect", "-f", path, one, check=False).startswith(f"{folder}/")
        ]

    def container(self, folder: Path) -> int | None:
        """Process number of the first process of a trial's container."""
        for one in self.containers(folder):
            pid = int(self.docker("inspect", "-f", "{{.State.Pid}}", one, check=False).strip() or 0)
            if pid:
                return pid
        return None
