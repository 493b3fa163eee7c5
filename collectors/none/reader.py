"""steps.json of the in-job hook -> a trace of step slices: what an unprofiled trial leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from profrun.collectors.reading import Progress, Source
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

FORMAT = 1
CLOCKS = ("cuda_event", "hip_event", "wall")
_MARKS = (b'"how":', b'"clock":', b'"anchor":', b'"steps":')
_DEVICE = (
    "vendor",
    "ordinal",
    "name",
    "arch",
    "sm_count",
    "warp_size",
    "max_threads_per_sm",
    "regs_per_sm",
    "smem_per_sm",
    "memory_bytes",
    "uuid",
)


class StepsReader:
    """Reads one steps.json a rank into one trace.

    A step is a slice of kind ``step`` named ``profrun.step#<n>`` on its rank's thread track. Its duration is
    what was measured: between two GPU events (``clock`` cuda_event, hip_event), else on the host's clock. Its
    start is the host's time of the step's first event, or the end of the step before where that is later:
    a host that runs ahead of its GPU starts a step before the GPU has ended the last one.
    """

    name = "steps"

    def accepts(self, source: Source) -> bool:
        """Whether this is a steps.json, by its keys."""
        head = source.head.lstrip()
        return head.startswith(b"{") and all(mark in head for mark in _MARKS)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the tables; ranks share one axis through their hosts' unix time.

        Raises:
            InputError: a file is no whole steps.json, of an unknown format, or ranks contradict each other.
        """
        ranks = [_load(source.path) for source in sources]
        ranks.sort(key=lambda rank: (int(rank["rank"]), int(rank["pid"])))
        epoch = min((int(step["ts_ns"]) for rank in ranks for step in rank["steps"]), default=0)
        moved = 0
        first = 0
        for process, rank in enumerate(ranks):
            _process(writer, process, rank)
            rows, shifted = _slices(rank, process, first, epoch)
            writer.insert("slices", ("slice", "kind", "name", "ts_ns", "dur_ns", "track", "depth"), rows)
            moved += shifted
            first += len(rows)
            progress(process + 1, len(ranks))
        writer.issue(
            "step_start_moved",
            moved,
            "the host began these steps before the GPU had ended the step before; they start at that end",
        )
        _odd_clocks(writer, ranks)
        _meta(writer, ranks, epoch)


def _load(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is no whole steps.json", why=str(error), fix="run the trial again"
        ) from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        found = value.get("format") if isinstance(value, dict) else None
        raise InputError(
            f"{path} has steps format {found!r}, this profrun reads {FORMAT}",
            fix="read it with the profrun that made it",
        )
    if value.get("clock") not in CLOCKS:
        raise InputError(f"{path} names the clock {value.get('clock')!r}", fix=f"it must be one of {CLOCKS}")
    for key in ("rank", "pid", "steps"):
        if key not in value:
            raise InputError(f"{path} has no {key}", fix="run the trial again")
    return value


def _process(writer: TraceWriter, process: int, rank: Mapping[str, Any]) -> None:
    """The process, its GPU if it had one, and the thread track that its steps lie on."""
    writer.insert(
        "processes",
        ("process", "pid", "rank", "host", "name"),
        [(process, int(rank["pid"]), int(rank["rank"]), rank.get("host") or None, None)],
    )
    device = rank.get("device")
    if device:
        number = writer.con.execute("SELECT count(*) FROM devices").fetchone()
        row = (number[0] if number else 0, process, *(device.get(key) for key in _DEVICE))
        writer.insert("devices", ("device", "process", *_DEVICE), [row])
    writer.insert(
        "tracks",
        ("track", "kind", "process", "native_id", "name"),
        [(process, "thread", process, int(rank["pid"]), "steps")],
    )


def _slices(rank: Mapping[str, Any], track: int, first: int, epoch: int) -> tuple[list[tuple[Any, ...]], int]:
    """Rows (slice, kind, name, ts_ns, dur_ns, track, depth) in time, and how many starts were moved."""
    rows: list[tuple[Any, ...]] = []
    end, moved = 0, 0
    for step in sorted(rank["steps"], key=lambda step: int(step["step"])):
        start, duration = int(step["ts_ns"]) - epoch, int(step["dur_ns"])
        if rows and start < end:
            start, moved = end, moved + 1
        end = start + duration
        rows.append((first + len(rows), "step", f"profrun.step#{step['step']}", start, duration, track, 0))
    return rows, moved


def _odd_clocks(writer: TraceWriter, ranks: Sequence[Mapping[str, Any]]) -> None:
    """Steps that were timed by another clock than the rest: before the GPU was first used."""
    odd = [step for rank in ranks for step in rank["steps"] if "clock" in step]
    writer.issue(
        "step_clock_differs",
        len(odd),
        "these steps were timed by another clock than the others, mostly because the GPU was not in use yet",
        f"step {odd[0]['step']}: {odd[0]['clock']}" if odd else None,
    )


def _meta(writer: TraceWriter, ranks: Sequence[Mapping[str, Any]], epoch: int) -> None:
    head = ranks[0]
    vendors = {str(rank["device"]["vendor"]) for rank in ranks if rank.get("device")}
    if len(vendors) > 1:
        raise InputError(
            f"the ranks ran on GPUs of {' and '.join(sorted(vendors))}", fix="give one run's files"
        )
    writer.meta.update(
        {
            "source": StepsReader.name,
            "vendor": vendors.pop() if vendors else "none",
            "collector": head.get("collector") or "none",
            "tool_version": None,
            "epoch_ns": epoch if any(rank["steps"] for rank in ranks) else None,
            "clock": "epoch",
            "launch_blocking": head.get("blocking"),
            "extra": {
                "steps_how": head.get("how"),
                "steps_clock": head["clock"],
                "windows": {str(step["step"]): step.get("window") for step in head["steps"]},
                "work": head.get("work"),
                "world_size": head.get("world_size"),
                "out_of_memory": any(bool(rank.get("out_of_memory")) for rank in ranks),
            },
        }
    )


READER = StepsReader()
