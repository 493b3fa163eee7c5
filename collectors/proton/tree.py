"""Proton's tree (``data="tree"``, JSON for Hatchet): sums over the calls of each kernel in each call path.

The file is a list of two values: the root node, and the GPUs by type and ordinal. A node has a name
(``frame``), ``metrics`` and ``children``. A kernel has the metrics ``count`` (calls), ``time (ns)`` (of all
calls together) and ``device_id``; scopes and Python frames have no times.

There is no time axis. What the sums say is kept exactly: each call becomes one kernel, the calls of a node
share its time evenly and lie end to end, node after node in the order of the file, one row of kernels for
each GPU. A scope is a range round the kernels below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from profrun.collectors.proton.facts import Device
from profrun.collectors.proton.recording import KERNEL, RANGE, Lane, Recording
from profrun.errors import InputError

COUNT, TIME, DEVICE_ID, DEVICE_TYPE = "count", "time (ns)", "device_id", "device_type"
MOST_CALLS = 20_000_000
"""More calls are not made slices of: they would take gigabytes for what a few numbers say."""

_VENDORS = {"CUDA": "nvidia", "HIP": "amd"}


@dataclass
class _Node:
    """A node of the tree with what could be read of it."""

    name: str
    metrics: Mapping[str, object]
    children: list[object]

    @classmethod
    def of(cls, value: object) -> _Node:
        """Raises ValueError: this is no node."""
        if not isinstance(value, dict):
            raise ValueError("a node is no object")
        frame, metrics, children = value.get("frame"), value.get("metrics"), value.get("children")
        name = frame.get("name") if isinstance(frame, dict) else None
        if not isinstance(name, str) or not isinstance(metrics, dict) or not isinstance(children, list):
            raise ValueError("a node lacks its frame, metrics or children")
        return cls(name, metrics, children)

    def whole(self, metric: str) -> int | None:
        """A metric that is a whole number of at least 0."""
        value = self.metrics.get(metric)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    @property
    def ordinal(self) -> int | None:
        """The GPU that this node's kernels ran on; None where it has no kernels."""
        value = self.metrics.get(DEVICE_ID)
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None

    def extra(self, words: list[str]) -> list[tuple[str, float]]:
        """Metrics beside time and calls: those of scopes, of the Triton hook, of samples.

        Args:
            words: is given the names of metrics that are no numbers.
        """
        numbers = []
        for name, value in self.metrics.items():
            if name in (COUNT, TIME, DEVICE_ID, DEVICE_TYPE):
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                numbers.append((name, float(value)))
            else:
                words.append(name)
        return numbers


@dataclass
class Taken:
    """What was taken from the trees of a recording.

    Attributes:
        calls: kernels.
        averaged: calls of nodes with more than one call, whose own times are not known.
        untimed: calls of nodes without a time.
        words: names of metrics that are no numbers.
    """

    calls: int = 0
    averaged: int = 0
    untimed: int = 0
    words: list[str] = field(default_factory=list)


def take_up(recording: Recording, process: int, data: object, taken: Taken) -> None:
    """Add the kernels and ranges of one file.

    Args:
        recording: has the facts of this file already.
        process: number of the file.
        data: its JSON.
        taken: is told what was taken.

    Raises:
        ValueError: this is no tree.
        InputError: it holds no GPU, or more calls than can be shown.
    """
    if not isinstance(data, list) or not data:
        raise ValueError("it is no list of a root and GPUs")
    known = recording.facts[process].device
    for ordinal, device in _gpus(data[1] if len(data) > 1 else {}):
        same = known is not None and known[0] == ordinal
        recording.devices[(process, ordinal)] = known[1] if same and known else device
    if not any(file == process for file, _ in recording.devices):
        raise InputError(
            "the tree holds no kernels", why="no kernel ran while Proton recorded", fix="record again"
        )
    _Layout(recording, process, taken).place(data[0])


@dataclass
class _Layout:
    """Places the nodes of one tree, depth first.

    Attributes:
        ends: GPU -> end of its last kernel so far, ns.
    """

    recording: Recording
    process: int
    taken: Taken
    ends: dict[int, int] = field(default_factory=dict)

    def place(self, root: object) -> None:
        """Take up a whole tree. The root itself stands for the program and is no range."""
        self.ends = {ordinal: 0 for file, ordinal in self.recording.devices if file == self.process}
        waiting: list[tuple[_Node, Iterator[object], dict[int, int]]] = []
        top = _Node.of(root)
        waiting.append((top, iter(top.children), {}))
        while waiting:
            node, children, starts = waiting[-1]
            child = next(children, None)
            if child is not None:
                below = _Node.of(child)
                starts = dict(self.ends)
                self._kernels(below)
                waiting.append((below, iter(below.children), starts))
                continue
            waiting.pop()
            if waiting:
                self._range(node, starts)

    def _kernels(self, node: _Node) -> None:
        """The calls of one node, at the end of what its GPU has done so far."""
        calls, ordinal = node.whole(COUNT), node.ordinal
        if not calls or ordinal is None:
            return
        if ordinal not in self.ends:
            raise ValueError(f"GPU {ordinal} is not in the list of GPUs")
        time = node.whole(TIME)
        taken = self.taken
        taken.calls += calls
        if taken.calls > MOST_CALLS:
            raise InputError(
                f"the tree holds more than {MOST_CALLS:,} calls of kernels",
                why="each call becomes one row of the trace",
                fix="record fewer steps",
            )
        taken.averaged += calls if calls > 1 else 0
        taken.untimed += calls if time is None else 0
        start = self.ends[ordinal]
        lane = self.recording.lane(Lane(self.process, ordinal))
        number = self.recording.add(KERNEL, node.name, start, time or 0, lane, calls=calls)
        self.recording.metrics += [(number, name, value) for name, value in node.extra(taken.words)]
        self.ends[ordinal] = start + (time or 0)

    def _range(self, node: _Node, starts: dict[int, int]) -> None:
        """A range round all kernels below a node, on each GPU that they ran on."""
        if node.whole(COUNT) and node.ordinal is not None and not node.children:
            return  # the kernel itself
        touched = [gpu for gpu, end in self.ends.items() if end > starts[gpu]]
        numbers = []
        for gpu in touched or [min(self.ends)]:
            lane = self.recording.lane(Lane(self.process, gpu))
            start = starts[gpu]
            numbers.append(self.recording.add(RANGE, node.name, start, self.ends[gpu] - start, lane))
        if not node.whole(COUNT):  # those of a kernel are at the kernel
            self.recording.metrics += [
                (numbers[0], name, value) for name, value in node.extra(self.taken.words)
            ]


def _gpus(value: object) -> Iterator[tuple[int, Device]]:
    """(ordinal, GPU) of the second value of a tree's file."""
    for kind, listed in value.items() if isinstance(value, dict) else ():
        if kind not in _VENDORS or not isinstance(listed, dict):
            continue
        for ordinal, facts in listed.items():
            if not ordinal.isascii() or not ordinal.isdigit() or not isinstance(facts, dict):
                continue
            arch, units = str(facts.get("arch") or ""), facts.get("num_sms")
            yield (
                int(ordinal),
                Device(
                    _VENDORS[kind],
                    arch=f"sm_{arch}" if arch.isdigit() else arch or None,
                    sm_count=units if isinstance(units, int) else None,
                ),
            )
