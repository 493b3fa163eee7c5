"""Nesting of host slices: which slice of a thread encloses which, exactly, in one vectorised pass.

The rule is torch's own (``EventList._populate_cpu_children``): walk the slices of a thread by (start, longer
first); a slice is the child of the nearest earlier slice that holds it whole, half open, so a slice that
starts where another ends is not inside it. A slice that starts inside another and ends after it is not its
child: it goes to the nearest enclosing slice that holds it whole, and is counted.

That walk is "nearest earlier element whose end is not smaller", solved by pointer jumping: every slice starts
with the left neighbour of its run as candidate and jumps over candidates that end too early, all slices at
once, in O(log n) rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

KIND_ORDER = ("step", "range", "python", "op", "api", "sync", "overhead")
"""Outermost first: decides who is the parent when two slices have the same start and duration."""

PIECE = 1 << 19
"""Rows nested at once by ``nest_sorted``: about 30 MB of arrays."""


@dataclass(frozen=True)
class Nesting:
    """Result of ``nesting``, aligned with its input.

    Attributes:
        parent: position of the parent in the input, -1 for outermost.
        depth: 0 for outermost.
        overlaps: positions of slices that start inside their left neighbour and end after it.
    """

    parent: NDArray[np.int64]
    depth: NDArray[np.int32]
    overlaps: NDArray[np.int64]


def nesting(track: NDArray[np.integer], ts: NDArray[np.int64], dur: NDArray[np.int64]) -> Nesting:
    """Parents and depths of slices sorted by (track, ts, -dur, outermost kind first).

    Args:
        track: track of each slice, shape (n,); any integers, equal ones adjacent.
        ts: starts, shape (n,), int64 ns.
        dur: durations, shape (n,), int64 ns, not negative.
    """
    count = len(ts)
    end = np.empty(count + 1, dtype=np.int64)  # index 0 is a sentinel that never ends; slice i is at i + 1
    end[0] = np.iinfo(np.int64).max
    np.add(ts, dur, out=end[1:])
    need = end.copy()
    need[1:] += dur == 0  # nothing that ends at an instant holds it (half open)
    candidate = np.arange(-1, count, dtype=np.int64)
    candidate[0] = 0
    if count:
        candidate[1] = 0
        candidate[1:][1:][track[1:] != track[:-1]] = 0
    left = candidate.copy()
    # Slices of which none holds the next are one run. The slice that holds one of them is the left neighbour
    # of the run's first slice, or further left. So calls in a row, which are many, need no round.
    first = candidate == 0
    first[1:] |= end[:-1] >= need[1:]
    candidate = left[np.maximum.accumulate(np.where(first, np.arange(count + 1), 0))]
    todo = np.flatnonzero(end[candidate] < need)
    while todo.size:
        jumped = candidate[candidate[todo]]
        candidate[todo] = jumped
        todo = todo[end[jumped] < need[todo]]
    crossing = np.flatnonzero((left[1:] != candidate[1:]) & (end[left[1:]] > ts) & (dur > 0))
    parent = candidate[1:] - 1
    return Nesting(parent, depths(parent), crossing)


def depths(parent: NDArray[np.integer]) -> NDArray[np.int32]:
    """How many ancestors each slice has, by pointer doubling.

    Args:
        parent: position of the parent of each slice, shape (n,), -1 for outermost.

    Returns:
        int32, shape (n,).
    """
    reach = np.append(0, parent.astype(np.int64) + 1)  # index 0 is a sentinel without a parent
    depth: NDArray[np.int32] = (reach != 0).astype(np.int32)
    while reach.any():
        depth = depth + depth[reach]
        reach = reach[reach]
    return depth[1:]


def nest_sorted(
    con: duckdb.DuckDBPyConnection, table: str, where: str, target: str
) -> tuple[int, str | None]:
    """Nest a table whose rows are in nesting order and whose ``slice`` is their position from 0.

    Memory is bounded: rows are taken in pieces, and the slices still open at the end of one piece go before
    the next.

    Args:
        con: connection that keeps insertion order.
        table: has slice, name, track, ts_ns, dur_ns; sorted by (track, ts, -dur, outermost kind first).
        where: SQL condition that holds for the rows to nest, which are the first ones of the table.
        target: table to make, with columns parent (a slice) and depth, row by row beside the nested ones.

    Returns:
        Slices that overlap another without being nested in it, and the name of one.
    """
    con.execute(f"CREATE TABLE {target} (parent BIGINT, depth INTEGER)")
    found = con.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()
    total = int(found[0]) if found else 0
    crossing, first = 0, -1
    chain = _Chain()
    for start in range(0, total, PIECE):
        stop = min(start + PIECE, total)
        rows = con.execute(
            f"SELECT track, ts_ns, dur_ns FROM {table} WHERE slice >= {start} AND slice < {stop}"
        ).fetchnumpy()
        piece = chain.advance(start, rows["track"], rows["ts_ns"], rows["dur_ns"])
        con.register("nest_piece", {"parent": piece.parent, "depth": piece.depth})
        con.execute(f"INSERT INTO {target} SELECT nullif(parent, -1), depth FROM nest_piece")
        con.unregister("nest_piece")
        if piece.overlaps.size and not crossing:
            first = int(piece.overlaps[0])
        crossing += int(piece.overlaps.size)
    if not crossing:
        return 0, None
    example = con.execute(f"SELECT name FROM {table} WHERE slice = {first}").fetchone()
    return crossing, str(example[0]) if example else None


class _Chain:
    """The slices still open between two pieces of one sorted sequence."""

    def __init__(self) -> None:
        empty = np.empty(0, dtype=np.int64)
        self.position, self.track, self.ts, self.dur = empty, empty, empty, empty

    def advance(
        self, start: int, track: NDArray[np.integer], ts: NDArray[np.int64], dur: NDArray[np.int64]
    ) -> Nesting:
        """Nest the next rows; positions in the result are those of the whole sequence."""
        kept = self.track == track[0] if self.track.size else np.empty(0, dtype=bool)
        before = int(kept.sum())
        position = np.concatenate([self.position[kept], np.arange(start, start + len(ts))])
        track = np.concatenate([self.track[kept], track])
        ts = np.concatenate([self.ts[kept], ts])
        dur = np.concatenate([self.dur[kept], dur])
        local = nesting(track, ts, dur)
        last = [len(ts) - 1]
        while local.parent[last[-1]] >= 0:
            last.append(int(local.parent[last[-1]]))
        keep = np.array(last[::-1])
        self.position, self.track, self.ts, self.dur = position[keep], track[keep], ts[keep], dur[keep]
        parent = local.parent[before:]
        overlaps = local.overlaps[local.overlaps >= before]
        return Nesting(np.where(parent >= 0, position[parent], -1), local.depth[before:], position[overlaps])
