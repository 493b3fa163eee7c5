"""What a stack of Inductor tells of an operation, with the line that the mapping adds and without."""

from __future__ import annotations

import pytest

from profrun.contract.generated_code import (
    Operation,
    SourceLine,
    operation_text,
    operations_of,
    tells_operation,
)

STACK = """\
  File "/me/train.py", line 9, in <module>
    y = net(x)
  File "/me/model.py", line 3, in forward
    x = x.sin()
"""
LINES = (SourceLine("/me/train.py", 9, "<module>"), SourceLine("/me/model.py", 3, "forward"))


@pytest.mark.parametrize(
    ("module", "view"), [("layers.0.mlp", False), ("root", True), (None, False), (None, True)]
)
def test_what_is_added_is_read_back(module: str | None, view: bool) -> None:
    text = f"{STACK}{operation_text('aten.sin.default', module, view=view)}\n"
    assert operations_of(text) == (Operation(LINES, "aten.sin.default", module, view),)


def test_a_sum_of_gradients_and_an_operation_without_a_stack_are_told() -> None:
    text = operation_text("aten.add.Tensor", None, gradient_sum=True)
    assert operations_of(f"{STACK}{text}\n") == (
        Operation(LINES, "aten.add.Tensor", None, view=False, gradient_sum=True),
    )
    assert operations_of(operation_text("aten.mm.default", "h.0")) == (
        Operation((), "aten.mm.default", "h.0"),
    )
    assert tells_operation(f"{STACK}{text}\n")
    assert not tells_operation(STACK)


def test_a_stack_alone_has_its_lines() -> None:
    assert operations_of(STACK) == (Operation(LINES),)
    assert operations_of("no stack") == ()


def test_several_operations_stand_one_after_another() -> None:
    text = "".join(f"{STACK}{operation_text(name, 'h.0', view=False)}\n" for name in ("a", "b"))
    assert [one.name for one in operations_of(text + STACK)] == ["a", "b", None]
