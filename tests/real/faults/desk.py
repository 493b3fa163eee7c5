"""A scenario's folder: profrun is started in it, its run is looked at, and commands are asked about it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import ROOT
from tests.real.faults.jobs import MARK

_THIS = ("-m", "profrun.cli")
_OLDER = ("-c", "from profrun.runner.cli import main; main()")
"""How profrun is started, this one and 0.1. Both are two words."""
PATIENCE_S = 120.0
"""How long a process may take for what it does in seconds: the machine may be loaded."""


@dataclass(frozen=True)
class Answer:
    """What a command said: exit code (None: it did not end in time), stdout and stderr."""

    argv: tuple[str, ...]
    code: int | None
    out: str
    err: str


@dataclass
class Desk:
    """One scenario's folder.

    Attributes:
        environ: what every process of the scenario has in its environment beside this machine's.
        said: the output of every command so far, for the search for tracebacks.
    """

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    said: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("tmp", "state", "runs"):
            (self.folder / name).mkdir(exist_ok=True)
        self.environ |= {
            MARK: str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PROFRUN_RUNS": str(self.folder / "runs"),
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",
        }

    @property
    def run(self) -> Path | None:
        """The run's folder, once there is one."""
        found = [path for path in (self.folder / "runs").iterdir() if (path / "events.jsonl").exists()]
        return found[0] if found else None

    def start(self, *argv: str, source: Path = ROOT, **more: str) -> subprocess.Popen[str]:
        """``profrun ...`` as a process in a session of its own, as a terminal starts it.

        Args:
            source: root of the checkout that is run.
            more: further variables.
        """
        environ = {**os.environ, **self.environ, **more, "PYTHONPATH": str(source / "src")}
        environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
        return subprocess.Popen(
            [sys.executable, *(_OLDER if source != ROOT else _THIS), *argv],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end_of(self, child: subprocess.Popen[str], seconds: float = PATIENCE_S) -> Answer:
        """Wait for a command that was started; one that does not end in time is killed."""
        argv = tuple(str(word) for word in list(child.args)[3:])  # type: ignore[arg-type]  # a list here
        try:
            out, err = child.communicate(timeout=seconds)
            answer = Answer(argv, child.returncode, out, err)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            answer = Answer(argv, None, out, err)
        self.said.append(answer)
        return answer

    def ask(self, *argv: str, seconds: float = PATIENCE_S) -> Answer:
        """``profrun ...`` in a fork of this process, which has its modules already: half of the time.

        This process must have no second thread.
        """
        out, err = self.folder / "asked.out", self.folder / "asked.err"
        pid = os.fork()
        if not pid:
            _become(argv, {**self.environ}, self.folder, out, err)
        code = _wait(pid, seconds)
        answer = Answer(argv, code, out.read_text(errors="replace"), err.read_text(errors="replace"))
        self.said.append(answer)
        return answer


def _become(
    argv: Sequence[str], environ: Mapping[str, str], folder: Path, out: Path, err: Path
) -> None:  # pragma: no cover - in the fork
    """Carry out one command line in this fork, and end."""
    code = 70
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        for path, stream in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
        # Not the parent's: pytest keeps what is written to those.
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(stream, "w", closefd=False), encoding="utf-8") for stream in (1, 2)
        )
        os.environ.update(environ)
        os.chdir(folder)
        from profrun.cli import main

        main(list(argv))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, seconds: float) -> int | None:
    """Exit code of a child; None when it had to be killed because it did not end."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def until(found: Callable[[], object], seconds: float = PATIENCE_S, nap: float = 0.01) -> bool:
    """Wait for a state; False when it does not come."""
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(nap)
    return True
