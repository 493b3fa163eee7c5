"""The sampler: a process that reads clocks, power, energy and load while the program of a trial runs.

The wrapper starts it before the program (``sampling``). It writes ``samples.<host>.jsonl``
(``contract.sampling``) and ends when its standard input does: when the wrapper closes it, and also when the
wrapper is killed. Signals to end are for the program, not for it.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import resource
import select
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..contract.codec import to_json
from ..contract.finding import Finding
from ..contract.paths import TrialPaths
from ..contract.sampling import SamplesHeader
from . import nvml, rsmi
from .gpu_source import LibraryError
from .host_load import HostReader
from .procfs import command_line
from .timing import anchor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..contract.sampling import SampledSource
    from .gpu_source import Value

LIBRARY_ENV = "PROFRUN_TEST_GPU_LIBRARY"
"""For tests: path of the library that is loaded in place of the vendor's."""
_NICE = 5
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGURG, signal.SIGPIPE)


class Reader(Protocol):
    """Reads one source."""

    source: SampledSource

    def read(self) -> tuple[int, list[Value]]:
        """The time of the reading (unix time, ns), and one value for each of the source's quantities."""


def main(argv: Sequence[str]) -> None:
    """Sample until standard input ends; the process ends here, without any clean-up that could take time."""
    options = _options(argv)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    try:
        os.nice(_NICE)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        pass
    try:
        _run(options)
    except Exception as error:
        _say([Finding("sampler-failed", "info", "nothing is sampled", f"{type(error).__name__}: {error}")])
    os._exit(0)


def _run(options: argparse.Namespace) -> None:
    """Open the file and what is read, and sample; nothing where this host has a sampler already."""
    file = open_file(TrialPaths(options.folder).samples_of(socket.gethostname()))
    if file is None:
        _say([])
        return
    readers, findings = _readers(options)
    header = SamplesHeader(
        host=socket.gethostname(),
        pid=os.getpid(),
        anchor=anchor(),
        rate=options.rate,
        sources=tuple(reader.source for reader in readers),
    )
    _write(file, [to_json(header)])
    _say(findings)
    sample(readers, file, options.rate, ends=0)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sampler.py", description="profrun's sampler")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=float, required=True, help="samples per second")
    parser.add_argument("--vendor", default="none", choices=("nvidia", "amd", "none"))
    parser.add_argument("--all", action="store_true", help="several wrappers of this trial run on this host")
    return parser.parse_args(argv)


def open_file(path: Path) -> int | None:
    """The file of the samples, empty; None where another sampler of this host writes it.

    Raises:
        OSError: it cannot be written.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:  # a filesystem without locks
        pass
    os.ftruncate(file, 0)
    return file


def _readers(options: argparse.Namespace) -> tuple[list[Reader], list[Finding]]:
    """What can be read here, and what the user should know of it."""
    findings = []
    readers: list[Reader] = []
    path = os.environ.get(LIBRARY_ENV)
    try:
        if options.vendor == "nvidia":
            readers += nvml.open_gpus(os.environ, path, everyone=options.all)
        elif options.vendor == "amd":
            readers += rsmi.open_gpus(os.environ, path, everyone=options.all)
    except LibraryError as error:
        what = "clocks, power and energy of the GPUs are not sampled"
        findings.append(Finding("gpus-not-sampled", "info", what, str(error)))
    parent = os.getppid()
    same = command_line(parent)[-2:] if options.all else ()  # run.py and the folder of the trial
    readers.append(HostReader((parent,), same))
    return [reader for reader in readers if reader.source.quantities], findings


def _say(findings: Sequence[Finding]) -> None:
    """Tell the wrapper that sampling begins, and what it should pass on."""
    try:
        os.write(1, json.dumps([to_json(finding) for finding in findings]).encode() + b"\n")
        os.close(1)
    except OSError:  # the wrapper is gone
        pass


def _write(file: int, lines: Sequence[object]) -> bool:
    """Write lines at once; whether that went well."""
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    try:
        return os.write(file, text) == len(text)
    except OSError:  # the disk is full
        return False


def sample(readers: Sequence[Reader], file: int, rate: float, *, ends: int) -> None:
    """Read everything on a fixed grid of times until the file ``ends`` ends, and once more then.

    A reading that takes longer than the grid's step leaves out the times that it missed.
    """
    start, number = time.monotonic(), 0
    going = True
    while True:
        rows: list[list[Value]] = []
        for place, reader in enumerate(readers):
            when, values = reader.read()
            if any(value is not None for value in values):
                rows.append([when, place, *values])
        if not _write(file, rows) or not going:
            return
        number = max(number + 1, int((time.monotonic() - start) * rate) + 1)
        going = not _ended(ends, start + number / rate)


def _ended(ends: int, until: float) -> bool:
    """Sleep until a moment of the monotonic clock, or until the file ends; whether it has ended."""
    while True:
        left = max(0.0, until - time.monotonic())
        if select.select([ends], [], [], left)[0]:
            try:
                if not os.read(ends, 64):
                    return True
            except OSError:
                return True
        elif time.monotonic() >= until:
            return False
