"""The in-job part as files: what is mounted or shipped into every job.

::

    run.py                     starts the wrapper
    site/sitecustomize.py      on PYTHONPATH: loads the hook, then the image's own sitecustomize
    shim/profrun/__init__.py   last on sys.path: profrun.range and profrun.step where there is no profrun
    _profrun/...               in_job, contract, and of each profiler's folder what runs inside the job
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import profrun.collectors
import profrun.contract
import profrun.in_job

_RENAMED = {
    "_run.py": "run.py",
    "_sitecustomize.py": "site/sitecustomize.py",
    "_shim.py": "shim/profrun/__init__.py",
}


def bundle_files() -> dict[str, bytes]:
    """Path in the bundle -> content, sorted by path. The same tree gives the same bytes."""
    in_job = Path(profrun.in_job.__file__ or "").parent
    contract = Path(profrun.contract.__file__ or "").parent
    collectors = Path(profrun.collectors.__file__ or "").parent
    package = {"__init__.py", "collectors/__init__.py"}
    files: dict[str, bytes] = {f"_profrun/{name}": b"" for name in package}
    for source in in_job.glob("*.py"):
        target = _RENAMED.get(source.name, f"_profrun/in_job/{source.name}")
        files[target] = source.read_bytes()
    for source in contract.glob("*.py"):
        files[f"_profrun/contract/{source.name}"] = source.read_bytes()
    for part in ("profiler", "wrap", "in_process", "preflight"):
        for source in collectors.glob(f"*/{part}.py"):
            files[f"_profrun/collectors/{source.parent.name}/__init__.py"] = b""
            files[f"_profrun/collectors/{source.parent.name}/{part}.py"] = source.read_bytes()
    return dict(sorted(files.items()))


def write_bundle(dest: Path) -> None:
    """Write the bundle into ``dest``, which appears whole or not at all; an older one there is replaced.

    Raises:
        OSError: the folder cannot be written.
    """
    partial = dest.with_name(dest.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for name, content in bundle_files().items():
        path = partial / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if dest.exists():
        shutil.rmtree(dest)
    partial.rename(dest)


def bundle_digest() -> str:
    """``sha256:...`` over all paths and contents: which in-job part a run was made with."""
    digest = hashlib.sha256()
    for name, content in bundle_files().items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return "sha256:" + digest.hexdigest()
