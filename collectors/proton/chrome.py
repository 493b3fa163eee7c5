"""Proton's Chrome trace (``data="trace"``): kernels with their times, streams and call stacks.

Triton 3.6 writes one JSON object per stream, each on a line of its own, with the kernels that the Triton hook
saw before all others. ``ts`` and ``dur`` are microseconds: whole nanoseconds divided by 1000, from the first
kernel's start on. A kernel has no process and no GPU; the last name of its call stack is its own. Scopes have
no times of their own: here they become ranges on the stream, from the first to the last of the kernels in a
row that were launched under them.

Proton gives a thread the scopes of the main thread at its first kernel, and they stay: kernels of autograd's
thread carry the first recorded step for ever. A stream runs kernels in the order of their launch, so a kernel
behind one of a later step cannot be of an earlier one: ``in_order`` puts it into that later step. Kernels of
CUDA graph replays were seen to carry the step of the last replay, all of them: they are put into no step.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from profrun.collectors.json_stream import JsonStream, Truncated
from profrun.collectors.proton.recording import KERNEL, RANGE, Lane, Recording
from profrun.contract.step_names import OWN_STEP

ROOT = "ROOT"
CAPTURED = "<captured_at>"
"""What Proton puts between the scopes of a graph's replay and those of its capture."""

_STEP = re.compile(rf"{OWN_STEP}(\d{{1,18}})$")
_MOST_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: ``path`` are the names of the scopes or Python frames round its launch, outermost first."""

    ts: int
    dur: int
    name: str
    path: tuple[str, ...]


@dataclass
class Left:
    """What could not be taken from the files as it is.

    Attributes:
        unknown: events that are no kernels; ``example`` is one of these or of the next.
        broken: kernels without a start, duration or stream.
        truncated: whether a file ends early.
        old_step: kernels that carried the scope of a step that was over.
        replayed: kernels of graph replays that carried a step.
    """

    unknown: int = 0
    example: str | None = None
    broken: int = 0
    truncated: bool = False
    old_step: int = 0
    replayed: int = 0


def kernels(stream: JsonStream, left: Left) -> dict[int, list[Kernel]]:
    """Stream id -> its kernels, in the order of the file.

    Args:
        stream: stands at the start of the file.
        left: is told what was left out.

    Raises:
        Malformed: the file is no JSON.
    """
    found: dict[int, list[Kernel]] = {}
    paths: dict[tuple[str, ...], tuple[str, ...]] = {}
    try:
        for event in _events(stream):
            taken = _kernel(event)
            if taken is None:
                left.broken += _is_kernel(event)
                left.unknown += not _is_kernel(event)
                left.example = left.example or _what(event)
                continue
            number, one = taken
            path = paths.setdefault(one.path, one.path)  # most kernels share a few names and paths
            found.setdefault(number, []).append(Kernel(one.ts, one.dur, sys.intern(one.name), path))
    except Truncated:
        left.truncated = True
    return found


def take_up(
    recording: Recording, process: int, device: int, streams: dict[int, list[Kernel]], left: Left
) -> int:
    """Add the kernels of a file and the ranges round them; returns the number of ranges."""
    ranges = 0
    for number in sorted(streams):
        lane = recording.lane(Lane(process, device, number))
        ordered = in_order(streams[number], left)
        for kernel in ordered:
            recording.add(KERNEL, kernel.name, kernel.ts, kernel.dur, lane)
        for name, start, end in scopes(ordered):
            recording.add(RANGE, name, start, end - start, lane)
            ranges += 1
    return ranges


def in_order(kernels: Sequence[Kernel], left: Left) -> list[Kernel]:
    """The kernels of one stream by start, each in the step of the hook that it can be of.

    Args:
        kernels: of one stream.
        left: is told how many were put into another step, and how many into none.
    """
    latest, found = -1, []
    for kernel in sorted(kernels, key=lambda kernel: kernel.ts):
        path = kernel.path
        step = _STEP.match(path[0]) if path else None
        if step is not None and CAPTURED in path:
            left.replayed += 1
            path = path[1:]
        elif step is not None:
            number = int(step[1])
            left.old_step += number < latest
            latest = max(latest, number)
            path = (f"{OWN_STEP}{latest}", *path[1:])
        found.append(replace(kernel, path=path))
    return found


def scopes(kernels: Sequence[Kernel]) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of each scope round kernels of one stream in a row, ns.

    Args:
        kernels: of one stream, by start.
    """
    open_: list[list[int]] = []  # [start, end] of each name of the path
    path: tuple[str, ...] = ()
    for kernel in kernels:
        common = 0
        while common < min(len(path), len(kernel.path)) and path[common] == kernel.path[common]:
            common += 1
        yield from _closed(path, open_, common)
        open_ += [[kernel.ts, kernel.ts] for _ in kernel.path[common:]]
        for span in open_:
            span[1] = max(span[1], kernel.ts + kernel.dur)
        path = kernel.path
    yield from _closed(path, open_, 0)


def _closed(path: tuple[str, ...], open_: list[list[int]], keep: int) -> Iterator[tuple[str, int, int]]:
    """End all scopes but the outermost ``keep``."""
    while len(open_) > keep:
        start, end = open_.pop()
        yield path[len(open_)], start, end


def _events(stream: JsonStream) -> Iterator[object]:
    """The events of all objects of the file.

    Raises:
        Truncated: the file ends inside an object.
    """
    while True:
        try:
            stream.peek()
        except Truncated:
            return  # the end of the file, between two objects
        for key in stream.items():
            if key != "traceEvents":
                stream.skip()
                continue
            for _ in stream.elements():
                yield stream.value()


def _kernel(event: object) -> tuple[int, Kernel] | None:
    """(stream, kernel), None where the event is no kernel or lacks its times."""
    if not isinstance(event, dict) or not _is_kernel(event):
        return None
    ts, dur, number = _ns(event.get("ts")), _ns(event.get("dur")), event.get("tid")
    name, args = event.get("name"), event.get("args")
    if ts is None or dur is None or dur < 0 or not isinstance(name, str):
        return None
    if not isinstance(number, int) or not 0 <= number < 1 << 63:
        return None
    stack = args.get("call_stack") if isinstance(args, dict) else None
    path = tuple(str(frame) for frame in stack) if isinstance(stack, list) else ()
    if path[:1] == (ROOT,):
        path = path[1:]
    if path and path[-1] == name:
        path = path[:-1]
    return number, Kernel(ts, dur, name, path)


def _is_kernel(event: object) -> bool:
    return isinstance(event, dict) and event.get("ph") == "X" and event.get("cat") == "kernel"


def _what(event: object) -> str:
    """An event that was left out, in a few words."""
    if not isinstance(event, dict):
        return f"{event!r:.60}"
    return f"ph {event.get('ph')!r:.20}, cat {event.get('cat')!r:.40}, name {event.get('name')!r:.60}"


def _ns(value: object) -> int | None:
    """Nanoseconds of a number of microseconds. Exact: files hold whole ns divided by 1000 as doubles."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    ns = round(value * 1000)
    return ns if abs(ns) < _MOST_NS else None
