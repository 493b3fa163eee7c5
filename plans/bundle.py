"""The in-job part as files: what is mounted or shipped into every job.

::

    run.py                     starts the wrapper
    sampler.py                 starts the sampler; the wrapper does it
    site/sitecustomize.py      on PYTHONPATH: loads the hook, then the image's own sitecustomize
    shim/profrun/__init__.py   last on sys.path: profrun.range and profrun.step where there is no profrun
    _profrun/...               in_job, contract, and of each profiler's folder what runs inside the job

``write_pyz`` writes the same files as one file, which ``python3`` runs, for launchers that are not profrun's.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import os
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import profrun.collectors
import profrun.contract
import profrun.in_job
from profrun.contract.profilers import UnknownProfilerError, profiler
from profrun.errors import UsageError
from profrun.in_job.wrap_bundle import DIGEST, place
from profrun.plans.model import Plan

PARTS = ("profiler", "wrap", "in_process", "preflight", "unfinished")
"""Modules of a profiler's folder that run inside the job; with them go those that ``in_process`` is made of,
``in_process_*``."""

_RENAMED = {
    "_run.py": "run.py",
    "_sampler.py": "sampler.py",
    "_sitecustomize.py": "site/sitecustomize.py",
    "_shim.py": "shim/profrun/__init__.py",
}


def bundle_files(profilers: Iterable[str] = ()) -> dict[str, bytes]:
    """Path in the bundle -> content, sorted by path. The same tree gives the same bytes.

    Args:
        profilers: names of the profilers that the trials may need; those of other packages come from there.

    Raises:
        UsageError: one of another package is not installed, or its parts import what a job does not have.
    """
    in_job = Path(profrun.in_job.__file__ or "").parent
    contract = Path(profrun.contract.__file__ or "").parent
    collectors = Path(profrun.collectors.__file__ or "").parent
    files: dict[str, bytes] = {"_profrun/__init__.py": b"", "_profrun/collectors/__init__.py": b""}
    for source in in_job.rglob("*.py"):
        name = source.relative_to(in_job).as_posix()
        files[_RENAMED.get(name, f"_profrun/in_job/{name}")] = source.read_bytes()
    for source in contract.glob("*.py"):
        files[f"_profrun/contract/{source.name}"] = source.read_bytes()
    for source in collectors.glob("*/profiler.py"):
        files |= _shipped(source.parent.name, source.parent)
    for name in profilers:
        if f"_profrun/collectors/{name}/profiler.py" not in files:
            files |= _of_package(name)
    return dict(sorted(files.items()))


def _shipped(name: str, folder: Path) -> dict[str, bytes]:
    """What of a profiler's folder runs inside the job."""
    found = {f"_profrun/collectors/{name}/__init__.py": b""}
    for source in sorted(folder.glob("*.py")):
        if source.stem in PARTS or source.stem.startswith("in_process_"):
            found[f"_profrun/collectors/{name}/{source.name}"] = source.read_bytes()
    return found


def _of_package(name: str) -> dict[str, bytes]:
    """As ``_shipped`` of a profiler that another package brings; its imports are those of the job then."""
    try:
        package = profiler(name).package
    except UnknownProfilerError as error:
        raise UsageError(str(error), fix="install the package that brings it") from None
    folder = Path(str(importlib.import_module(f"{package}.profiler").__file__)).parent
    return {path: _in_job_imports(content, package, name) for path, content in _shipped(name, folder).items()}


def _in_job_imports(content: bytes, package: str, name: str) -> bytes:
    """The source with absolute imports of ``profrun.contract`` and of its own package as a job has them.

    Raises:
        UsageError: it imports another part of profrun.
    """
    lines = content.decode("utf-8").splitlines(keepends=True)
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            inside = _in_job_module(node.module, package, name)
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line.replace(f"from {node.module} ", f"from {inside} ", 1)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "profrun":
                    raise _not_in_a_job(name, alias.name)
    return "".join(lines).encode("utf-8")


def _in_job_module(module: str, package: str, name: str) -> str:
    if module == package or module.startswith(f"{package}."):
        return f"_profrun.collectors.{name}{module[len(package) :]}"
    if module == "profrun.contract" or module.startswith("profrun.contract."):
        return f"_{module}"
    if module.partition(".")[0] == "profrun":
        raise _not_in_a_job(name, module)
    return module


def _not_in_a_job(name: str, module: str) -> UsageError:
    return UsageError(
        f"the profiler {name} imports {module}, which is not there inside a job",
        fix="import from profrun.contract with 'from ... import' only, and the rest inside reader.py",
    )


def write_bundle(dest: Path, profilers: Iterable[str] = ()) -> None:
    """Write the bundle into ``dest``, which appears whole or not at all; an older one there is replaced.

    Args:
        profilers: as ``bundle_files`` takes them.

    Raises:
        UsageError: as of ``bundle_files``.
        OSError: the folder cannot be written.
    """
    files = bundle_files(profilers)
    partial = dest.with_name(dest.name + ".partial")
    _remove(partial)
    partial.mkdir()  # and not through a link: it would lead somewhere else
    _write(partial, files)
    _remove(dest)
    partial.rename(dest)


def _remove(folder: Path) -> None:
    """Remove a folder; of a link only the link."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)


def digest_of(files: Mapping[str, bytes]) -> str:
    """What tells the files of a bundle from those of another version."""
    found = hashlib.sha256()
    for name, content in files.items():
        found.update(f"{name} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def place_bundle(bundle: Path, profilers: Iterable[str] = ()) -> Path:
    """Put the bundle beside the trials of a run, as ``profrun wrap`` does in every rank; returns its folder.

    Raises:
        UsageError: as of ``bundle_files``.
        OSError: it cannot be written.
    """
    files = bundle_files(profilers)
    return place(bundle, digest_of(files), lambda folder: _write(folder, files))


PYZ_MAIN = "__main__.py"
_PYZ_SOURCE = "_profrun/in_job/_pyz.py"
_SHEBANG = b"#!/usr/bin/env python3\n"
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a zip file: the same tree gives the same bytes."""


def pyz_bytes(profilers: Iterable[str] = ()) -> bytes:
    """The bundle as one file that ``python3`` runs: ``python3 wrap.pyz --out DIR -- COMMAND``.

    Args:
        profilers: as ``bundle_files`` takes them.

    Raises:
        UsageError: as of ``bundle_files``.
    """
    files = bundle_files(profilers)
    more = {PYZ_MAIN: files[_PYZ_SOURCE], DIGEST: digest_of(files).encode()}
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**more, **files}.items():
            entry = zipfile.ZipInfo(name, _OLDEST)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return _SHEBANG + held.getvalue()


def write_pyz(dest: Path, profilers: Iterable[str] = ()) -> None:
    """Write the bundle as one file, whole or not at all; an older one there is replaced.

    Raises:
        UsageError: as of ``bundle_files``.
        OSError: it cannot be written.
    """
    partial = dest.with_name(f".{dest.name}.{os.getpid()}.tmp")
    dest.parent.mkdir(parents=True, exist_ok=True)
    partial.write_bytes(pyz_bytes(profilers))
    partial.chmod(0o755)
    partial.replace(dest)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def profilers_of(plan: Plan) -> list[str]:
    """Names of all profilers that a trial of the plan may need."""
    return sorted({name for trial in plan.trials for name in trial.options})
