"""A build as a value: which Dockerfile on which base, and the key under which its result is found again."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

from profrun.errors import UsageError
from profrun.images.catalogue import KINDS, Kind, default_base

CONTEXT = "images/context"
"""Folder of the files that the Dockerfiles copy, relative to the checkout's root."""

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_ARG = re.compile(rb"^ARG[ \t]+([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a build makes, but for the content of the base.

    Attributes:
        kind: cuda or rocm.
        base: reference of the base image, as it was named.
        args: build arguments, without BASE.
        dockerfile: the Dockerfile's bytes.
        context: path inside the build context -> bytes.
    """

    kind: Kind
    base: str
    args: Mapping[str, str] = field(default_factory=dict)
    dockerfile: bytes = b""
    context: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def known_args(self) -> tuple[str, ...]:
        """Build arguments that the Dockerfile has, without BASE."""
        return tuple(name for found in _ARG.findall(self.dockerfile) if (name := found.decode()) != "BASE")

    @property
    def name(self) -> str:
        """Repository name of the images it makes."""
        return f"profrun/{self.kind}"

    def key(self, base_digest: str) -> str:
        """SHA-256 (hex) over Dockerfile, context, arguments and the base's digest.

        Two builds with one key make the same image; names and tags are not in it, so a tag that was moved to
        another image is another key.

        Args:
            base_digest: ``sha256:...`` of the base: its repository digest, or its image id if it has none.
        """
        parts: list[bytes] = [b"profrun image 1", self.kind.encode(), base_digest.encode(), self.dockerfile]
        for path in sorted(self.context):
            parts += [path.encode(), self.context[path]]
        for name in sorted(self.args):
            parts += [name.encode(), self.args[name].encode()]
        digest = hashlib.sha256()
        for part in parts:  # each with its length: no two lists run together into the same bytes
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.hexdigest()

    def tar(self) -> bytes:
        """The build context as an uncompressed tar; the same bytes for the same recipe."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, content in sorted({"Dockerfile": self.dockerfile, **self.context}.items()):
                info = tarfile.TarInfo(path)  # owner 0, time 0
                info.size = len(content)
                info.mode = 0o644
                archive.addfile(info, io.BytesIO(content))
        return buffer.getvalue()


def recipe(kind: str, base: str | None = None, args: Mapping[str, str] | None = None) -> Recipe:
    """The recipe of one of our images.

    Args:
        kind: cuda or rocm.
        base: image to build on; None takes the catalogue's default.
        args: build arguments over the Dockerfile's own defaults.

    Raises:
        UsageError: no such kind, or the Dockerfile has no such argument.
    """
    if kind not in KINDS:
        raise UsageError(f"no image {kind!r}", fix=f"choose one of {', '.join(KINDS)}")
    package = resources.files("profrun")
    dockerfile = (package / f"Dockerfile.{kind}").read_bytes()
    found = Recipe(
        kind=kind,
        base=base or default_base(kind).reference,
        args=dict(args or {}),
        dockerfile=dockerfile,
        context=_copied(dockerfile, resources.files("profrun.images") / "context"),
    )
    for name in found.args:
        if name not in found.known_args:
            raise UsageError(
                f"Dockerfile.{kind} has no argument {name}",
                fix=f"it has {', '.join(sorted(found.known_args))}"
                + ("; the base is --base" if name == "BASE" else ""),
            )
    return found


def _copied(dockerfile: bytes, folder: Traversable) -> dict[str, bytes]:
    """The context: the files that the Dockerfile names; a change to another one rebuilds nothing."""
    return {
        f"{CONTEXT}/{file.name}": file.read_bytes()
        for file in folder.iterdir()
        if f"{CONTEXT}/{file.name}".encode() in dockerfile
    }
