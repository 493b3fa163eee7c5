"""Python frames as torch records them: ``path/file.py(12): function``; built-ins have no line."""

from __future__ import annotations

import re

from profrun.contract.line_names import Line

PYTHON_LINE = re.compile(r"\(\d+\): ")
"""What stands between the file and the function."""
_FRAME = re.compile(rf"^(?P<file>.+?)(?P<number>{PYTHON_LINE.pattern})(?P<function>.+)$")


def python_frame(text: str) -> Line | None:
    """The line of a frame; None for a built-in, and for what is no such frame."""
    hit = _FRAME.match(text)
    return Line(hit["file"], int(hit["number"].strip("(): ")), hit["function"]) if hit else None
