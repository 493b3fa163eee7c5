"""Invariants that join slices with slices, tracks and side tables, checked on arrays.

Slice ids are dense from 0 (``Slices.ids`` proves it), so a slice's id is its index in an array. A join over
two million slices costs 0.3 CPU seconds in the engine; here it is a few look-ups. Memory: 34 bytes per slice,
and some 40 MB while a piece of ``PIECE`` slices is read and checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from profrun.traces.schema import GPU_KINDS, GPU_TRACKS, SLICE_KINDS, TRACK_KINDS

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

HOST_KINDS = ("op", "range", "step", "api", "python", "overhead", "sync")
"""Kinds that may enqueue GPU work or lie on a thread."""
SIDE_KINDS = {
    "kernels": ("kernel",),
    "copies": ("memcpy", "memset"),
    "ops": ("op",),
    "collectives": ("kernel", "op", "range", "api", "memcpy"),
    "call_stacks": ("api",),
}
"""Tables beside slices, and the kinds of slice that they describe."""
_OF_SOME = ("collectives", "call_stacks")
"""Those that have no row for every slice of their kinds."""

PIECE = 1 << 19
"""Slices that are read and checked at once."""

_NONE = -1
"""Stands for NULL in parent, depth and launch; real values below 0 are found by the scan of single rows."""

_MEMSET = "coalesce(direction = 'memset', false)"

Ids: TypeAlias = "NDArray[np.integer]"
Wrong = list[tuple[str, Ids]]
"""A sentence, and the ids of the slices for which it is true."""


def _codes(kinds: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    """Whether the kind of each code is one of the wanted (code: its index + 1, 0 for an unknown kind)."""
    return np.array([False, *(kind in wanted for kind in kinds)])


def _code(column: str, kinds: tuple[str, ...]) -> str:
    return f"coalesce(list_position({list(kinds)}, {column}), 0)::UTINYINT"


def _reference(column: str) -> str:
    return f"coalesce(try_cast({column} AS INTEGER), {_NONE})"


_COLUMNS = {
    "ts": ("coalesce(ts_ns, 0)", np.int64),
    "dur": ("coalesce(dur_ns, 0)", np.int64),
    **{name: (_reference(name), np.int32) for name in ("track", "parent", "depth", "launch")},
    "kind": (_code("kind", SLICE_KINDS), np.uint8),
}
"""SQL and type of what is held of each slice."""


class Slices:
    """The slices of a trace as arrays by slice id; valid when ``ids`` finds nothing.

    The constructor reads everything.

    Attributes:
        rows: how many there are.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        found = con.execute("SELECT count(*), min(slice), max(slice) FROM slices").fetchone()
        self.rows, self._low, self._high = found or (0, None, None)
        self._at: dict[str, NDArray[np.integer]] = {
            name: np.zeros(self.rows, type_) for name, (_, type_) in _COLUMNS.items()
        }
        self._seen = np.zeros(self.rows, bool)
        columns = ", ".join(f"{sql} AS {name}" for name, (sql, _) in _COLUMNS.items())
        for start in range(0, self.rows, PIECE):
            stop = min(start + PIECE, self.rows)
            piece = con.execute(
                f"SELECT slice, {columns} FROM slices WHERE slice >= {start} AND slice < {stop}"
            ).fetchnumpy()
            ids = np.asarray(piece["slice"])
            self._seen[ids] = True
            for name, values in self._at.items():
                values[ids] = np.asarray(piece[name])
        self._tracks = con.execute(
            f"SELECT {_code('kind', TRACK_KINDS)} AS kind, device IS NOT NULL AS device "
            "FROM tracks ORDER BY track"
        ).fetchnumpy()
        self._side = {
            name: con.execute(
                f"SELECT coalesce(slice, {_NONE}) AS slice, "
                f'{_MEMSET if name == "copies" else "false"} AS memset FROM "{name}"'
            ).fetchnumpy()
            for name in SIDE_KINDS
        }

    def columns(self) -> dict[str, NDArray[np.integer]]:
        """Columns by slice id, as ``causality.recording`` wants them: kinds are places in ``SLICE_KINDS``."""
        at = self._at
        return at | {"kind": at["kind"] - np.uint8(1), "end": at["ts"] + at["dur"]}

    def ids(self) -> list[str]:
        """Are ids dense from 0 and unique? As many rows as ids, and each id met: then each is met once."""
        if self._seen.all():
            return []
        if (self._low, self._high) == (0, self.rows - 1):
            distinct = int(np.count_nonzero(self._seen))
            return [f"slices has {self.rows} rows but {distinct} distinct values of slice"]
        text = f"ids of slices run from {self._low} to {self._high} in {self.rows} rows"
        return [f"{text} instead of being dense from 0"]

    def links(self) -> list[str]:
        """Conditions over slices and what they refer to. Call it when ``ids`` found nothing."""
        wrong: dict[str, list[Ids]] = {}
        for start in range(0, self.rows, PIECE):
            piece = slice(start, min(start + PIECE, self.rows))
            for what, who in self._nested(piece) + self._on_tracks(piece):
                wrong.setdefault(what, []).append(who + start)
        for name, kinds in SIDE_KINDS.items():
            for what, who in self._beside(name, _codes(SLICE_KINDS, kinds)):
                wrong.setdefault(what, []).append(who)
        counted = ((what, np.concatenate(parts)) for what, parts in wrong.items())
        return self._repeated() + [
            f"{who.size} {what} (first: {who.min()})" for what, who in counted if who.size
        ]

    def kinds(self) -> dict[str, int]:
        """Number of slices by kind."""
        counts = np.bincount(self._at["kind"], minlength=len(SLICE_KINDS) + 1)[1:]
        return {kind: int(count) for kind, count in zip(SLICE_KINDS, counts, strict=True) if count}

    def _of(self, name: str, piece: slice) -> tuple[Ids, Ids]:
        """Slices of a piece that refer to another slice by a column (as indices in the piece), and the
        others."""
        column = self._at[name][piece]
        here = np.flatnonzero((column >= 0) & (column < self.rows))
        return here, column[here]

    def _nested(self, piece: slice) -> Wrong:
        at, own = self._at, {name: values[piece] for name, values in self._at.items()}
        end = own["ts"] + own["dur"]
        child, parent = self._of("parent", piece)
        above = at["depth"][parent]
        bad = (own["track"][child] != at["track"][parent]) | (own["ts"][child] < at["ts"][parent])
        bad |= end[child] > at["ts"][parent] + at["dur"][parent]
        bad |= own["depth"][child] != np.where(above == _NONE, _NONE, above + 1)
        bad |= child + piece.start == parent
        alone = (own["parent"] == _NONE) & (own["depth"] != _NONE) & (own["depth"] != 0)
        return [
            ("slices end before they start", np.flatnonzero((own["dur"] < 0) | (end < own["ts"]))),
            (
                "slices are not inside their parent, or on another track, or not one level below it",
                child[bad],
            ),
            ("slices without a parent have a depth other than 0", np.flatnonzero(alone)),
        ]

    def _on_tracks(self, piece: slice) -> Wrong:
        tracks = self._tracks
        if not len(tracks["kind"]):
            return []  # slices without any track are found one by one
        kinds, own = self._at["kind"], {name: values[piece] for name, values in self._at.items()}
        last = len(tracks["kind"]) - 1
        track = np.clip(own["track"], 0, last)
        track_kind, has_device = np.asarray(tracks["kind"])[track], np.asarray(tracks["device"])[track]
        gpu = _codes(SLICE_KINDS, GPU_KINDS)[own["kind"]]
        nested = (own["depth"] != _NONE) | (own["parent"] != _NONE)
        is_thread = _codes(TRACK_KINDS, ("thread",))[np.asarray(tracks["kind"])]
        launched, call = self._of("launch", piece)
        calls = np.clip(self._at["track"][call], 0, last)
        host = _codes(SLICE_KINDS, HOST_KINDS)[kinds[call]] & is_thread[calls]
        return [
            (
                "kernels, memcpys or memsets lie on a track without a device",
                np.flatnonzero(gpu & ~has_device),
            ),
            (
                "slices have a depth without lying on a thread",
                np.flatnonzero(_codes(TRACK_KINDS, GPU_TRACKS)[track_kind] & nested),
            ),
            ("launches are no host slices", launched[~host]),
            ("host slices have a launch", np.flatnonzero(is_thread[track] & (own["launch"] != _NONE))),
        ]

    def _repeated(self) -> list[str]:
        """Does a side table describe a slice twice?"""
        found = []
        for name, side in self._side.items():
            ids = np.asarray(side["slice"])
            known = ids[(ids >= 0) & (ids < self.rows)]
            described = np.zeros(self.rows, bool)
            described[known] = True
            distinct = int(np.count_nonzero(described))
            if distinct != known.size:
                found.append(f"{name} has {ids.size} rows but {distinct} distinct values of slice")
        return found

    def _beside(self, name: str, wanted: NDArray[np.bool_]) -> Wrong:
        """Do the rows of a side table describe slices of its kinds, and all of them?"""
        found = self._side[name]
        ids, filled = np.asarray(found["slice"]), np.asarray(found["memset"])
        known = (ids >= 0) & (ids < self.rows)  # others are found one by one
        ids, filled = ids[known], filled[known]
        kind = self._at["kind"]
        wrong: Wrong = [(f"rows of {name} describe slices of another kind", ids[~wanted[kind[ids]]])]
        if name not in _OF_SOME:
            described = np.zeros(self.rows, bool)
            described[ids] = True
            wrong.append((f"slices have no row in {name}", np.flatnonzero(wanted[kind] & ~described)))
        if name == "copies":
            is_memset = _codes(SLICE_KINDS, ("memset",))[kind[ids]]
            wrong.append(
                (
                    "copies have memset as direction without being a memset, or the reverse",
                    ids[is_memset != filled],
                )
            )
        return wrong
