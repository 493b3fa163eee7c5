"""What the frames of a stack are called, and what its times are of."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.trace.gpu_stacks import GpuStack, StackFrame
from profrun.contract.denominator import RECORDING, RUN, STEP
from profrun.contract.line_names import Line
from profrun.reports.stack_text import frame_names, subject
from tests.reports.stacks import two_ranks


def test_a_line_is_called_as_in_the_table_of_lines() -> None:
    names = frame_names(two_ranks())
    assert names == [
        "mlp",
        "lib/model.py:212 forward",
        "aten::mm",
        "gemm",
        "train.py:9 <module>",
        "Memcpy HtoD",
        "train.py(3): main",
    ]


def test_generated_code_below_a_reason_does_not_lengthen_the_names_of_the_programs_lines() -> None:
    known = two_ranks()
    generated = Line("/tmp/torchinductor_me/ab/cab.py", 20, "call")
    frames = (*known.frames, StackFrame("reason", "why"), StackFrame("line", "call", generated))
    more = GpuStack(0, (7, 1, 8, 3), "kernel", None, False, 5, 1)
    found = replace(known, frames=frames, stacks=(*known.stacks, more))
    assert frame_names(found) == [
        *frame_names(known), "why", "/tmp/torchinductor_me/ab/cab.py:20 call",
    ]  # fmt: skip


def test_times_say_what_they_are_of() -> None:
    assert [subject(STEP, 1), subject(STEP, 12)] == ["GPU time of 1 step", "GPU time of 12 steps"]
    assert [subject(RUN, 1), subject(RECORDING, 0)] == ["GPU time of the run", "GPU time of the recording"]
