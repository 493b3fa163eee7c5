"""What a Python stack of a call tells: the program's innermost line, and whether autograd is in it."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.call_stacks import Stack, call_stacks
from profrun.contract.line_names import Line
from tests.analysis.kit import memory_trace

TORCH = "/opt/venv/lib/python3.12/site-packages/torch"
Frame = tuple[str, int | None, str]

MAIN: Frame = ("/me/train.py", 34, "<module>")
STEP: Frame = ("/me/train.py", 8, "step")
LINEAR: Frame = (f"{TORCH}/nn/modules/linear.py", 134, "forward")
ENGINE: Frame = (f"{TORCH}/autograd/graph.py", 865, "_engine_run_backward")
APPLY: Frame = (f"{TORCH}/autograd/function.py", 317, "apply")
GRAD: Frame = ("/me/ops.py", 21, "backward")


@pytest.mark.parametrize(
    ("frames", "line", "backward"),
    [
        ([MAIN, STEP, LINEAR], Line(*STEP), False),  # type: ignore[arg-type]
        ([MAIN, STEP], Line(*STEP), False),  # type: ignore[arg-type]
        ([("/usr/lib/python3.12/threading.py", 1030, "_bootstrap")], None, False),
        ([MAIN, ("/me/train.py", None, "step")], None, False),
        ([MAIN, STEP, ENGINE, GRAD], Line(*GRAD), True),  # type: ignore[arg-type]
        ([APPLY, GRAD], Line(*GRAD), True),  # type: ignore[arg-type]
        ([MAIN, STEP, APPLY, GRAD], Line(*GRAD), False),  # type: ignore[arg-type]
    ],
    ids=[
        "below a library's",
        "the innermost",
        "none of the program",
        "no line",
        "in a call of backward",
        "on autograd's thread",
        "apply in a forward",
    ],
)
def test_what_a_stack_tells(frames: list[Frame], line: Line | None, backward: bool) -> None:
    stack = [
        {"stack": 4, "frame": place, "file": file, "line": number, "function": function}
        for place, (file, number, function) in enumerate(frames)
    ]
    rows = [("api", "cudaLaunchKernel", 0, 5, "main")]
    calls = [{"slice": 0, "stack": 4}]
    found = call_stacks(memory_trace(rows, side={"stacks": stack, "call_stacks": calls}))
    assert found is not None
    assert found.of.tolist() == [0, -1]
    assert found.table == (Stack(line, backward),)


def test_a_trace_without_stacks_tells_nothing() -> None:
    assert call_stacks(memory_trace([("api", "cudaLaunchKernel", 0, 5, "main")])) is None
