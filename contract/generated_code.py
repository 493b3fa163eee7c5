"""``*.generated.json``: which lines of the program stand behind the code that torch.compile has generated.

A process that was recorded to map kernels to lines leaves one such file. Inductor names every kernel that its
code calls ``<kernel>:<handle>``, in a comment before the call, and keeps for each the Python stacks of the
operations that the kernel does (``INDUCTOR_PROVENANCE=1``, torch 2.9).
"""

from __future__ import annotations

from dataclasses import dataclass

FORMAT = 1
ENDING = ".generated.json"


@dataclass(frozen=True)
class SourceLine:
    """A line of the program: its file, its number from 1, and the function that it lies in."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class GeneratedCall:
    """A line of generated code that calls a kernel.

    Attributes:
        line: its number, from 1.
        kernel: name and handle, ``triton_poi_fused_gelu_1:4``.
        stacks: of each operation that the kernel does: the lines of the program, outermost first.
    """

    line: int
    kernel: str
    stacks: tuple[tuple[SourceLine, ...], ...] = ()


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
