"""Words for stacks of GPU work, which all files of stacks share: ``frame_names`` and ``subject``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.line_names import common_folder
from profrun.reports.place_text import place_name

if TYPE_CHECKING:
    from profrun.analysis.trace.gpu_stacks import GpuStacks
    from profrun.contract.denominator import Denominator


def frame_names(stacks: GpuStacks) -> list[str]:
    """What each frame is called: a line is ``model.py:212 forward``, as in the table of lines.

    So two lines of one function are two frames in every viewer, also in those that compare names only.
    """
    lines = {at: one.line for at, one in enumerate(stacks.frames) if one.kind == "line" and one.line}
    # Below a reason there may be generated code, which lies in a folder of its own.
    mine = (one.frames for one in stacks.stacks if stacks.frames[one.frames[0]].kind != "reason")
    known = {at for frames in mine for at in frames}
    folder = common_folder(line.file for at, line in lines.items() if at in known)
    return [
        place_name(lines[at], folder) if at in lines else one.name for at, one in enumerate(stacks.frames)
    ]


def subject(of: Denominator, steps: int) -> str:
    """What the times are: 'GPU time of 10 steps', 'GPU time of the recording'."""
    return f"GPU time of {of.counted(steps) if of.several else of.the}"
