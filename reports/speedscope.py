"""Stacks of GPU work as a file for https://www.speedscope.app: ``speedscope_document``.

The format is that of https://www.speedscope.app/file-format-schema.json: frames that all profiles share, and
for each process a profile of kind "sampled" whose samples are stacks, outermost frame first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from profrun.reports.stack_text import frame_names, subject
from profrun.version import VERSION

if TYPE_CHECKING:
    from profrun.analysis.trace.gpu_stacks import GpuStacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_document(stacks: GpuStacks, name: str) -> str:
    """The file, as JSON without spaces.

    Args:
        name: what the trace is called.
    """
    document = {
        "$schema": SCHEMA,
        "exporter": f"profrun {VERSION}",
        "name": f"{name}: {subject(stacks.of, stacks.steps)}",
        "activeProfileIndex": 0,
        "shared": {"frames": _frames(stacks)},
        "profiles": [_profile(stacks, number) for number in range(len(stacks.processes))],
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def _frames(stacks: GpuStacks) -> list[dict[str, Any]]:
    return [
        {"name": name} | ({"file": one.line.file, "line": one.line.line} if one.line is not None else {})
        for name, one in zip(frame_names(stacks), stacks.frames, strict=True)
    ]


def _profile(stacks: GpuStacks, number: int) -> dict[str, Any]:
    process = stacks.processes[number]
    mine = [one for one in stacks.stacks if one.process == number]
    weights = [one.gpu_ns for one in mine]
    return {
        "type": "sampled",
        "name": f"{process.name}: {subject(stacks.of, process.steps)}",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [one.frames for one in mine],
        "weights": weights,
    }
