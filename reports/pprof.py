"""Stacks of GPU work as a profile for pprof: ``pprof_profile``.

The format is that of https://github.com/google/pprof/blob/main/proto/profile.proto; field numbers here are
its. Each sample has two values, GPU time in ns and launches, and labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.reports.stack_text import frame_names, subject
from profrun.traces.protobuf import block, number, packed, text
from profrun.version import VERSION

if TYPE_CHECKING:
    from profrun.analysis.trace.gpu_stacks import GpuStack, GpuStacks, StackFrame

VALUES = (("gpu_time", "nanoseconds"), ("launches", "count"))
"""Type and unit of the values of a sample, in their order."""


def pprof_profile(stacks: GpuStacks, name: str) -> bytes:
    """The profile, not compressed.

    Args:
        name: what the trace is called.
    """
    texts = _Texts()
    kinds = [block(1, number(1, texts[what]) + number(2, texts[unit])) for what, unit in VALUES]
    samples = [_sample(stacks, one, texts) for one in stacks.stacks]
    places = _places(stacks, texts)
    comments = [f"{name}: {subject(stacks.of, stacks.steps)}", f"written by profrun {VERSION}"]
    tail = [packed(13, [texts[one] for one in comments]), number(14, texts[VALUES[0][0]])]
    return b"".join([*kinds, *samples, *places, *(text(6, one) for one in texts.numbers), *tail])


class _Texts:
    """The table of strings; ``texts[x]`` is the number of a text. The first is empty, as pprof wants it.

    Attributes:
        numbers: text -> its number, in the order of the numbers.
    """

    def __init__(self) -> None:
        self.numbers = {"": 0}

    def __getitem__(self, value: str) -> int:
        return self.numbers.setdefault(value, len(self.numbers))


def _sample(stacks: GpuStacks, one: GpuStack, texts: _Texts) -> bytes:
    """Sample: location_id = 1, innermost first; value = 2; label = 3."""
    body = packed(1, [at + 1 for at in reversed(one.frames)]) + packed(2, [one.gpu_ns, one.launches])
    # Label: key = 1, str = 2
    labels = (
        block(3, number(1, texts[key]) + number(2, texts[value])) for key, value in _labels(stacks, one)
    )
    return block(2, body + b"".join(labels))


def _labels(stacks: GpuStacks, one: GpuStack) -> list[tuple[str, str]]:
    """A label is there where it is known and true."""
    process = stacks.processes[one.process]
    found = [("kind", one.kind), ("rank", str(process.rank)), ("process", process.name)]
    found += [("direction", "backward")] if one.backward else []
    return [*found, *([("replayed", "yes")] if one.replayed else [])]


def _places(stacks: GpuStacks, texts: _Texts) -> list[bytes]:
    """A function and a location for each frame, with the number of the frame + 1 as id."""
    found = []
    for at, (name, one) in enumerate(zip(frame_names(stacks), stacks.frames, strict=True), start=1):
        found += [_function(at, name, one, texts), _location(at, one)]
    return found


def _location(at: int, one: StackFrame) -> bytes:
    """Location (4): id = 1, line = 4. Line: function_id = 1, line = 2."""
    line = number(1, at) + (number(2, one.line.line) if one.line is not None else b"")
    return block(4, number(1, at) + block(4, line))


def _function(at: int, name: str, one: StackFrame, texts: _Texts) -> bytes:
    """Function (5): id = 1, name = 2, system_name = 3, filename = 4."""
    body = number(1, at) + number(2, texts[name]) + number(3, texts[name])
    return block(5, body + (number(4, texts[one.line.file]) if one.line is not None else b""))
