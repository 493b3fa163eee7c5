"""The kinds of damage, written from what clocks, streams and profilers do.

Each kind changes a ``Recording`` and returns the ``Truth``; None where the recording cannot have this damage
(one stream, one rank, no steps). The same seed changes the same records.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from planted_damage.model import GpuRecord, Recording, Truth

Plant = Callable[[Recording, random.Random], Truth | None]

US, MS, S = 1_000, 1_000_000, 1_000_000_000
OFFSETS = {"1us": US, "10us": 10 * US, "100us": 100 * US, "1ms": MS, "100ms": 100 * MS, "10s": 10 * S}
DRIFTS_PPM = (-500, -50, 50, 500)


@dataclass(frozen=True)
class Kind:
    """One kind of damage.

    Attributes:
        name: as the table shows it.
        plant: what does it.
        clock: whether the truth is a displacement of a clock, which an interval must contain.
    """

    name: str
    plant: Plant
    clock: bool = False


def _move(records: list[GpuRecord], delta: int) -> None:
    for record in records:
        record.start += delta
        record.end += delta


def offset(delta: int) -> Plant:
    """The GPU's clock differs from the host's by a constant."""

    def plant(recording: Recording, _: random.Random) -> Truth:
        _move(recording.gpu, delta)
        return Truth(len(recording.work), offset_ns=delta)

    return plant


def drift(ppm: int) -> Plant:
    """The GPU's clock runs too fast; both clocks agree at the first GPU record."""

    def plant(recording: Recording, _: random.Random) -> Truth:
        first = min(record.start for record in recording.work)
        for record in recording.gpu:
            record.start += recording.tick((record.start - first) * ppm / 1e6)
            record.end = max(record.start, record.end + recording.tick((record.end - first) * ppm / 1e6))
        return Truth(len(recording.work), drift_ppm=ppm, anchor_ns=first)

    return plant


def jump(delta: int) -> Plant:
    """The GPU's clock jumps in the middle of the recording."""

    def plant(recording: Recording, _: random.Random) -> Truth | None:
        starts = sorted(record.start for record in recording.work)
        at = starts[len(starts) // 2]
        late = [record for record in recording.gpu if record.start >= at]
        if len(late) == len(recording.gpu):
            return None
        _move(late, delta)
        return Truth(len(late), offset_ns=delta, anchor_ns=at, note="from the median GPU record on")

    return plant


def session(delta: int) -> Plant:
    """A second session follows after 2 s, and its GPU clock is displaced."""

    def plant(recording: Recording, _: random.Random) -> Truth | None:
        before = len(recording.work)
        if not recording.second_session(2 * S, delta):
            return None
        return Truth(len(recording.work) - before, offset_ns=delta, session=1)

    return plant


def stream(delta: int) -> Plant:
    """The records of one stream, not the busiest, are displaced."""

    def plant(recording: Recording, _: random.Random) -> Truth | None:
        lanes: dict[tuple[Hashable, Hashable], list[GpuRecord]] = defaultdict(list)
        for record in recording.work:
            lanes[record.process, record.lane].append(record)
        ranked = sorted(lanes, key=lambda lane: (-len(lanes[lane]), str(lane)))
        for process in recording.processes:  # a process with one stream would have its whole clock moved
            own = [key for key in ranked if key[0] == process]
            if len(own) > 1:
                _move(lanes[own[1]], delta)
                return Truth(len(lanes[own[1]]), offset_ns=delta, process=process, lane=own[1][1])
        return None

    return plant


def rank(delta: int) -> Plant:
    """Everything that the last rank recorded, on the host and on the GPU, is displaced."""

    def plant(recording: Recording, _: random.Random) -> Truth | None:
        processes = recording.processes
        if len(processes) < 2:
            return None
        recording.shift_process(processes[-1], delta)
        moved = sum(record.process == processes[-1] for record in recording.work)
        return Truth(moved, offset_ns=delta, process=processes[-1])

    return plant


def swap_labels(recording: Recording, _: random.Random) -> Truth | None:
    """Two files state each other's rank."""
    processes = recording.processes
    if len(processes) < 2 or not recording.swap_labels(processes[0], processes[-1]):
        return None
    return Truth(2, process=processes[0], visible=recording.events_say_rank())


def swap_gpu(recording: Recording, _: random.Random) -> Truth | None:
    """The GPU records of two ranks are exchanged; the calls of the host stay."""
    processes = recording.processes
    if len(processes) < 2:
        return None
    recording.swap_gpu(processes[0], processes[-1])
    return Truth(
        sum(record.process in (processes[0], processes[-1]) for record in recording.work),
        process=processes[0],
    )


def duplicates(recording: Recording, rng: random.Random) -> Truth:
    """A tenth of the GPU records is there twice."""
    chosen = rng.sample(recording.work, max(1, len(recording.work) // 10))
    for record in chosen:
        record.copies = 2
    return Truth(len(chosen))


def durations(factor: float) -> Plant:
    """The durations of GPU work are in another unit; the starts are right."""

    def plant(recording: Recording, _: random.Random) -> Truth:
        for record in recording.work:
            record.end = record.start + recording.tick((record.end - record.start) * factor)
        return Truth(len(recording.work), visible=_too_short(recording) if 0 < factor < 1 else None)

    return plant


def times(factor: int) -> Plant:
    """Starts and durations of GPU work are in another unit, counted from the start of the recording."""

    def plant(recording: Recording, _: random.Random) -> Truth:
        zero = recording.span()[0]
        for record in recording.gpu:
            record.start = zero + (record.start - zero) * factor
            record.end = zero + (record.end - zero) * factor
        return Truth(len(recording.work))

    return plant


def _too_short(recording: Recording) -> bool:
    """Whether most work took less than any kernel takes: a launch alone needs more than 0.5 us on a GPU."""
    short = sum(record.end - record.start < 500 for record in recording.work)
    return short > len(recording.work) / 2


Calls = set[tuple[Hashable, Hashable]]


def _answered(recording: Recording) -> Calls:
    """Calls that have a GPU record."""
    return {(record.process, record.correlation) for record in recording.work if record.copies}


def _calls_unanswered(recording: Recording, before: Calls) -> bool:
    """Whether calls are left without any record that had one, more than had none before."""
    now = _answered(recording)
    apis = [row for row in recording.host if row.kind == "api" and row.correlation is not None]
    enqueue = {row.name for row in apis if (row.process, row.correlation) in before}
    calls = {(row.process, row.correlation) for row in apis if row.name in enqueue}
    return len(calls & before - now) > max(1, len(calls - before))


def lost_block(recording: Recording, rng: random.Random) -> Truth | None:
    """A third of the GPU records, one after the other, was lost; neither the first nor the last."""
    ordered = sorted(recording.work, key=lambda record: record.start)
    count = len(ordered) // 3
    if count < 1:
        return None
    begin = rng.randint(1, len(ordered) - count - 1)
    before = _answered(recording)
    for record in ordered[begin : begin + count]:
        record.copies = 0
    return Truth(count, visible=_calls_unanswered(recording, before))


def lost_random(recording: Recording, rng: random.Random) -> Truth | None:
    """A third of the GPU records was lost here and there."""
    count = len(recording.work) // 3
    if count < 1:
        return None
    before = _answered(recording)
    for record in rng.sample(recording.work, count):
        record.copies = 0
    return Truth(count, visible=_calls_unanswered(recording, before))


def overlapping_steps(recording: Recording, _: random.Random) -> Truth | None:
    """Each step ends in the middle of the one that follows."""
    by_process = defaultdict(list)
    for row in recording.host:
        if row.kind == "step":
            by_process[row.process, row.thread].append(row)
    changed = 0
    for steps in by_process.values():
        steps.sort(key=lambda row: row.start)
        for step, following in itertools.pairwise(steps):
            step.end = recording.tick((following.start + following.end) / 2)
            changed += 1
    return Truth(changed) if changed else None


def against_order(recording: Recording, rng: random.Random) -> Truth | None:
    """A tenth of the neighbours on a stream ran in the other order than they were launched."""
    host = {(row.process, row.correlation): row for row in recording.host if row.kind == "api"}
    lanes = defaultdict(list)
    for record in recording.work:
        if record.correlation is not None and (record.process, record.correlation) in host:
            lanes[record.process, record.lane].append(record)
    pairs = []
    for records in lanes.values():
        records.sort(key=lambda record: record.start)
        pairs += [
            pair
            for pair in zip(records[::2], records[1::2], strict=False)
            if pair[0].correlation != pair[1].correlation
        ]
    if not pairs:
        return None
    chosen = rng.sample(pairs, max(1, len(pairs) // 10))
    for one, other in chosen:
        one.correlation, other.correlation = other.correlation, one.correlation
    return Truth(2 * len(chosen))


def far_away(recording: Recording, rng: random.Random) -> Truth:
    """One GPU record lies 100 windows after its place."""
    first, last = recording.span()
    record = rng.choice(recording.work)
    _move([record], 100 * (last - first))
    return Truth(1, process=record.process, lane=record.lane)


def shuffled(recording: Recording, rng: random.Random) -> Truth | None:
    """The GPU records of each process belong to each other's launches."""
    count = 0
    for process in recording.processes:
        tied = [r for r in recording.work if r.process == process and r.correlation is not None]
        if len({record.correlation for record in tied}) < 2:
            continue
        found = [record.correlation for record in tied]
        rng.shuffle(found)
        for record, correlation in zip(tied, found, strict=True):
            count += record.correlation != correlation
            record.correlation = correlation
    return Truth(count) if count else None


def _clock_kinds() -> list[Kind]:
    sizes = [(f"{sign}{name}", int(f"{sign}1") * size) for name, size in OFFSETS.items() for sign in "-+"]
    kinds = [Kind(f"offset {name}", offset(delta), clock=True) for name, delta in sizes]
    kinds += [Kind(f"drift {ppm:+d} ppm", drift(ppm), clock=True) for ppm in DRIFTS_PPM]
    for delta, name in ((-5 * MS, "-5ms"), (100 * MS, "+100ms")):
        kinds.append(Kind(f"second session {name}", session(delta), clock=True))
        kinds.append(Kind(f"clock jumps {name}", jump(delta), clock=True))
        kinds.append(Kind(f"one stream {name}", stream(delta), clock=True))
        kinds.append(Kind(f"one rank {name}", rank(delta), clock=True))
    return kinds


KINDS = (
    *_clock_kinds(),
    Kind("rank labels swapped", swap_labels),
    Kind("rank GPU records swapped", swap_gpu),
    Kind("10 % duplicates", duplicates),
    Kind("durations x1000", durations(1000)),
    Kind("durations /1000", durations(0.001)),
    Kind("GPU times x1000", times(1000)),
    Kind("durations all 0", durations(0)),
    Kind("a third lost, block", lost_block),
    Kind("a third lost, random", lost_random),
    Kind("steps overlap", overlapping_steps),
    Kind("launch against stream order", against_order),
    Kind("one event 100 windows away", far_away),
    Kind("correlations shuffled", shuffled),
)
"""Every kind, in the order of the table."""
