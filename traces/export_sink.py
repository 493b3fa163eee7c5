"""What an export hands to a file format: processes, tracks, slices and counter samples, for a ``Sink``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass
class Process:
    """A process as the file shows it: ``pid`` is unique in the file."""

    number: int
    pid: int
    name: str


@dataclass
class Slice:
    """One slice on its way out.

    Attributes:
        kind, name, ts_ns, dur_ns: as in the trace; ts_ns may be shifted.
        flows_out: ids of the arrows that begin here.
        flow_in: id of the arrow that ends here, or None.
        args: what the viewer shows beside the slice.
    """

    kind: str
    name: str
    ts_ns: int
    dur_ns: int
    flows_out: list[int]
    flow_in: int | None
    args: dict[str, str | int]


class Sink(Protocol):
    """A file format. It is called track by track; slices of a track come with increasing starts.

    A track here is one of the file: it has a number of its own, and the slices on it nest.
    """

    def process(self, process: Process) -> None:
        """Announce a process."""

    def track(self, track: int, process: Process, name: str, order: int) -> None:
        """Announce a track of a process; viewers sort tracks by ``order``."""

    def begin(self, track: int, item: Slice) -> None:
        """A slice begins."""

    def end(self, track: int, ts_ns: int) -> None:
        """The innermost open slice of a track ends."""

    def counter_track(self, track: int, process: Process, name: str, unit: str, order: int) -> None:
        """Announce a counter."""

    def sample(self, track: int, ts_ns: int, name: str, value: float) -> None:
        """A counter's value from this time on."""

    def close(self) -> None:
        """Write what is left."""
