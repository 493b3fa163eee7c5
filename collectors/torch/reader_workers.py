"""Parse the pieces of a kineto file in threads: rows of the staging tables, as columns of integers."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.collectors.torch.events import MISSING, Field, Kind, Parser, Refused
from profrun.collectors.torch.reader_cut import BLOCK, EventFile, Piece
from profrun.collectors.torch.reader_stage import (
    ARGS,
    COLLECTIVE,
    GPU,
    GPU_CATS,
    MEMORY,
    NAMED_CATS,
    OTHER,
    OWNER,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORKERS = 2
"""More would each hold a piece and its columns, and DuckDB needs cores too."""

_KINDS: dict[str, Kind] = {"VARCHAR": "text", "BIGINT": "integer", "DOUBLE": "real", "BIGINT[]": "triple"}
_AS_WRITTEN = {"mem_bytes": "Bytes", "own_rank": "Rank"}
"""Keys that ``reader_stage`` renames for DuckDB; this parser tells them apart by their case."""
_TOP = ("ph", "cat", "name", "pid", "tid")
FIELDS = (
    *(Field(name, name, "text", inside=False) for name in _TOP),
    Field("flow", "id", "integer", inside=False),
    *(Field(name, name, "microseconds", inside=False) for name in ("ts", "dur")),
    *(Field(name, key, _KINDS[type_]) for name, key, type_ in ARGS if name not in _AS_WRITTEN),
    *(Field(name, key, "integer") for name, key in _AS_WRITTEN.items()),
    Field("xid", "external id", "integer"),  # as written before 2022
    Field("dims", "Input dims", "text"),
)
TEXTS = frozenset(item.column for item in FIELDS if item.kind == "text")
_AXES = ("_x", "_y", "_z")
TRIPLES = {
    item.column: tuple(item.column + axis for axis in _AXES) for item in FIELDS if item.kind == "triple"
}


def _flat(names: Sequence[str]) -> tuple[str, ...]:
    """Columns as the parser has them: a triple is three."""
    return tuple(flat for name in names for flat in TRIPLES.get(name, (name,)))


TABLES = {
    "core": ("ts", "dur", "name"),
    "gpu": _flat(GPU),
    "op": ("xid", "dims", "types", "seq"),
    "coll": COLLECTIVE,
    "memory": MEMORY,
    "other": OTHER,
}
"""Columns of the staging tables, beside ``row``; texts as numbers.

core also has ``owner``, ``tie`` (the first id of an event: it decides between events of the same time) and
``linked`` (that id is the correlation).
"""

Columns = dict[str, "NDArray[Any]"]


class Numbers:
    """Texts and owners of all files of a recording, numbered from 0 in the order they are met.

    Attributes:
        texts: text -> number.
        owners: (file, cat, pid, tid, device, stream) -> number; texts as numbers, -1 for none.
    """

    def __init__(self) -> None:
        self.texts: dict[str, int] = {"X": 0, "[memory]": 1}
        self.owners: dict[tuple[int, ...], int] = {}
        self._lock = threading.Lock()
        for name in (*GPU_CATS, *NAMED_CATS):
            self.text(name)
        self.gpu = range(2, 2 + len(GPU_CATS))
        self.named = range(self.gpu.stop, len(self.texts))

    def text(self, text: str) -> int:
        """Number of a text."""
        with self._lock:
            return self.texts.setdefault(text, len(self.texts))

    def owner(self, owner: tuple[int, ...]) -> int:
        """Number of an owner."""
        with self._lock:
            return self.owners.setdefault(owner, len(self.owners))


@dataclass
class _Worker:
    """One parser, and what its numbers are in the recording.

    Attributes:
        src: number of the file.
        buffer: text of a piece, used again for the next.
        texts: parser's text -> recording's; the last entry is -1, for no text.
        owners: parser's owner -> recording's.
    """

    src: int
    numbers: Numbers
    parser: Parser = field(default_factory=lambda: Parser(FIELDS, OWNER))
    buffer: mmap = field(default_factory=lambda: mmap(-1, BLOCK + (1 << 20)))  # costs what is written to it
    texts: NDArray[np.int64] = field(default_factory=lambda: np.full(1, -1, dtype=np.int64))
    owners: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def read(self, file: EventFile, piece: Piece, base: int) -> Iterator[dict[str, Columns]]:
        """Rows of each table in a piece whose events are numbered from ``base``, some at a time."""
        text: bytes | mmap = self.buffer
        end = file.load(piece, self.buffer)
        if end is None:
            text = file.text(piece)
            end = len(text)
        at = 0
        while at < end:
            rows, at = self.parser.read(text, at, end)
            self._learn()
            yield self._split(rows, base)
            base += rows

    def _learn(self) -> None:
        """Number what the parser met for the first time."""
        texts = [self.numbers.text(plain(raw)) for raw in self.parser.texts(len(self.texts) - 1)]
        if texts:
            self.texts = np.concatenate([self.texts[:-1], np.array([*texts, -1], dtype=np.int64)])
        owners = [self._owner(owner) for owner in self.parser.owners(len(self.owners))]
        if owners:
            self.owners = np.concatenate([self.owners, np.array(owners, dtype=np.int64)])

    def _owner(self, owner: Sequence[int]) -> int:
        named = zip(OWNER, owner, strict=True)
        values = (int(self.texts[max(value, -1)]) if name in TEXTS else value for name, value in named)
        return self.numbers.owner((self.src, *values))

    def _column(self, name: str, rows: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        raw: NDArray[np.int64] = self.parser.values[self.parser.columns[name]][rows]
        return self.texts[np.maximum(raw, -1)] if name in TEXTS else raw

    def _split(self, count: int, base: int) -> dict[str, Columns]:
        every = slice(0, count)
        complete = self._column("ph", every) == 0
        cat = self._column("cat", every)
        gpu = (cat >= self.numbers.gpu.start) & (cat < self.numbers.gpu.stop)
        named = (cat >= self.numbers.named.start) & (cat < self.numbers.named.stop)
        sample = (self._column("name", every) == 1) & self._any(("allocated", "reserved", "mem_bytes"), every)
        masks = {
            "core": complete,
            "gpu": complete & (gpu | self._any(("grid_x", "smem"), every)),
            "op": complete & named,
            "coll": complete & self._any(COLLECTIVE, every),
            "memory": ~complete & sample,
            "other": ~complete & ~sample,
        }
        found: dict[str, Columns] = {}
        for table, mask in masks.items():
            rows = np.flatnonzero(mask)
            if rows.size:
                found[table] = {"row": rows + base} | {n: self._column(n, rows) for n in TABLES[table]}
            if rows.size and table == "core":
                found[table]["owner"] = self.owners[self._column("owner", rows)]
                found[table]["tie"], found[table]["linked"] = self._tie(rows)
        return found

    def _any(self, names: Sequence[str], rows: slice) -> NDArray[np.bool_]:
        """Where at least one of some columns has a value."""
        places = [self.parser.columns[name] for name in names]
        found: NDArray[np.bool_] = (self.parser.values[places, rows] != MISSING).any(axis=0)
        return found

    def _tie(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The first id that is there, and whether it is the correlation."""
        found, *others = (self._column(name, rows) for name in ("corr", "xid", "pyid"))
        linked: NDArray[np.bool_] = found != MISSING
        for other in others:
            found = np.where(found == MISSING, other, found)
        return found, linked


def plain(raw: bytes) -> str:
    """A JSON value as text: a string's own, an array or object without blanks, anything else as it stands.

    Raises:
        Refused: it holds a number that no float64 or no Python integer takes.
    """
    text = raw.decode()
    if not text.startswith(('"', "[", "{")):
        return text
    try:
        value = json.loads(text)
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise Refused(text[:120]) from error


class _Hand:
    """Where workers leave what they made for the one who gives it to DuckDB."""

    def __init__(self) -> None:
        self._ready: queue.Queue[dict[str, Columns] | BaseException | None] = queue.Queue(maxsize=WORKERS)
        self.stop = threading.Event()

    def offer(self, item: dict[str, Columns] | BaseException | None) -> None:
        """Leave a part, an error, or None at a worker's end."""
        while not self.stop.is_set():  # the reader may have ended: never wait for it without a limit
            with contextlib.suppress(queue.Full):
                self._ready.put(item, timeout=0.05)
                return

    def take(self) -> Iterator[dict[str, Columns]]:
        """Parts until every worker has ended; raises what one of them raised."""
        ended = 0
        while ended < WORKERS:
            item = self._ready.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                ended += 1
            else:
                yield item


def parsed(
    file: EventFile, numbers: Numbers, src: int, first: int
) -> Generator[dict[str, Columns], None, None]:
    """What the workers make of the file's pieces, in any order; what one raises is raised here.

    Close it: all threads have ended when ``close`` returns.
    """
    hand, cutting, pieces = _Hand(), threading.Lock(), enumerate(file.pieces())

    def work(worker: _Worker) -> None:
        try:
            while not hand.stop.is_set():
                with cutting:
                    number, piece = next(pieces, (0, None))
                if piece is None:
                    break
                for part in worker.read(file, piece, first + (number << 32)):
                    hand.offer(part)
            hand.offer(None)
        except BaseException as error:
            hand.offer(error)
        finally:
            worker.parser.close()

    workers = [_Worker(src, numbers) for _ in range(WORKERS)]
    threads = [
        threading.Thread(target=work, args=[one], name="profrun-parse", daemon=True) for one in workers
    ]
    for thread in threads:
        thread.start()
    try:
        yield from hand.take()
    finally:
        hand.stop.set()
        for thread in threads:
            thread.join()
