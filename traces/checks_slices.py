"""Invariants that join slices with slices, tracks and side tables, asked of arrays.

Slice ids are dense from 0 (``Slices.ids`` proves it), so that a slice's row is a place in an array. A join
over two million slices costs 0.3 CPU seconds in the engine; here it is a few look-ups. Memory: 41 bytes a
slice, and as much again while it is being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.traces.schema import GPU_KINDS, SLICE_KINDS, TRACK_KINDS

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

HOST_KINDS = ("op", "range", "step", "api", "python", "overhead", "sync")
"""Kinds that may enqueue GPU work or lie on a thread."""
GPU_TRACKS = ("stream", "queue", "copy")

SIDE_KINDS = {
    "kernels": ("kernel",),
    "copies": ("memcpy", "memset"),
    "ops": ("op",),
    "collectives": ("kernel", "op", "range", "api", "memcpy"),
}
"""Tables beside slices, and the kinds of slice that they describe."""

_NONE = -1
"""Stands for NULL in parent, depth and launch; real values below 0 are found by the scan of single rows."""

_MEMSET = "coalesce(direction = 'memset', false)"

Wrong = list[tuple[str, "NDArray[Any]"]]
"""What is wrong, and of which slices (or tracks)."""


def _codes(kinds: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    """Whether the kind of each code is one of the wanted (code: its place + 1, 0 for an unknown kind)."""
    return np.array([False, *(kind in wanted for kind in kinds)])


def _code(column: str, kinds: tuple[str, ...]) -> str:
    return f"coalesce(list_position({list(kinds)}, {column}), 0)::UTINYINT"


def _reference(column: str) -> str:
    return f"coalesce(try_cast({column} AS INTEGER), {_NONE}) AS {column}"


class Slices:
    """The slices of a trace; by id once ``ids`` found nothing. All is read at once, nothing afterwards.

    Attributes:
        rows: how many there are.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._at: dict[str, NDArray[Any]] = con.execute(
            "SELECT slice, coalesce(ts_ns, 0) AS ts, coalesce(dur_ns, 0) AS dur, "
            f"{', '.join(_reference(name) for name in ('track', 'parent', 'depth', 'launch'))}, "
            f"{_code('kind', SLICE_KINDS)} AS kind FROM slices"
        ).fetchnumpy()
        self.rows = len(self._at["slice"])
        self._lanes = con.execute(
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

    def ids(self) -> list[str]:
        """Are ids dense from 0 and unique?"""
        place = self._at.pop("slice")
        if not self.rows:
            return []
        held = place.compressed() if isinstance(place, np.ma.MaskedArray) else place
        low, high = (int(held.min()), int(held.max())) if held.size else (0, 0)
        dense = (low, high) == (0, self.rows - 1)
        if dense and held.size == self.rows:
            seen = np.zeros(self.rows, bool)
            seen[held] = True
            distinct = int(np.count_nonzero(seen))
        else:
            distinct = int(np.unique(held).size)
        if distinct != self.rows:
            return [f"slices has {self.rows} rows but {distinct} distinct values of slice"]
        if not dense:
            text = f"ids of slices run from {low} to {high} in {self.rows} rows"
            return [f"{text} instead of being dense from 0"]
        for name, values in self._at.items():
            by_id = np.empty(self.rows, values.dtype)
            by_id[held] = np.asarray(values)
            self._at[name] = by_id
        return []

    def links(self) -> list[str]:
        """Conditions over slices and what they refer to. Call it when ``ids`` found nothing."""
        wrong = self._nested() + self._on_tracks()
        for name, kinds in SIDE_KINDS.items():
            wrong += self._beside(name, _codes(SLICE_KINDS, kinds))
        return self._repeated() + [
            f"{who.size} {what} (first: {who.min()})" for what, who in wrong if who.size
        ]

    def kinds(self) -> dict[str, int]:
        """How many slices of each kind that the format knows."""
        counts = np.bincount(self._at["kind"], minlength=len(SLICE_KINDS) + 1)[1:]
        return {kind: int(count) for kind, count in zip(SLICE_KINDS, counts, strict=True) if count}

    def _of(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Slices that refer to another by a column, and the others."""
        column = self._at[name]
        here = np.flatnonzero((column >= 0) & (column < self.rows))
        return here, column[here]

    def _nested(self) -> Wrong:
        at = self._at
        ts, track, depth = at["ts"], at["track"], at["depth"]
        end = ts + at["dur"]
        child, parent = self._of("parent")
        above = depth[parent]
        bad = (track[child] != track[parent]) | (ts[child] < ts[parent]) | (end[child] > end[parent])
        bad |= (depth[child] != np.where(above == _NONE, _NONE, above + 1)) | (child == parent)
        alone = (at["parent"] == _NONE) & (depth != _NONE) & (depth != 0)
        return [
            ("slices end before they start", np.flatnonzero((at["dur"] < 0) | (end < ts))),
            (
                "slices are not inside their parent, or on another track, or not one level below it",
                child[bad],
            ),
            ("slices without a parent have a depth other than 0", np.flatnonzero(alone)),
        ]

    def _on_tracks(self) -> Wrong:
        found = self._lanes
        if not self.rows or not len(found["kind"]):
            return []  # slices without any track are found one by one
        at = self._at
        track = np.clip(at["track"], 0, len(found["kind"]) - 1)
        lane, has_device = np.asarray(found["kind"])[track], np.asarray(found["device"])[track]
        gpu = _codes(SLICE_KINDS, GPU_KINDS)[at["kind"]]
        nested = (at["depth"] != _NONE) | (at["parent"] != _NONE)
        thread = _codes(TRACK_KINDS, ("thread",))[lane]
        launched, call = self._of("launch")
        host = _codes(SLICE_KINDS, HOST_KINDS)[at["kind"][call]] & thread[call]
        return [
            (
                "kernels, memcpys or memsets lie on a track without a device",
                np.flatnonzero(gpu & ~has_device),
            ),
            (
                "slices have a depth without lying on a thread",
                np.flatnonzero(_codes(TRACK_KINDS, GPU_TRACKS)[lane] & nested),
            ),
            ("launches are no host slices", launched[~host]),
            ("host slices have a launch", np.flatnonzero(thread & (at["launch"] != _NONE))),
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
        if name != "collectives":
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
