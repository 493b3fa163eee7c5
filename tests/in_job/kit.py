"""Runs real trials through the real bundle and wrapper; a stand-in nsys for what takes a profiler."""

from __future__ import annotations

import atexit
import compileall
import functools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profrun.contract.codec import from_json
from profrun.contract.finding import Finding
from profrun.plans.bundle import write_bundle

SCHEDULE = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 0}


@functools.cache
def _bundle() -> Path:
    """The in-job part, written and compiled once for each process of the tests."""
    folder = Path(tempfile.mkdtemp(prefix="profrun-in-job-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_bundle(folder / "bundle")
    compileall.compile_dir(folder / "bundle", quiet=1)
    return folder / "bundle"


@dataclass
class Done:
    """A finished trial."""

    folder: Path
    code: int
    stdout: str
    stderr: str

    @property
    def exit(self) -> dict[str, Any]:
        """exit.json."""
        value: dict[str, Any] = json.loads((self.folder / "exit.json").read_text())
        return value

    @property
    def provenance(self) -> dict[str, Any]:
        """provenance.json."""
        value: dict[str, Any] = json.loads((self.folder / "provenance.json").read_text())
        return value

    @property
    def warnings(self) -> list[str]:
        """Warnings of exit.json as a person reads them."""
        return [str(from_json(Finding, row)) for row in self.exit["warnings"]]

    def steps(self, rank: int = 0) -> dict[str, Any]:
        """steps.json of a rank."""
        value: dict[str, Any] = json.loads((self.folder / f"raw/rank{rank}/steps.json").read_text())
        return value

    def log(self, name: str = "stdout") -> str:
        """A log of the user's command."""
        return (self.folder / f"{name}.log").read_text()


class Trial:
    """A trial folder ready to run; ``start`` gives the wrapper's process, ``run`` waits for it."""

    def __init__(self, root: Path, argv: Sequence[str], script: str | None = None, **command: Any) -> None:
        self.bundle = root / "bundle"
        if not self.bundle.exists():
            self.bundle.symlink_to(_bundle())
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        if script is not None:
            (self.work / "job.py").write_text(script)
        number = len(list((root / "trials").glob("*"))) if (root / "trials").exists() else 0
        self.folder = root / "trials" / f"{number:03}-a"
        self.folder.mkdir(parents=True)
        values = {
            "format": 1,
            "trial": self.folder.name,
            "attempt": 1,
            "run": "r",
            "job": "j",
            "variant": "a",
            "values": {"batch": 4},
            "repeat": 0,
            "collector": "none",
            "vendor": "auto",
            "blocking": False,
            "argv": list(argv),
            "cwd": str(self.work),
            "env": {},
            "schedule": SCHEDULE,
            "ranges": {"modules": 0, "steps": "auto"},
            "options": {},
            "ranks": 1,
            "timeout_s": 60.0,
            "grace_s": 5.0,
            "image": {"reference": None, "digest": None},
        }
        (self.folder / "command.json").write_text(json.dumps(values | command))

    def start(self, env: Mapping[str, str] | None = None, **popen: Any) -> subprocess.Popen[str]:
        """Start the wrapper as backends do."""
        return subprocess.Popen(
            [sys.executable, str(self.bundle / "run.py"), str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            **popen,
        )

    def finish(self, process: subprocess.Popen[str]) -> Done:
        """Wait for it."""
        out, err = process.communicate(timeout=240)
        return Done(self.folder, process.returncode, out, err)

    def run(self, env: Mapping[str, str] | None = None) -> Done:
        """Start and wait."""
        return self.finish(self.start(env))

    def wait_for(self, text: str, name: str = "stdout", seconds: float = 120.0) -> None:
        """Until the command has printed something."""
        deadline = time.monotonic() + seconds
        log = self.folder / f"{name}.log"
        while not (log.exists() and text in log.read_text()):
            assert time.monotonic() < deadline, f"{text!r} never appeared in {log}"
            time.sleep(0.02)


def python(*code: str) -> list[str]:
    """argv of a small program."""
    return [sys.executable, "-u", "-c", "\n".join(code)]


FAKE_NSYS = """#!{python} -I
# A stand-in nsys: runs its command, and needs a while after that to write its report, as the real one does.
import os, signal, subprocess, sys, time
if sys.argv[1:] == ["--version"]:
    print("NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0")
    sys.exit(0)
if sys.argv[1] == "export":
    open(os.path.splitext(os.path.basename(sys.argv[-1]))[0] + ".sqlite", "wb").write({sqlite!r})
    sys.exit(0)
out = next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--output="))
rest = sys.argv[2:]
while rest and rest[0].startswith("-"):
    rest.pop(0)
session = os.path.join(os.environ["TMPDIR"], "session")  # it stays when nsys is killed
if os.path.exists(session):
    print("Session name 'profrun' is already in use.", flush=True)
    sys.exit(1)
started = {starts!r}
open(started, "a").write("x")
if os.path.getsize(started) <= {lost_starts}:
    open(session, "w").close()
    {at_loss}
    print("End of file", flush=True)
    time.sleep({hang_s})
    sys.exit({lost_code})
{on_signal}
print("Importer error status: The importer binary was not found.", file=sys.stderr, flush=True)
open(out + ".qdstrm", "w").write("unfinished")
child = subprocess.Popen(rest)
code = child.wait()
print("fake nsys: the app is gone", flush=True)
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    time.sleep(0.05)
if not {unfinished}:
    os.remove(out + ".qdstrm")
    open(out + ".nsys-rep", "w").write("whole report")
    print("fake nsys: report written", flush=True)
sys.exit(code if code >= 0 else 128 - code)
"""


FAKE_IMPORTER = """#!{python}
# A stand-in QdstrmImporter that fails the first {failures} times.
import pathlib, sys
tries = pathlib.Path({tries!r})
tried = int(tries.read_text()) if tries.exists() else 0
tries.write_text(str(tried + 1))
report = pathlib.Path(sys.argv[4])
assert not report.exists(), "Output file already exists"  # as the real one
if tried < {failures}:
    report.write_text("a part of it")
    sys.exit("Status: AnalysisFailed")
assert sys.argv[1] == "-i" and pathlib.Path(sys.argv[2]).read_text() == "unfinished"
report.write_text("whole report")
"""


def fake_importer(folder: Path, failures: int) -> Path:
    """Put a stand-in importer beside the stand-in nsys; returns the file that counts its runs."""
    path, tries = folder / "host-linux-x64/QdstrmImporter", folder / "tries"
    path.parent.mkdir()
    path.write_text(FAKE_IMPORTER.format(python=sys.executable, failures=failures, tries=str(tries)))
    path.chmod(0o755)
    return tries


def fake_nsys(
    folder: Path,
    seconds: float = 1.0,
    on_signal: str = "",
    *,
    unfinished: bool = False,
    lost_starts: int = 0,
    hang_s: float = 0,
    lost_code: int = 1,
    at_loss: str = "pass",
) -> dict[str, str]:
    """Environment in which the wrapper finds a stand-in nsys that takes ``seconds`` to write its report.

    Args:
        on_signal: Python that it runs before the program starts, e.g. to handle a signal.
        unfinished: it leaves its stream without a report.
        lost_starts: how often it ends, as the real one may, before it starts the program; the file
            ``nsys-starts`` has a byte for each of its starts.
        hang_s: seconds for which it waits after such a start, once it has printed what happened.
        lost_code: its exit code after such a start.
        at_loss: Python that it runs at such a start; ``rest`` is the command.
    """
    import sqlite3

    database = folder / "template.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    path = folder / "nsys"
    path.write_text(
        FAKE_NSYS.format(
            python=sys.executable,
            seconds=seconds,
            sqlite=database.read_bytes(),
            on_signal=on_signal,
            unfinished=unfinished,
            starts=str(folder / "nsys-starts"),
            lost_starts=lost_starts,
            hang_s=hang_s,
            lost_code=lost_code,
            at_loss=at_loss,
        )
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PROFRUN_NSYS": str(path)}
