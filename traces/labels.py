"""What GPUs and ranks are called on every screen, so that a user recognises them.

A GPU is called by its number: as the vendor's tool counts on the host where the trace says that, else as its
process counts. Ids of the trace are internal. Where there are several ranks the rank stands beside it, and
where there are several hosts the host::

    GPU 1
    GPU 1 (rank 1)
    node2, GPU 1 (rank 9)
    GPU 1 (guessed rank 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from profrun.traces.memo import memoised
from profrun.traces.schema import DeviceRow, ProcessRow

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Labels:
    """Names for people.

    Attributes:
        gpus: device id -> name of the GPU.
        guessed: ranks that nothing in the recording states.
        hosts: rank -> its host, where there are several hosts.
    """

    gpus: Mapping[int, str]
    guessed: frozenset[int]
    hosts: Mapping[int, str] = field(default_factory=dict)

    def rank(self, rank: int) -> str:
        """``rank 1``, or ``guessed rank 1``."""
        return f"guessed rank {rank}" if rank in self.guessed else f"rank {rank}"

    def rank_on_host(self, rank: int) -> str:
        """``rank 9 on node2`` where there are several hosts, else as ``rank``."""
        return self.rank(rank) + (f" on {self.hosts[rank]}" if rank in self.hosts else "")


def rank_cell(rank: int, guessed: Collection[int]) -> str:
    """A rank in a column that is headed so: ``1``, or ``1 (guessed)``."""
    return f"{rank} (guessed)" if rank in guessed else str(rank)


def make_labels(
    processes: Sequence[ProcessRow], devices: Sequence[DeviceRow], used: Collection[int]
) -> Labels:
    """Labels from the rows of a trace.

    Args:
        processes, devices: rows of those tables.
        used: devices that have a track. A process whose used GPUs do not all have a number on the host is
            called by its own numbers, because two ways of counting in one process would be confused.
    """
    guessed = frozenset(row["rank"] for row in processes if row.get("rank_guessed"))
    plain = Labels({}, guessed)
    owner = {row["process"]: row for row in processes}
    hosts = {row["host"] for row in processes if row["host"]}
    ranks = {row["rank"] for row in processes}
    own = {row["process"] for row in devices if row["device"] in used and row.get("host_ordinal") is None}

    def label(row: DeviceRow, more: str = "") -> str:
        process = owner[row["process"]]
        on_host = row.get("host_ordinal")
        number = row["ordinal"] if on_host is None or row["process"] in own else on_host
        beside = [plain.rank(process["rank"])] if len(ranks) > 1 or process["rank"] or guessed else []
        beside += [more] if more else []
        place = f"{process['host'] or 'unknown host'}, " if len(hosts) > 1 else ""
        return f"{place}GPU {number}" + (f" ({', '.join(beside)})" if beside else "")

    found = {row["device"]: label(row) for row in devices}
    for more in ("pid {pid}", "process {process}"):
        count = Counter(found.values())
        for row in devices:
            if count[found[row["device"]]] > 1:
                found[row["device"]] = label(row, more.format(**owner[row["process"]]))
    several = {row["rank"]: row["host"] for row in processes if row["host"]} if len(hosts) > 1 else {}
    return Labels(found, guessed, several)


@memoised
def labels(trace: Trace) -> Labels:
    """Labels of the GPUs and ranks of a trace."""
    processes = trace.sql("SELECT * FROM processes ORDER BY process").dicts()
    devices = trace.sql("SELECT * FROM devices ORDER BY device").dicts()
    used = trace.sql("SELECT DISTINCT device FROM tracks WHERE device IS NOT NULL").rows
    return make_labels(
        cast("list[ProcessRow]", processes), cast("list[DeviceRow]", devices), {row[0] for row in used}
    )
