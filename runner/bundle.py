"""``profrun bundle``: a run as one archive that can be handed on.

In it are the specs and the plan without secrets, how each trial ended and on what it ran, step times,
samples, traces, a summary of each, the comparisons and the report, and ``MANIFEST.json`` with the SHA-256 of
each. Never in it: ``private.json``, the in-job part, the log of the driver and earlier attempts; and, unless
it is asked for, the profilers' own files and what the programs printed. Unpacked, it is a run that ``profrun
report``, ``summary``, ``compare`` and ``status`` read.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import sha256_of
from profrun.contract.codec import to_json
from profrun.contract.paths import LAUNCHES
from profrun.contract.redact import Redactor
from profrun.contract.secret_shapes import SHAPES
from profrun.errors import InputError, UsageError
from profrun.runner.bundle_search import Place, Search
from profrun.runner.known_secrets import known_secrets
from profrun.store.files import explained, read_json
from profrun.store.lock import is_held
from profrun.store.runs import Run
from profrun.store.state import read_state
from profrun.traces.trace import Trace
from profrun.version import VERSION

MANIFEST = "MANIFEST.json"
_OF_RUN = (
    "job.yaml",
    "resolved.yaml",
    "plan.json",
    "events.jsonl",
    "comparison.json",
    "improvement.json",
    "improved.yaml",
    "report.html",
)
_OF_TRIAL = (
    "command.json",
    "exit.json",
    "provenance.json",
    "samples.*.jsonl",
    "trace/*",
    "raw/rank*/steps*.json",
    "raw/rank*/results*.json",
)
_RAW = ("raw/**/*", "std*.log")


@dataclass(frozen=True)
class Packed:
    """An archive that was written.

    Attributes:
        files: how many it has; size: its bytes.
        shapes, values: how many kinds of secrets and known values it was searched for.
        raw: whether it has the profilers' own files.
    """

    path: str
    files: int
    size: int
    shapes: int
    values: int
    raw: bool = False


def pack(run: Run, out: Path, *, raw: bool = False) -> Packed:
    """Write the archive of a run, after every file of it was searched for secrets.

    Args:
        out: the archive, ``.tar.gz``; the same run gives the same bytes.
        raw: also the profilers' own files and what the programs printed.

    Raises:
        InputError: a secret is in one of the files, or a file cannot be searched; nothing is written then.
        UsageError: ``out`` is there already, or the run has not ended.
        UnavailableError: the archive cannot be written.
    """
    if out.exists():
        raise UsageError(f"{out} is there already", fix="remove it, or name another file with --out FILE")
    if is_held(run.lock):
        raise UsageError(f"{run.name} is still running", fix="wait for its end: profrun status")
    values = known_secrets(run, os.environ)
    search = Search(values)
    with tempfile.TemporaryDirectory(prefix="profrun-") as scratch:
        files = {**dict(_files(run, raw=raw)), **_cleaned(run, Path(scratch)), **_numbers(run, Path(scratch))}
        found = [place for name, path in sorted(files.items()) for place in search.file(path, name)]
        if found:
            raise _refused(run, found)
        with explained(out):
            size = _write(out, run.name, files)
    return Packed(str(out), len(files) + 1, size, len(SHAPES), len(values), raw)


def _files(run: Run, *, raw: bool) -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of what is packed; links and what is no plain file are left out."""
    patterns = [*_OF_RUN, f"{LAUNCHES}/*/*"]
    patterns += [f"trials/*/{one}" for one in (*_OF_TRIAL, *(_RAW if raw else ()))]
    root = run.path.resolve()
    for pattern in patterns:
        for path in sorted(run.path.glob(pattern)):
            inside = path.resolve().is_relative_to(root)
            if path.is_file() and not path.is_symlink() and inside:
                yield path.relative_to(run.path).as_posix(), path


def _cleaned(run: Run, scratch: Path) -> dict[str, Path]:
    """The documents that an older profrun wrote with secrets, without those that names and forms tell."""
    redactor = Redactor()
    cleaned = {}
    for path in (run.job, run.resolved):
        if path.is_file():
            before = path.read_text(encoding="utf-8", errors="replace")
            cleaned[path.name] = (before, redactor.text(before))
    for path in (run.plan, *sorted(run.path.glob("trials/*/command.json"))):
        document = read_json(path)
        if document is not None:
            shown = json.dumps(_shown(document, redactor), indent=1) + "\n"
            cleaned[path.relative_to(run.path).as_posix()] = (json.dumps(document, indent=1) + "\n", shown)
    found = {}
    for number, (name, (before, after)) in enumerate(sorted(cleaned.items())):
        if before != after:
            found[name] = scratch / f"clean{number}"
            found[name].write_text(after, encoding="utf-8")
    return found


def _shown(value: object, redactor: Redactor) -> object:
    """A document without secrets: ``argv`` is a command line, keys of ``env`` and ``values`` are names."""
    if isinstance(value, list):
        return [_shown(item, redactor) for item in value]
    if not isinstance(value, dict):
        return redactor.value(value)
    return {
        key: list(redactor.arguments([str(word) for word in item]))
        if key == "argv" and isinstance(item, list)
        else redactor.value(item)
        if key in ("env", "values")
        else _shown(item, redactor)
        for key, item in value.items()
    }


def _numbers(run: Run, scratch: Path) -> dict[str, Path]:
    """``summary.json`` of each trace: what ``profrun summary --json`` prints."""
    found = {}
    for record in read_state(run).trials:
        if record.trace is None:
            continue
        with Trace(record.trace) as trace:
            summary = to_json(summarize(trace))
        path = scratch / f"summary{record.index}.json"
        path.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        found[f"trials/{record.id}/summary.json"] = path
    return found


def _refused(run: Run, found: list[Place]) -> InputError:
    first = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return InputError(
        f"{run.name} is not packed: {first.file}, {first.where}, holds {first.kind}{more}",
        why="what a program prints, names and ranges that it makes are kept as they are",
        fix="make an old report anew with `profrun report`, take the secret out, or leave out --raw",
    )


def _write(out: Path, top: str, files: Mapping[str, Path]) -> int:
    """Write the archive under another name and rename it; returns its size. No time and no owner is in it."""
    sums: dict[str, str] = {}
    made = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with (
            made.open("xb") as raw,
            gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name, path in sorted(files.items()):
                sums[name] = sha256_of(path)
                with path.open("rb") as file:
                    archive.addfile(_entry(f"{top}/{name}", path.stat().st_size), file)
            manifest = {"format": 1, "profrun": VERSION, "run": top, "sha256": sums}
            text = (json.dumps(manifest, indent=1) + "\n").encode()
            archive.addfile(_entry(f"{top}/{MANIFEST}", len(text)), io.BytesIO(text))
        size = made.stat().st_size
        made.replace(out)
    finally:
        made.unlink(missing_ok=True)
    return size


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o644, 0
    return entry
