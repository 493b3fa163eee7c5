"""Where a folder was made, in a form that nobody else can write: its path, sealed by a key of the user.

The key is a file in the user's own state folder, made when the first run is. A folder that was sent, copied
or moved does not fit its seal: who made the folder cannot make the seal of another user or path.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from profrun.contract.safe_files import read_file

_BYTES = 32


@dataclass(frozen=True)
class Place:
    """Where a folder was made.

    Attributes:
        path: the folder, with all links resolved.
        host: name of the machine.
        uid: number of the user; None on systems without such numbers.
        owner: number of the user to whom the folder belonged then; some file systems show another one.
        seal: of path and owner, by the user's key; None where no key can be kept.
    """

    path: str
    host: str
    uid: int | None
    owner: int | None
    seal: str | None


def state_folder() -> Path | None:
    """Where profrun keeps what is the user's and no setting (XDG); None: the user has no home."""
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "profrun"
    except RuntimeError:
        return None


def place_of(folder: Path) -> Place:
    """This place, sealed, as the first event of a run keeps it.

    Raises:
        OSError: the folder is not there.
    """
    path = os.path.realpath(folder)
    owner = Path(path).stat().st_uid
    return Place(path, socket.gethostname(), _uid(), owner, _seal(path, owner, make=True))


def is_here(place: Place, folder: Path) -> bool:
    """Whether this user made or accepted this folder at this place."""
    path = os.path.realpath(folder)
    seal = _seal(path, place.owner, make=False)
    if seal is not None:
        return place.seal is not None and hmac.compare_digest(place.seal.encode(), seal.encode())
    return place.seal is None and (place.path, place.host, place.uid) == (path, socket.gethostname(), _uid())


def _uid() -> int | None:
    if sys.platform == "win32":
        return None
    return os.getuid()


def _seal(path: str, owner: int | None, *, make: bool) -> str | None:
    key = _key(make=make)
    return None if key is None else hmac.new(key, os.fsencode(f"{owner} {path}"), "sha256").hexdigest()


def _key(*, make: bool) -> bytes | None:
    """The user's key; None where there is none and none is made."""
    folder = state_folder()
    if folder is None:
        return None
    file = folder / "key"
    with contextlib.suppress(OSError):
        if make and not file.exists():
            _make_key(file)
        found = read_file(file, _BYTES, follow=True)
        return found if len(found) == _BYTES else None
    return None


def _make_key(file: Path) -> None:
    """Make the key, unless another process is first.

    Raises:
        OSError: it cannot be kept.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    own = file.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(secrets.token_bytes(_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(own, file)
    finally:
        own.unlink(missing_ok=True)
