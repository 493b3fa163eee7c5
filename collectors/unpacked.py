"""The packed files of a recording, unpacked into the writer's scratch folder where a reader needs that.

Text that is packed with gzip stays as it is: its readers unpack it on the way. Everything else is unpacked
block by block, and only as long as the disk has room for it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from profrun.collectors.reading import Source
from profrun.collectors.sniff import MOST_FILES, make_source
from profrun.collectors.unpack import Packing, blocks, packing
from profrun.errors import InputError, ProfrunError, UnavailableError

CHECK_BYTES = 64 << 20
"""The free space is looked at whenever that much was written."""
KEEP_FREE = 1 << 30
"""Bytes of the disk that unpacking leaves free: the trace is written there too."""
LAYERS = 3
"""Packed files in packed files: more are refused."""


@dataclass
class Unpacked:
    """The unpacked files of one recording.

    Attributes:
        folder: where they go; made when it is needed.
        names: unpacked file -> the file that was given, for messages.
    """

    folder: Path
    names: dict[Path, Path] = field(default_factory=dict)

    def plain(self, source: Source) -> Source:
        """The source itself, or what is packed in it; of a folder with packed files a copy without.

        Raises:
            InputError: it is cut or damaged, or what is inside is refused.
            UnavailableError: the disk has no room for it.
        """
        with self.named():
            if source.path.is_dir():
                return self._folder(source)
            layers = 0
            while source.packed is not None:
                if layers == LAYERS:
                    raise InputError(
                        f"{source.path} is packed more than {LAYERS} times", fix="unpack it yourself"
                    )
                source = make_source(self._unpack(source.path, source.packed))
                layers += 1
            return source

    def _unpack(self, path: Path, how: Packing) -> Path:
        target = self._place(path, how)
        _write(blocks(path, how), self.names.get(path, path), target)
        self.names[target] = self.names.get(path, path)
        if path in self.names:
            path.unlink()  # a packed file in a packed one
        return target

    def _place(self, path: Path, how: Packing) -> Path:
        """Where the content of a packed file goes; names of folders stay, readers find ranks in them."""
        parent = path.absolute().parent
        suffix = next((one for one in how.suffixes if path.name.lower().endswith(one)), "")
        folder = self.folder / str(len(self.names)) / parent.relative_to(parent.anchor)
        folder.mkdir(parents=True)
        if (parent / "steps.json").is_file():
            (folder / "steps.json").symlink_to(parent / "steps.json")
        return folder / (path.name[: len(path.name) - len(suffix)] or path.name)

    def _folder(self, source: Source) -> Source:
        files = [path for path in islice(sorted(source.path.rglob("*")), MOST_FILES) if path.is_file()]
        packed = {path: one for path in files if (one := _how(path)) is not None}
        if not packed:
            return source
        given = source.path.absolute()
        top = self.folder / str(len(self.names)) / given.relative_to(given.anchor)
        self.names[top] = source.path
        for path in files:
            target = top / path.relative_to(source.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            how = packed.get(path)
            place = path.absolute() if how is None else self.plain(Source(path, b"", False, packed=how)).path
            if not (path.parent / place.name).exists():
                target = target.with_name(place.name)
            target.symlink_to(place)
        return make_source(top)

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Let errors name the files that were given instead of the unpacked ones."""
        try:
            yield
        except ProfrunError as error:
            for target, path in self.names.items():
                old, new = str(target), str(path)
                error.what = error.what.replace(old, new)
                error.why = error.why and error.why.replace(old, new)
                error.fix = error.fix and error.fix.replace(old, new)
            raise


def _how(path: Path) -> Packing | None:
    """How a file of a folder must be unpacked; None for what is not packed, and for what no reader takes."""
    try:
        with path.open("rb") as file:
            return make_source(path).packed if packing(file.read(16)) else None
    except (OSError, InputError):
        return None


def _write(content: Iterator[bytes], path: Path, target: Path) -> None:
    written = checked = 0
    with target.open("wb") as file:
        for block in content:
            file.write(block)
            written += len(block)
            if written - checked >= CHECK_BYTES:
                checked = written
                free = shutil.disk_usage(target.parent).free
                if free < KEEP_FREE:
                    raise UnavailableError(
                        f"{path} does not fit on the disk when it is unpacked",
                        why=f"{written / 1e9:.1f} GB of it are unpacked and {free / 1e9:.1f} GB are left",
                        fix="free some space, or name an --out on another disk",
                    )
