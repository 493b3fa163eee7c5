"""A recording as records that can be moved, lost, doubled and renamed, and the truth about a damage.

A ``Recording`` is made from raw files of one family. ``gpu`` has the records that were stamped by a GPU's
clock, ``host`` those that were stamped by the host's. A kind of damage (``kinds``) changes the records;
``save`` writes raw files of the same family in which nothing else differs. Times are int ns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

MARK = "mark"
"""Kind of a GPU record that is no work: the GPU's copy of an annotation. Moved with the clock, never lost."""


@dataclass(slots=True)
class GpuRecord:
    """One interval on a GPU.

    Attributes:
        kind: kernel, copy, fill or ``MARK``.
        name: name of the kernel or the operation.
        start: when it began, ns of the file.
        end: when it ended.
        process: the process (rank) whose file it is in.
        lane: device and stream or queue, unique in its process.
        correlation: what it shares with the host's call that enqueued it; None where the file has none.
        copies: how often it is written: 0 for a lost record, 2 for an exact duplicate.
        ref: where the record lies, for the recording that made it.
    """

    kind: str
    name: str
    start: int
    end: int
    process: Hashable
    lane: Hashable
    correlation: Hashable | None
    ref: tuple[object, ...]
    copies: int = 1


@dataclass(slots=True)
class HostRecord:
    """One interval on the host.

    Attributes:
        kind: api, step, or host for every other record.
        name: name of the call or the range.
        start: when it began, ns of the file.
        end: when it ended.
        process: the process (rank) whose file it is in.
        thread: the thread, unique in its process.
        correlation: of an api record, what the enqueued GPU records share with it.
        ref: where the record lies, for the recording that made it.
        waits_for: of a wait, the lane that it waits for where the file says so.
    """

    kind: str
    name: str
    start: int
    end: int
    process: Hashable
    thread: Hashable
    correlation: Hashable | None
    ref: tuple[object, ...]
    waits_for: Hashable | None = None


class Recording(ABC):
    """The files of one recording, in memory.

    Attributes:
        family: kineto, nsys, rocpd, rpd, rocprofv1-db, rocprofv3-csv.
        gpu: records of the GPU's clock, in the order of the files.
        host: records of the host's clock.
        tick_ns: resolution of the files' times: 1, or 1000 where all are whole microseconds.
    """

    family: str

    def __init__(self) -> None:
        self.gpu: list[GpuRecord] = []
        self.host: list[HostRecord] = []
        self.tick_ns = 1

    @property
    def work(self) -> list[GpuRecord]:
        """GPU records without annotations."""
        return [record for record in self.gpu if record.kind != MARK]

    @property
    def rows(self) -> list[GpuRecord | HostRecord]:
        """All records, those of the GPU first."""
        return [*self.gpu, *self.host]

    @property
    def processes(self) -> list[Hashable]:
        """Processes that have GPU work, in order of appearance."""
        return list(dict.fromkeys(record.process for record in self.work))

    def tick(self, time: float) -> int:
        """A time that the files can hold."""
        return round(time / self.tick_ns) * self.tick_ns

    def span(self) -> tuple[int, int]:
        """First start and last end of GPU work and host calls."""
        rows = [row for row in self.rows if row.kind not in (MARK, "step", "host")]
        return min(row.start for row in rows), max(row.end for row in rows)

    def shift_process(self, process: Hashable, delta: int) -> None:
        """Move everything that a process recorded, GPU and host, by ``delta`` ns."""
        for row in self.rows:
            if row.process == process:
                row.start += delta
                row.end += delta

    def swap_labels(self, one: Hashable, other: Hashable) -> bool:
        """Exchange what two files state as their rank; False where they state none."""
        del one, other
        return False

    def events_say_rank(self) -> bool:
        """Whether events state the rank that they were recorded on, besides what the file states."""
        return False

    def swap_gpu(self, one: Hashable, other: Hashable) -> None:
        """Exchange the GPU records of two processes."""
        for record in self.gpu:
            if record.process in (one, other):
                record.process = other if record.process == one else one

    def second_session(self, gap: int, displaced: int) -> bool:
        """Add a later session of the same process, ``gap`` ns after the first, whose GPU clock is
        ``displaced``; False where the family cannot hold one."""
        del gap, displaced
        return False

    @abstractmethod
    def save(self, folder: Path) -> list[Path]:
        """Write the files, with the names of the originals, and return their paths."""


@dataclass(frozen=True)
class Truth:
    """What was planted.

    Attributes:
        count: how many records were changed.
        offset_ns: what was added to the GPU's times; None where it is not one number.
        drift_ppm: by how much the GPU's clock runs too fast, in parts per million.
        anchor_ns: time of the file at which a drift is 0.
        process: the process concerned; None for all.
        lane: the lane concerned; None for all.
        session: the session concerned; None for all.
        note: one sentence for a reader.
        visible: for damage that displaces no clock, whether the records that are left can show it; None
            where they always can.
    """

    count: int
    offset_ns: int | None = None
    drift_ppm: float | None = None
    anchor_ns: int | None = None
    process: Hashable | None = None
    lane: Hashable | None = None
    session: int | None = None
    note: str = ""
    visible: bool | None = None
