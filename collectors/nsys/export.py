"""Reports of nsys (.nsys-rep, .qdrep, .qdstrm) through an installed nsys: only it can read them.

An nsys reads reports of its own version and older ones (2021's .qdrep too), never of newer ones; so the
export belongs where the report was recorded, and this is for reports that came without one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from profrun.collectors.nsys.unfinished import find_importer, import_of
from profrun.contract.wrapping import ATTEMPTS
from profrun.errors import InputError, UnavailableError

_REPORT = re.compile(rb"NVIDIA (?:Tegra Profiler|Nsight Systems) Report (\d+)@(\d+)@(\d+)")
_STREAM = re.compile(rb"NVIDIA Nsight Systems Stream (\d+)\.(\d+)\.(\d+)")
_REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"
_STREAM_MAGIC = b"NVIDIA Nsight Systems Stream"
_NEWER = re.compile(
    r"created in Nsight Systems version \(([\d.]+)[^)]*\), newer than your current version \(([\d.]+)"
)
_TIMEOUT_S = 3600
_BLOBS = "--include-blobs"


def is_report(head: bytes) -> bool:
    """Is this the beginning of a report (.nsys-rep, .qdrep) or of a raw stream (.qdstrm)?"""
    return head.startswith(_REPORT_MAGIC) or _STREAM_MAGIC in head[:64]


def recorded_by(head: bytes) -> str | None:
    """Version of the nsys that wrote a report, from its first bytes: '2024.2.3'."""
    found = _REPORT.search(head[:256]) or _STREAM.search(head[:256])
    return ".".join(part.decode() for part in found.groups()) if found else None


def find_nsys() -> str:
    """The nsys to use: $PROFRUN_NSYS, else the PATH.

    Raises:
        UnavailableError: there is none.
    """
    asked = os.environ.get("PROFRUN_NSYS")
    found = shutil.which(asked) if asked else shutil.which("nsys")
    if found is None:
        raise UnavailableError(
            f"{asked or 'nsys'} is not there",
            why="only Nsight Systems itself can read its reports",
            fix="install nsight-systems-cli and put nsys on the PATH (or name it in PROFRUN_NSYS), or give "
            "the SQLite file made by `nsys export --type=sqlite` where the report was recorded",
        )
    return found


def export_report(report: Path, folder: Path) -> Path:
    """Export a report, or import and export a raw stream, into ``folder``; returns the SQLite file.

    Raises:
        InputError: the report is damaged, or newer than the installed nsys.
        UnavailableError: no nsys, or (for a .qdstrm) no QdstrmImporter.
    """
    tool = find_nsys()
    with report.open("rb") as stream:
        head = stream.read(256)
    source = report
    if _STREAM_MAGIC in head[:64]:
        source = _import_stream(tool, report, folder)
    target = folder / "report.sqlite"
    told = _run([tool, "export", "--help"], report)
    blobs = [f"{_BLOBS}=true"] if _BLOBS in told.stdout + told.stderr else []  # frames of Python stacks
    argv = [tool, "export", "--type=sqlite", *blobs, "--force-overwrite=true"]
    done = _run([*argv, f"--output={target}", str(source)], report)
    if done.returncode == 0 and target.is_file():
        return target
    said = done.stderr + done.stdout
    newer = _NEWER.search(said)
    if newer:
        raise InputError(
            f"{report} was recorded by nsys {newer.group(1)}, the installed one is {newer.group(2)}",
            why="an nsys cannot read reports of a newer one",
            fix="export it where it was recorded with `nsys export --type=sqlite`, or name a newer nsys in "
            "PROFRUN_NSYS",
        )
    raise InputError(
        f"{report} cannot be exported (recorded by nsys {recorded_by(head) or 'of unknown version'})",
        why=_last_line(said) or f"nsys export ended with {done.returncode}",
        fix="it was cut short or damaged: copy it again, or record again",
    )


def _import_stream(tool: str, stream: Path, folder: Path) -> Path:
    importer = find_importer(tool)
    if importer is None:
        raise UnavailableError(
            f"{stream} is a raw recording that was never made into a report",
            why="nsys was ended early or found no QdstrmImporter, and none is beside the installed nsys",
            fix="import it with the QdstrmImporter of a full installation of Nsight Systems",
        )
    command = import_of(importer, stream, folder / "report.nsys-rep")
    said = ""
    for _ in range(ATTEMPTS):
        done = _run(list(command.argv), stream, command.environment(os.environ))
        if command.settle(done.returncode):
            return command.report
        said = _last_line(done.stderr + done.stdout) or f"QdstrmImporter ended with {done.returncode}"
    raise InputError(
        f"{stream} cannot be imported",
        why=said,
        fix="it is cut short, or recorded by another version of nsys than the importer's",
    )


def _run(
    argv: list[str], report: Path, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env=environ,
        )
    except OSError as error:
        raise UnavailableError(
            f"{argv[0]} cannot be run", why=str(error), fix="check the installation"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{report} took more than {_TIMEOUT_S} s to export",
            fix="export it by hand and give the SQLite file",
        ) from error


def _last_line(text: str) -> str:
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    return lines[-1] if lines else ""
