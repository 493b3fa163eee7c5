"""steps.json of the in-job hook -> a trace of step slices: what an unprofiled trial leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from profrun.collectors import step_times
from profrun.collectors.json_stream import open_bytes
from profrun.collectors.reading import TIME_LIMIT_NS, Progress, Source
from profrun.collectors.unpack import DAMAGED
from profrun.contract import json_text
from profrun.contract.codec import from_json
from profrun.contract.step_names import OWN_STEP
from profrun.contract.steps import FORMAT, RUN_RANGE, StepsDevice, StepsFile, StepTime
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_KEYS = (b'"how":', b'"clock":', b'"anchor":', b'"steps":')
_DEVICE = tuple(field.name for field in fields(StepsDevice))


class StepsReader:
    """Reads one steps.json per rank into one trace.

    A step is a slice of kind ``step`` named ``profrun.step#<n>`` on its rank's thread track; a run without
    steps is one step, named ``profrun.run``. Its duration is
    what was measured: between two GPU events (``clock`` cuda_event, hip_event), else on the host's clock. Its
    start is the host's time of the step's first event, or the end of the step before where that is later:
    a host that runs ahead of its GPU starts a step before the GPU has ended the last one.
    """

    name = "steps"

    def accepts(self, source: Source) -> bool:
        """Whether this is a steps.json, by its keys."""
        head = source.head.lstrip()
        return head.startswith(b"{") and all(key in head for key in _KEYS)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the tables; ranks share one axis through their hosts' unix time.

        Raises:
            InputError: a file is no whole steps.json, of an unknown format, or ranks contradict each other.
        """
        ranks = [_load(source) for source in sources]
        ranks.sort(key=lambda rank: (rank.rank, rank.pid))
        epoch = min((step.ts_ns for rank in ranks for step in rank.steps), default=0)
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
        step_times.add(writer, ranks)


def _load(source: Source) -> StepsFile:
    path = source.path
    try:
        with open_bytes(source) as file:
            value = json_text.parse(file.read())
        found = value.get("format") if isinstance(value, dict) else None
        if found != FORMAT:
            raise InputError(
                f"{path} has steps format {found!r}, this profrun reads {FORMAT}",
                fix="read it with the profrun that made it",
            )
        rank = from_json(StepsFile, value)
    except DAMAGED as error:
        raise InputError(
            f"{path} is no whole steps.json", why=str(error), fix="run the trial again"
        ) from error
    for step in rank.steps:
        if not 0 <= (step.dur_ns or 0) < TIME_LIMIT_NS or not 0 <= step.ts_ns < TIME_LIMIT_NS:
            raise InputError(
                f"{path} is no whole steps.json",
                why=f"step {step.step} begins at {step.ts_ns} ns and takes {step.dur_ns} ns",
                fix="run the trial again",
            )
    return rank


def _process(writer: TraceWriter, process: int, rank: StepsFile) -> None:
    """The process, its GPU if it had one, and the thread track that its steps lie on."""
    writer.insert(
        "processes",
        ("process", "pid", "rank", "rank_guessed", "host", "name"),
        [(process, rank.pid, rank.rank, False, rank.host, None)],
    )
    if rank.device is not None:
        number = writer.con.execute("SELECT count(*) FROM devices").fetchone()
        row = (number[0] if number else 0, process, *astuple(rank.device))
        writer.insert("devices", ("device", "process", *_DEVICE), [row])
    writer.insert(
        "tracks",
        ("track", "kind", "process", "native_id", "name"),
        [(process, "thread", process, rank.pid, "steps")],
    )


Row = tuple[int, str, str, int, int, int, int]
"""slice, kind, name, ts_ns, dur_ns, track, depth"""


def _slices(rank: StepsFile, track: int, first: int, epoch: int) -> tuple[list[Row], int]:
    """Rows in time, from number ``first`` on, and how many starts were moved."""
    rows: list[Row] = []
    end, moved = 0, 0
    for step in sorted(rank.steps, key=lambda step: step.step):
        if step.dur_ns is None:
            continue
        start = step.ts_ns - epoch
        if rows and start < end:
            start, moved = end, moved + 1
        end = start + step.dur_ns
        name = RUN_RANGE if rank.how == "run" else f"{OWN_STEP}{step.step}"
        rows.append((first + len(rows), "step", name, start, step.dur_ns, track, 0))
    return rows, moved


def _odd_clocks(writer: TraceWriter, ranks: Sequence[StepsFile]) -> None:
    """Steps that were timed by another clock than the rest: before the GPU was first used."""
    odd: list[StepTime] = [step for rank in ranks for step in rank.steps if step.clock is not None]
    writer.issue(
        "step_clock_differs",
        len(odd),
        "these steps were timed by another clock than the others, mostly because the GPU was not in use yet",
        f"step {odd[0].step}: {odd[0].clock}" if odd else None,
    )


def _meta(writer: TraceWriter, ranks: Sequence[StepsFile], epoch: int) -> None:
    head = ranks[0]
    vendors = {rank.device.vendor for rank in ranks if rank.device is not None}
    if len(vendors) > 1:
        raise InputError(
            f"the ranks ran on GPUs of {' and '.join(sorted(vendors))}", fix="give one run's files"
        )
    writer.meta.update(
        {
            "source": StepsReader.name,
            "vendor": vendors.pop() if vendors else "none",
            "collector": head.profiler or head.collector,
            "tool_version": None,
            "epoch_ns": epoch if any(rank.steps for rank in ranks) else None,
            "clock": "epoch",
            "launch_blocking": head.blocking,
            "extra": {
                "steps_how": head.how,
                "steps_clock": head.clock,
                "windows": {str(step.step): step.window for step in head.steps},
                "work": head.work,
                "world_size": head.world_size,
                "out_of_memory": any(rank.out_of_memory for rank in ranks),
            },
        }
    )


READERS = (StepsReader(),)
