"""``*.generated.json``: which lines of the program stand behind the code that torch.compile has generated.

A process that was recorded to map kernels to lines leaves one such file. Inductor names every kernel that its
code calls ``<kernel>:<handle>``, in a comment before the call, and keeps for each the Python stacks of the
operations that the kernel does (``INDUCTOR_PROVENANCE=1``, torch 2.9). The mapping adds a line to each stack
that tells the operation and its module (``operation_text``), because Inductor keeps nothing but the stacks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FORMAT = 2
ENDING = ".generated.json"
_VIEW, _SUM = ", a view", ", a sum of gradients"
_OPERATION = re.compile(
    r'^  Operation "(?P<name>[^"\n]*)"(?:, module "(?P<module>[^"\n]+)")?'
    rf"(?P<kind>{_VIEW}|{_SUM})?$",
    re.MULTILINE,
)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>\S+)', re.MULTILINE)


@dataclass(frozen=True)
class SourceLine:
    """A line of a Python stack.

    Attributes:
        file: its path.
        line: its number, from 1.
        function: the function that it lies in.
        own: whether the mapping counts its file as the program's own; None where that is not known.
    """

    file: str
    line: int
    function: str
    own: bool | None = None


@dataclass(frozen=True)
class Operation:
    """An operation that a kernel does.

    Attributes:
        stack: lines of the program, outermost first.
        name: of the operation, ``aten.mul.Tensor``; None where the compiler does not tell it.
        module: qualified name of its nn.Module below the module that was compiled, ``module_names.ROOT`` for
            that one; None where the compiler does not tell it.
        view: it only looks at its input in another way: where there is other work, it adds none.
        gradient_sum: it adds up the gradients of a tensor that is used several times. The compiler tells the
            stack of one of these uses, which may be any of them.
    """

    stack: tuple[SourceLine, ...]
    name: str | None = None
    module: str | None = None
    view: bool = False
    gradient_sum: bool = False


@dataclass(frozen=True)
class GeneratedCall:
    """A line of generated code that calls a kernel.

    Attributes:
        line: its number, from 1.
        kernel: name and handle, ``triton_poi_fused_gelu_1:4``.
        operations: what the kernel does; empty where the compiler does not tell it.
    """

    line: int
    kernel: str
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True)
class GeneratedFile:
    """A file of generated code."""

    path: str
    calls: tuple[GeneratedCall, ...] = ()


@dataclass(frozen=True)
class GeneratedCode:
    """All generated code of a process."""

    files: tuple[GeneratedFile, ...] = ()
    format: int = FORMAT


def operation_text(name: str, module: str | None, *, view: bool = False, gradient_sum: bool = False) -> str:
    """The line that tells the operation of a stack, to be added at its end; a stack may be empty."""
    where = f', module "{module}"' if module else ""
    return f'  Operation "{name}"{where}{_VIEW if view else _SUM if gradient_sum else ""}'


def tells_operation(text: str) -> bool:
    """Whether a text has an ``operation_text``."""
    return _OPERATION.search(text) is not None


def operations_of(text: str) -> tuple[Operation, ...]:
    """The operations that a text tells: stacks as Python prints them, each with ``operation_text`` at its end
    or without."""
    found, start = [], 0
    for end in _OPERATION.finditer(text):
        stack, kind = _stack(text[start : end.start()]), end["kind"]
        found.append(Operation(stack, end["name"], end["module"], kind == _VIEW, kind == _SUM))
        start = end.end()
    rest = _stack(text[start:])
    return (*found, Operation(rest)) if rest else tuple(found)


def _stack(text: str) -> tuple[SourceLine, ...]:
    return tuple(
        SourceLine(found["file"], int(found["line"]), found["function"]) for found in _FRAME.finditer(text)
    )
