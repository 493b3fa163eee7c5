"""Which lines of the user's program a slice comes from, where Python stacks or a mapping tell it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from profrun.analysis.trace.addresses import Addresses
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.python_frames import PYTHON_LINE
from profrun.contract.line_names import Line

TORCH_LINE = re.compile(r"^<|(?:^|/)torch/|(?:^|/)threading\.py")
"""Frames that tell nothing about the user's program."""


def python_line(source: Frame, slice_id: int) -> str | None:
    """The innermost Python line round a host slice that is not torch's own, else the innermost line.

    It is the innermost built-in where there is no line at all, and None without recorded stacks.
    """
    above = source.nearest("python")
    at, frames = int(above[slice_id]), []
    while at >= 0:
        frames.append(source.text(at))
        at = int(above[at])
    lines = [text for text in frames if PYTHON_LINE.search(text)]
    own = (text for text in lines if not TORCH_LINE.search(text))
    return next(own, None) or next(iter(lines or frames), None)


def python_lines(source: Frame, ids: Iterable[int], most: int = 3) -> list[str]:
    """The Python lines round these slices, the commonest first; of GPU work, round the call that launched
    it."""
    if not len(source.of("python")):
        return []
    calls = (int(source.launch[one]) if source.launch[one] >= 0 else int(one) for one in ids)
    found = (python_line(source, one) for one in calls)
    return [line for line, _ in Counter(line for line in found if line).most_common(most)]


def mapped_lines(source: Frame, mapped: Addresses, ids: Iterable[int], most: int = 3) -> list[str]:
    """The lines of these slices as a mapping tells them, ``file.py:12 function``, most time first.

    Told are lines of GPU work, and of calls that wait for the GPU; other slices tell no line.
    """
    found: Counter[Line] = Counter()
    for one in map(int, ids):
        if one in mapped.waits:
            found[mapped.waits[one]] += int(source.end[one] - source.ts[one])
        at = int(np.searchsorted(mapped.gpu, one))
        if at < len(mapped.gpu) and mapped.gpu[at] == one and mapped.of[at] >= 0:
            lines = mapped.table[mapped.of[at]].lines
            for line in lines:
                found[line] += int(source.end[one] - source.ts[one]) // len(lines)
    return [f"{line.file}:{line.line} {line.function}" for line, _ in found.most_common(most)]
