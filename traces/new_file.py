"""Files that an export writes: each appears whole or not at all, and none is overwritten."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from profrun.errors import UnavailableError, UsageError


def refuse_existing(out: Path) -> None:
    """Nothing, where no such file is there.

    Raises:
        UsageError: it is.
    """
    if out.exists():
        raise UsageError(f"{out} exists already", fix="name another file or remove it")


@contextlib.contextmanager
def new_file(out: Path) -> Iterator[IO[bytes]]:
    """The file, open for writing; it is compressed by gzip when its name ends in .gz.

    It has another name until the end of the block. After an error nothing is left of it.

    Raises:
        UnavailableError: it cannot be written.
    """
    partial = out.with_name(out.name + ".partial")
    try:
        with _open(partial, compressed=out.suffix == ".gz") as file:
            yield file
        partial.replace(out)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UnavailableError(
            f"{out} cannot be written", why=error.strerror, fix="free space or name another"
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _open(path: Path, *, compressed: bool) -> IO[bytes]:
    if compressed:
        return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=5))
    return path.open("wb", buffering=1 << 20)
