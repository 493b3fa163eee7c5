"""Frames of Python stacks as torch writes them."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.python_frames import python_frame
from profrun.contract.line_names import Line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("models/gpt.py(12): forward", Line("models/gpt.py", 12, "forward")),
        ("my (old) code.py(3): <lambda>", Line("my (old) code.py", 3, "<lambda>")),
        ("<built-in method linear of type object at 0x7f1>", None),
        ("nn.Module: Linear_3", None),
        ("model.py(12)", None),
    ],
)
def test_a_frame_has_a_file_a_line_and_a_function(text: str, line: Line | None) -> None:
    assert python_frame(text) == line
