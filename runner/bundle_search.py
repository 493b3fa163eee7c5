"""Looks for secrets in files: by the forms of ``contract.secret_shapes``, and by values that are known.

Texts and binary files are searched as bytes, ``.gz`` files unpacked, and the text columns of Parquet files by
DuckDB, because their pages are compressed.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

from profrun.collectors.unpack import DAMAGED
from profrun.contract.redact import HIDDEN, Redactor, spellings
from profrun.contract.secret_shapes import any_shape, find_shapes
from profrun.errors import InputError
from profrun.traces.engine_path import sql_path

_CHUNK = 4 << 20
_OVERLAP = 1 << 14
"""Characters of a chunk that are searched again with the next one: a secret may lie across the edge."""
KNOWN = "a value that this job or this environment keeps secret"


@dataclass(frozen=True)
class Place:
    """Where a secret is: the file, the line or the column in it, and its kind; never the secret."""

    file: str
    where: str
    kind: str


@dataclass(frozen=True)
class Search:
    """What is looked for.

    Attributes:
        values: known secrets.
    """

    values: tuple[str, ...] = ()
    _plain: Redactor = field(default_factory=Redactor)

    @cached_property
    def _known(self) -> re.Pattern[str] | None:
        forms = sorted({form for value in self.values for form in spellings(value)})
        return re.compile("|".join(map(re.escape, forms))) if forms else None

    def file(self, path: Path, name: str) -> Iterator[Place]:
        """The secrets in a file.

        Args:
            name: how places call it.

        Raises:
            InputError: it cannot be searched, so nobody knows what is in it.
        """
        try:
            if path.suffix == ".parquet":
                yield from self._parquet(path, name)
            elif path.suffix == ".gz":
                with gzip.open(path) as file:
                    yield from self._stream(cast("BinaryIO", file), name)
            else:
                with path.open("rb") as plain:
                    yield from self._stream(plain, name)
        except DAMAGED as error:
            raise InputError(f"{name} cannot be searched for secrets", why=str(error)[:200]) from error

    def text(self, text: str) -> Iterator[tuple[int, str]]:
        """(offset, kind) of the secrets in a text."""
        for found in find_shapes(text):
            if text[found.start : found.end] != HIDDEN:
                yield found.start, found.shape
        if self._known is not None:
            for match in self._known.finditer(text):
                yield match.start(), KNOWN

    def _stream(self, file: BinaryIO, name: str) -> Iterator[Place]:
        line, kept = 1, ""
        while data := file.read(_CHUNK):
            text = kept + data.decode("utf-8", errors="surrogateescape")
            for start, kind in self.text(text):
                yield Place(name, f"line {line + text.count(chr(10), 0, start)}", kind)
            cut = max(0, len(text) - _OVERLAP)
            line += text.count("\n", 0, cut)
            kept = text[cut:]

    def _parquet(self, path: Path, name: str) -> Iterator[Place]:
        import duckdb

        pattern = any_shape() + "".join(
            f"|{re.escape(form)}" for value in self.values for form in sorted(spellings(value))
        )
        source = f"read_parquet({sql_path(path)})"
        try:
            with duckdb.connect() as con:
                columns = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
                for column, kind, *_ in columns:
                    if "VARCHAR" not in kind and kind not in ("JSON", "BLOB"):
                        continue
                    quoted = '"' + column.replace('"', '""') + '"'
                    query = (
                        f"SELECT DISTINCT {quoted}::VARCHAR FROM {source} "
                        f"WHERE regexp_matches({quoted}::VARCHAR, ?, 'i') LIMIT 1000"
                    )
                    for (text,) in con.execute(query, [pattern]).fetchall():
                        yield from (Place(name, f"column {column}", found) for _, found in self.text(text))
        except duckdb.Error as error:
            raise InputError(f"{name} cannot be searched for secrets", why=str(error)[:200]) from error
