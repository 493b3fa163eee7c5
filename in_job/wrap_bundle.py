"""The bundle as one file (``wrap.pyz``), unpacked beside the trials of the run that it records.

The hook must lie in a folder: PYTHONPATH names it, and the sampler is a program of its own.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import socket
import zipfile
from pathlib import Path

MARK = "digest"
"""File in an unpacked bundle: which file it was unpacked from."""


def unpack_bytes(content: bytes, bundle: Path) -> Path:
    """Unpack a bundle, whole or not at all, where it is not there yet; returns its folder.

    Several ranks may do this at the same time. Another version of profrun may have unpacked its own bundle
    there, and its trials may still run: then this one is unpacked beside it.

    Args:
        content: of the ``.pyz``.
        bundle: the folder to make.

    Raises:
        OSError: it cannot be written.
    """
    digest = hashlib.sha256(content).hexdigest()
    if bundle.exists() and _digest(bundle) != digest:
        bundle = bundle.with_name(f"{bundle.name}.{digest[:8]}")
    if bundle.exists():
        return bundle
    made = bundle.with_name(f".{bundle.name}.{socket.gethostname()}.{os.getpid()}")
    made.mkdir(parents=True)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(made)
        (made / MARK).write_text(digest, encoding="utf-8")
        made.rename(bundle)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not bundle.exists():
            raise
        return unpack_bytes(content, bundle.with_name(bundle.name.partition(".")[0]))
    return bundle


def _digest(bundle: Path) -> str | None:
    try:
        return (bundle / MARK).read_text(encoding="utf-8")
    except OSError:
        return None
