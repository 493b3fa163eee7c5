"""Writes the GPU work of a trace as call stacks, for viewers of flame graphs: ``export_stacks``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from profrun.errors import InconclusiveError, UsageError

if TYPE_CHECKING:
    from profrun.contract.denominator import Denominator
    from profrun.traces.trace import Trace

StackFormat = Literal["speedscope", "pprof"]


@dataclass(frozen=True)
class StackExport:
    """What was written.

    Attributes:
        path: the file.
        stacks: different stacks of all processes.
        frames: different frames.
        launches: kernels, copies and memsets.
        of: what the time is of.
        gpu_ns: their time in ns; all stacks add up to it.
        resolved_ns: the part of ``gpu_ns`` whose line of the program is known; None where nothing tells
            lines.
        steps: steps of all ranks whose work it is; 0 where the trace has none: then it is all work.
        without_lines: why nothing tells lines, and what would; None where something does.
    """

    path: Path
    stacks: int
    frames: int
    launches: int
    of: Denominator
    gpu_ns: int
    resolved_ns: int | None
    steps: int
    without_lines: str | None


def export_stacks(trace: Trace, out: Path, to: StackFormat, *, name: str) -> StackExport:
    """Write the stacks of a trace; gzip when the name of the file ends in .gz.

    Lines are those of ``runner.mapped``; without them the stacks have what the trace itself recorded.

    Args:
        name: what the trace is called in the file.

    Raises:
        UsageError: the file exists.
        InconclusiveError: the trace has no GPU work that counts.
        UnavailableError: the file cannot be written.
    """
    from profrun.analysis.trace.gpu_stacks import gpu_stacks
    from profrun.reports.pprof import pprof_profile
    from profrun.reports.speedscope import speedscope_document
    from profrun.runner.mapped import mapped
    from profrun.traces.new_file import new_file, refuse_existing

    if to not in ("speedscope", "pprof"):
        raise UsageError(f"unknown format of stacks {to!r}", fix="use speedscope or pprof")
    refuse_existing(out)
    without_lines = None
    try:
        found = mapped(trace)
    except InconclusiveError as error:
        found, without_lines = None, f"{error.why}; {error.fix}"
    stacks = gpu_stacks(trace, found)
    if not stacks.stacks:
        raise InconclusiveError(
            f"{name} has no stacks of GPU work",
            why=f"no kernel, copy or memset{' that a step launched' if stacks.steps else ''} is recorded",
            fix="`profrun export --to perfetto` writes what the host did",
        )
    data = pprof_profile(stacks, name) if to == "pprof" else speedscope_document(stacks, name).encode()
    with new_file(out) as file:
        file.write(data)
    return StackExport(
        path=out,
        stacks=len(stacks.stacks),
        frames=len(stacks.frames),
        launches=sum(one.launches for one in stacks.stacks),
        of=stacks.of,
        gpu_ns=stacks.gpu_ns,
        resolved_ns=stacks.resolved_ns,
        steps=stacks.steps,
        without_lines=without_lines,
    )
