"""A stand-in for rocprofv3 where there is no AMD GPU: strict about flags, and it replays a real recording.

It refuses every flag that the rocprofv3 of the chosen ROCm does not have, runs the application, and then
puts a recording made elsewhere where the real tool would have written its own:
``<-d>/<hostname>/<pid>_results.db``, or ``<-d>/<NAME>_results.db`` with ``-o NAME``. It needs the
standard library only. Put this folder on the PATH.

Environment::

    PROFRUN_STANDIN_ROCM   release to be strict as, e.g. 6.4 (default 7.1)
    PROFRUN_STANDIN_ROCPD  the rocpd database to replay (--output-format rocpd)
    PROFRUN_STANDIN_FILES  folder with the csv or json files to replay, names without the process id
    PROFRUN_STANDIN_LOG    a file to which each command line is appended, one JSON list a line

What it does not show: that a driver, a GPU or rocprofiler-sdk would accept the run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

_TRACES_62 = [
    *("hip", "hip-runtime", "hip-compiler", "kernel", "memory-copy", "marker", "scratch-memory"),
    *("hsa", "hsa-core", "hsa-amd", "hsa-image", "hsa-finalizer", "sys"),
]

FORMATS = (("csv", "json", "pftrace", "otf2"), ("csv", "json", "pftrace", "otf2", "rocpd"))
"""Before ROCm 7.0, and since."""

FLAGS: dict[tuple[int, int], dict[str, object]] = {
    # from the option tables of "Using rocprofv3" in each release's documentation
    (6, 2): {
        "traces": _TRACES_62,
        "pmc": False,
        "version": False,
    },
    (6, 3): {
        "traces": [*_TRACES_62, "memory-allocation"],
        "pmc": True,
        "version": False,
    },
    (6, 4): {
        "traces": [*_TRACES_62, "memory-allocation", "rccl", "rocdecode", "runtime", "kokkos"],
        "pmc": True,
        "version": False,
    },
}
for _release in ((7, 0), (7, 1), (7, 2)):
    FLAGS[_release] = {
        "traces": [*_TRACES_62, "memory-allocation", "rccl", "rocdecode", "rocjpeg", "runtime", "kokkos"],
        "pmc": True,
        "version": True,
    }


def release_from(text: str) -> tuple[int, int]:
    """(7, 1) from '7.1' or '7.1.1'; the newest known one that is not newer."""
    wanted = tuple(int(part) for part in text.split(".")[:2])
    return max(known for known in FLAGS if known <= wanted)


def build_parser(release: tuple[int, int]) -> argparse.ArgumentParser:
    """The argument parser of one release; booleans may have a value, as in the real tool."""
    known = FLAGS[release]
    parser = argparse.ArgumentParser("rocprofv3", allow_abbrev=False)
    if known["version"]:
        parser.add_argument("-v", "--version", action="store_true")
    parser.add_argument("-i", "--input")
    parser.add_argument("-o", "--output-file", default=os.environ.get("ROCPROF_OUTPUT_FILE_NAME"))
    parser.add_argument("-d", "--output-directory", default=os.environ.get("ROCPROF_OUTPUT_PATH"))
    parser.add_argument(
        "-f", "--output-format", nargs="+", choices=FORMATS[release >= (7, 0)], type=str.lower
    )
    parser.add_argument("--log-level")
    for trace in known["traces"]:  # type: ignore[attr-defined]
        _boolean(parser, f"--{trace}-trace")
    _boolean(parser, "--stats")
    _boolean(parser, "--kernel-rename")
    if known["pmc"]:
        parser.add_argument("--pmc", nargs="*")
        parser.add_argument("--kernel-include-regex")
        parser.add_argument("--kernel-exclude-regex")
        parser.add_argument("--kernel-iteration-range", nargs="+")
    if release >= (7, 0):
        _boolean(parser, "--selected-regions")
        parser.add_argument("-A", "--agent-index", choices=("absolute", "relative", "type-relative"))
        _boolean(parser, "--group-by-queue")
    return parser


def _boolean(parser: argparse.ArgumentParser, flag: str) -> None:
    words = ("y", "yes", "t", "true", "on", "1", "n", "no", "f", "false", "off", "0")
    parser.add_argument(flag, nargs="?", const="true", type=str.lower, choices=words)


def expand(text: str, pid: int) -> str:
    """Keys of output paths: %hostname%, %pid%, %env{NAME}%."""
    text = text.replace("%hostname%", socket.gethostname()).replace("%pid%", str(pid))
    return re.sub(r"%env\{(\w+)\}%", lambda found: os.environ.get(found.group(1), ""), text)


def leave_files(parsed: argparse.Namespace, pid: int, release: tuple[int, int]) -> None:
    """Put the recording where the real tool would have written it."""
    folder = Path(expand(parsed.output_directory or ".", pid))
    prefix = expand(parsed.output_file, pid) if parsed.output_file else f"{socket.gethostname()}/{pid}"
    for form in parsed.output_format or (("rocpd",) if release >= (7, 0) else ("csv",)):
        sources = _sources(form)
        for source in sources:
            target = folder / f"{prefix}_{'results.db' if form == 'rocpd' else source.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            print(f"Opened result file: {target}", file=sys.stderr)


def _sources(form: str) -> list[Path]:
    if form == "rocpd":
        name = os.environ.get("PROFRUN_STANDIN_ROCPD")
        return [Path(name)] if name else []
    folder = os.environ.get("PROFRUN_STANDIN_FILES")
    return sorted(Path(folder).glob(f"*.{form}")) if folder else []


def run(argv: list[str]) -> tuple[int, int]:
    """Run the application; (its process id, its exit code as a shell has it)."""
    environment = dict(os.environ, ROCPROF="rocprofv3", ROCPROFILER_LIBRARY_CTOR="1")
    try:
        process = subprocess.Popen(argv, env=environment)
    except OSError as error:
        print(f"rocprofv3: {argv[0]}: {error.strerror}", file=sys.stderr)
        return os.getpid(), 127
    for number in (signal.SIGTERM, signal.SIGINT):
        # the real tool becomes the application: what is sent to one reaches the other
        signal.signal(number, lambda got, _frame: process.send_signal(got))
    code = process.wait()
    return process.pid, code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    """Entry point of the executable."""
    release = release_from(os.environ.get("PROFRUN_STANDIN_ROCM", "7.1"))
    log = os.environ.get("PROFRUN_STANDIN_LOG")
    if log and "--" in arguments:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(arguments) + "\n")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parsed = build_parser(release).parse_args(arguments[:at])
    if getattr(parsed, "version", False):
        for key, value in (("version", "1.0.0"), ("rocm_version", ".".join(map(str, release)) + ".1")):
            print(f"{key:>20}: {value}")
        return 0
    if not arguments[at + 1 :]:
        print("Fatal error: no application: put -- before it", file=sys.stderr)
        return 1
    pid, code = run(arguments[at + 1 :])
    if code != 128 + signal.SIGKILL:
        leave_files(parsed, pid, release)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
