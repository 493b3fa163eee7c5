"""What stands behind the kernels of code that torch.compile has generated: ``generated_kernels``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.contract.code_paths import is_own
from profrun.contract.line_names import Line
from profrun.contract.module_names import ROOT

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class GeneratedKernel:
    """What stands behind a line of generated code.

    Attributes:
        kernel: name and handle of the kernel that is called there.
        lines: of the program, each once; None for operations in whose stacks no line is the program's.
        module: the innermost module that all its operations lie in, below the one that was compiled and empty
            for that one; None where the compiler does not tell it.
    """

    kernel: str
    lines: tuple[Line | None, ...]
    module: str | None

    def lines_in(self, runs: Line | None) -> tuple[Line, ...]:
        """The lines behind the kernel where this line of the program runs the generated code.

        It stands for operations without a line of the program, as it does without torch.compile.
        """
        return tuple(dict.fromkeys(line for one in self.lines if (line := one or runs) is not None))


GeneratedKernels = dict[tuple[str, int], GeneratedKernel | None]
"""(file, line of generated code that calls a kernel) -> what stands behind it; None where it is not known."""


@dataclass
class _Operation:
    """An operation as it is collected.

    Attributes:
        minor: whether it adds no work of its own, or not for a line that is known: a view, or a sum of
            gradients.
        line: the innermost line of the program in its stack.
    """

    module: str | None
    minor: bool
    line: Line | None = None


def generated_kernels(trace: Trace) -> GeneratedKernels:
    """(file, line of generated code that calls a kernel) -> what stands behind it."""
    rows = trace.sql(
        "SELECT file, line, kernel, operation, op, module, is_view OR is_gradient_sum, is_own, source_file, "
        "source_line, source_function FROM generated ORDER BY file, line, kernel, operation, frame"
    ).rows
    calls: dict[tuple[str, int], dict[tuple[str, int], _Operation]] = {}
    named: dict[tuple[str, int], set[str]] = {}
    for file, line, kernel, number, op, module, minor, own, *source in rows:
        named.setdefault((file, line), set()).add(kernel)
        if op is None and source[0] is None:
            continue  # the compiler does not tell what the kernel does
        one = calls.setdefault((file, line), {}).setdefault((kernel, number), _Operation(module, minor))
        if source[0] is not None and (is_own(source[0]) if own is None else own):
            one.line = Line(*source)  # frames come outermost first, so the last one stays
    found: GeneratedKernels = {}
    for place, kernels in named.items():
        told = list(calls.get(place, {}).values())
        # A line that calls two kernels tells neither's.
        found[place] = _behind(kernels.pop(), told) if len(kernels) == 1 and told else None
    return found


def _behind(kernel: str, operations: list[_Operation]) -> GeneratedKernel:
    """What is minor counts only where a kernel does nothing else, as in a copy of what a view sees."""
    working = [one for one in operations if not one.minor] or operations
    lines = dict.fromkeys(one.line for one in working)
    modules = [one.module for one in working]
    known = [_parts(module) for module in modules if module is not None]
    alike = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*known, strict=False))
    common = ".".join(parts[0] for parts in alike) if len(known) == len(modules) else None
    return GeneratedKernel(kernel, tuple(lines), common)


def _parts(module: str | None) -> list[str]:
    return module.split(".") if module and module != ROOT else []


def below(outer: str | None, inner: str | None) -> str | None:
    """The qualified name of a module of compiled code.

    Args:
        outer: the module that was compiled, as the ranges name it. inner: the module below it.
    """
    return ".".join([*_parts(outer), *_parts(inner)]) or outer
