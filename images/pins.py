"""Pins: which digest a tag stands for, as the user has recorded it; a tag can be moved, a digest cannot.

The file is ``$PROFRUN_PINS``, else ``~/.config/profrun/pins.yaml`` (XDG): a mapping of reference to digest. A
digest is ``name@sha256:...`` of a registry, or ``sha256:...``, the id of an image that no registry knows. A
user's pin goes before the digest that the catalogue states.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from profrun.errors import UnavailableError, UsageError
from profrun.images.catalogue import load
from profrun.images.engine import docker_errors
from profrun.images.engine_kind import stated_kind

if TYPE_CHECKING:
    import docker

_DIGEST = re.compile(r"(?:[^\s@]+@)?sha256:[0-9a-f]{64}")
_HEAD = "# Written by `profrun images pin`: what each tag stands for.\n"
Pins = Mapping[str, str]
"""Reference -> digest."""


def pins_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where the user's pins are."""
    around = os.environ if environ is None else environ
    if around.get("PROFRUN_PINS"):
        return Path(around["PROFRUN_PINS"])
    config = around.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(config) / "profrun" / "pins.yaml"


def users_pins(path: Path | None = None) -> dict[str, str]:
    """The user's pins; none where there is no file.

    Raises:
        UsageError: the file is not such a mapping.
    """
    file = path or pins_file()
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(
            f"cannot read {file}", why=" ".join(str(error).split()), fix="mend or delete it"
        ) from None
    pairs = found or {}
    if not isinstance(pairs, dict) or not all(
        isinstance(value, str) and _DIGEST.fullmatch(value) for value in pairs.values()
    ):
        raise UsageError(
            f"{file} is not a mapping of references to digests",
            why="a digest is name@sha256:... or sha256:..., with 64 hexadecimal digits",
            fix="mend it, or delete it and use `profrun images pin`",
        )
    return {str(name): str(value) for name, value in pairs.items()}


def known_pins(path: Path | None = None) -> dict[str, str]:
    """The digests that the catalogue states, and over them the user's pins.

    Raises:
        UsageError: the user's file is wrong.
    """
    stated = {plain(base.reference): base.digest for base in load() if base.digest}
    return {**stated, **{plain(name): value for name, value in users_pins(path).items()}}


def write_pins(pins: Pins, path: Path | None = None) -> Path:
    """Write the user's pins, whole or not at all; returns the file.

    Raises:
        UnavailableError: it cannot be written.
    """
    file = path or pins_file()
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(_HEAD + yaml.safe_dump(dict(sorted(pins.items()))) if pins else _HEAD)
        part.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise UnavailableError(f"cannot write {file}", why=str(error), fix="set PROFRUN_PINS") from None
    return file


def plain(name: str) -> str:
    """``docker.io/library/debian`` -> ``debian:latest``: with its tag, without what engines leave out.

    Pure. Two names of one image are the same afterwards.
    """
    short = name.removeprefix("docker.io/").removeprefix("library/")
    return short if "@" in short or ":" in short.rpartition("/")[2] else f"{short}:latest"


def pinned(name: str, pins: Pins) -> str | None:
    """The digest that this reference is pinned to. None: it is not pinned, or is a digest itself."""
    return None if "sha256:" in name else pins.get(plain(name))


def check_pinnable(name: str) -> None:
    """Refuse what no pin can hold.

    Raises:
        UsageError: it names a digest already, or an image that profrun builds.
    """
    if "sha256:" in name:
        raise UsageError(f"{name} is a digest already", fix="pin a tag")
    if name in ("auto", "cuda", "rocm", "none") or plain(name).startswith("profrun/"):
        raise UsageError(
            f"{name} is built here, and found again by the key of what made it",
            fix="pin its base: `profrun images list` shows it",
        )


def moved_text(name: str, pin: str, now: str) -> str | None:
    """What to say when a tag means another image than its pin; None where it means the same. Pure.

    Args:
        now: what the tag means now, as digest or id; empty: nobody knows.
    """
    if not now or pin.rpartition("@")[2] == now.rpartition("@")[2]:
        return None
    return (
        f"{name} has moved: it is pinned to {_short(pin)} and means {_short(now)} now; the pinned one is "
        f"used (`profrun images pin {name}` takes the new one)"
    )


def _short(digest: str) -> str:
    return digest.rpartition("@")[2][: len("sha256:") + 12]


def registry_digest(client: docker.DockerClient, name: str) -> str:
    """What the registry says that a tag means now, as ``name@sha256:...``; nothing is pulled.

    Raises:
        UnavailableError: the registry cannot be reached, refuses, has no such image, or cannot be asked.
    """
    import docker.errors

    with docker_errors(f"the registry does not say what {name} is"):
        try:
            found = client.images.get_registry_data(name)
        except docker.errors.NotFound as error:
            if not stated_kind(client.version(), {}).podman:
                raise
            raise UnavailableError(
                f"Podman does not say what the registry has of {name}",
                why="its Docker-compatible API has no such question",
                fix=f"`podman pull {name}`, then `profrun images pin {name}`",
            ) from error
    repository = plain(name).rpartition(":")[0]
    return f"{repository}@{found.id}"
