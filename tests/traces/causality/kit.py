"""Recordings of a few rows for the tests of causality, without a trace on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profrun.traces.causality.model import Contradiction, Ids
from profrun.traces.causality.recording import (
    KIND,
    Copies,
    Named,
    Recording,
    Tracks,
    call_class,
)

Row = tuple[str, str, int, int, str, int]
"""Kind, name, start, duration, track, and the row of its launch (-1: none)."""


def recording(
    rows: Sequence[Row],
    *,
    blocking: bool = False,
    early_launch: bool = False,
    pageable: Sequence[int] = (),
    parents: dict[int, int] | None = None,
    sizes: dict[int, int] | None = None,
) -> Recording:
    """A recording of one process and its devices.

    Tracks: 'main', ... are threads; 'stream 7' is a stream of device 0, 'gpu1 stream 7' one of device 1.
    Copies whose rows are in ``pageable`` go to pageable memory of the host.
    """
    sizes = sizes or {}
    names = list(dict.fromkeys(row[4] for row in rows))
    device = [
        int(name[3]) if name.startswith("gpu") else 0 if name.startswith("stream") else -1 for name in names
    ]
    native = [int(name.split()[-1]) if "stream" in name else place for place, name in enumerate(names)]
    start = np.array([row[2] for row in rows], np.int64)
    parent = np.full(len(rows), -1, np.int32)
    for child, above in (parents or {}).items():
        parent[child] = above
    texts = [row[1] for row in rows]
    copies = np.array([number for number, row in enumerate(rows) if row[0] == "memcpy"], np.int64)

    def ids(kind: str) -> Ids:
        return np.array([number for number, row in enumerate(rows) if row[0] == kind], np.int64)

    def named() -> Named:
        calls, syncs, steps = ids("api"), ids("sync"), ids("step")
        return Named(
            calls=calls,
            call_class=np.array([call_class(texts[one]) for one in calls], np.int8),
            syncs=syncs,
            sync_stream=np.array([int(texts[one].split("stream ")[1].strip(")")) for one in syncs], np.int64),
            steps=steps,
            step_number=np.array([int(texts[one].split("#")[1]) for one in steps], np.int64),
            step_family=np.zeros(len(steps), np.int64),
        )

    return Recording(
        kind=np.array([KIND[row[0]] for row in rows], np.uint8),
        ts=start,
        end=start + np.array([row[3] for row in rows], np.int64),
        track=np.array([names.index(row[4]) for row in rows], np.int32),
        launch=np.array([row[5] for row in rows], np.int32),
        parent=parent,
        tracks=Tracks(np.zeros(len(names), np.int32), np.array(device, np.int32), list(native)),
        load_named=named,
        load_copies=lambda: Copies(
            slices=copies,
            to_host=np.array(["DtoH" in texts[one] for one in copies], bool),
            from_host=np.array(["HtoD" in texts[one] for one in copies], bool),
            to_pageable=np.isin(copies, list(pageable)),
            from_pinned=np.zeros(len(copies), bool),
            size=np.array([sizes.get(int(one), 0) for one in copies], np.int64),
        ),
        texts=lambda wanted: [texts[int(one)] for one in wanted],
        early_launch=frozenset(device) if early_launch else frozenset(),
        blocking=blocking,
    )


def launches(*times: tuple[int, int, int], stream: str = "stream 7", gpu: int = 0) -> list[Row]:
    """Launches and their kernels: (start of the call, start of the kernel, end of the kernel), in us.

    Args:
        times: one for each launch; a call takes 2 us.
        stream: where the kernels run.
        gpu: us that are added to the kernels' times.
    """
    rows: list[Row] = []
    for call, start, end in times:
        rows.append(("api", "cudaLaunchKernel", call * 1000 + 1, 2000, "main", -1))
        row = len(rows) - 1
        rows.append(("kernel", f"k{row}", (start + gpu) * 1000, (end - start) * 1000, stream, row))
    return rows


def wait(start: int, end: int, name: str = "cudaDeviceSynchronize") -> Row:
    """A call that waits, in us."""
    return ("api", name, start * 1000 + 1, (end - start) * 1000, "main", -1)


def codes(found: Sequence[Contradiction]) -> dict[str, tuple[int, int]]:
    """Code -> (count, total)."""
    return {one.code: (one.count, one.total) for one in found}
