"""The in-job part beside the trials of a run: made once, by whichever rank comes first.

The hook must lie in a folder: PYTHONPATH names it, and the sampler is a program of its own.
"""

from __future__ import annotations

import secrets
import shutil
import time
import zipfile
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 30.0
"""How long a rank waits for the one that makes the bundle."""
DIGEST = "digest"
"""File in a bundle that tells its content from that of other versions."""


def place(bundle: Path, digest: str, write: Callable[[Path], object]) -> Path:
    """Make a bundle, whole or not at all, where it is not there yet; returns its folder.

    Several ranks may do this at the same time. Another version of profrun may have put its own bundle there,
    and its trials may still run: then this one is made beside it.

    Args:
        bundle: the folder to make.
        digest: of its content.
        write: fills a folder.

    Raises:
        OSError: it cannot be written.
    """
    beside = bundle.with_name(f"{bundle.name}.{digest[:8]}")
    for folder in (bundle, beside):
        if not folder.exists():
            _make_or_wait(folder, digest, write)
        if _digest(folder) == digest:
            return folder
    raise FileExistsError(f"{beside} is another bundle")


def _make_or_wait(folder: Path, digest: str, write: Callable[[Path], object]) -> None:
    """Make a bundle in the rank that comes first: hundreds of ranks that all make it are a load for the disk.

    The others wait for it; one that waits too long makes it after all: the first may have been killed.
    """
    sign = folder.with_name(f".{folder.name}.making")
    sign.parent.mkdir(parents=True, exist_ok=True)
    try:
        sign.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + PATIENCE_S
        while not folder.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        if not folder.exists():
            _make(folder, digest, write)
        return
    try:
        if not folder.exists():
            _make(folder, digest, write)
    finally:
        sign.rmdir()


def _make(folder: Path, digest: str, write: Callable[[Path], object]) -> None:
    """Make a bundle, unless another rank was faster."""
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")  # containers may share a host and a pid
    made.mkdir(parents=True)
    try:
        write(made)
        (made / DIGEST).write_text(digest, encoding="utf-8")
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not folder.exists():
            raise


def place_from_file(file: Path, bundle: Path) -> Path:
    """Unpack the bundle that one file (``wrap.pyz``) holds; see ``place``."""
    with zipfile.ZipFile(file) as archive:
        return place(bundle, archive.read(DIGEST).decode("utf-8"), archive.extractall)


def _digest(bundle: Path) -> str | None:
    try:
        return (bundle / DIGEST).read_text(encoding="utf-8")
    except OSError:
        return None
