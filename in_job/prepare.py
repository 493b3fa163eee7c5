"""What a trial is going to run: its profiler on these GPUs, checked, with the command that it wraps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..contract import profilers
from ..contract.codec import DocumentError, from_json
from ..contract.finding import Finding
from ..contract.wrapping import Wrapped, WrapRequest
from . import preflight
from .tools import Tool, find_tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..contract.command import Command
    from ..contract.profilers import Profiler


@dataclass(frozen=True)
class Prepared:
    """The outcome of ``prepare``.

    Attributes:
        profiler: None when no profiler can do it here.
        records: whether the profiler records what this wrapper starts; else only the hook runs.
        tool: its executable.
        preflight: what its checks found.
        options: those that can be had here.
        wrapped: how it wraps the command; None when the trial is refused.
        refusal: why the trial cannot run; None when it can.
        warnings: what is left out, and what the profiler's ``wrap`` says.
    """

    profiler: Profiler | None = None
    tool: Tool = field(default_factory=Tool)
    preflight: tuple[Finding, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    wrapped: Wrapped | None = None
    refusal: Finding | None = None
    warnings: tuple[Finding, ...] = ()
    records: bool = True


def prepare(command: Command, gpus: str, folder: Path, out: Path, *, records: bool = True) -> Prepared:
    """Find the profiler and its executable, check, leave out what cannot be had, wrap.

    Args:
        gpus: the vendor of the GPUs.
        folder: the trial folder.
        out: folder of this rank's files.
        records: False: a profiler round the program is left out here. One inside the program is not: the hook
            of each process knows whether its rank is recorded.
    """
    named = command.profiler or command.collector
    try:
        profiler = profilers.become(named, gpus)
    except profilers.UnknownProfilerError as error:
        return _refused("unknown-collector", str(error))
    except ImportError as error:
        return _refused("unknown-collector", f"this bundle has no collector {named!r}: {error}")
    if profiler is None:
        return _refused("no-profiler", preflight.unresolved(named, gpus))
    options = _options(command, profiler)
    if not records and profiler.part("in_process") is None:
        wrapped = Wrapped(argv=command.argv, finalise_s=5.0)
        return Prepared(profiler, options=options, wrapped=wrapped, records=False)
    try:
        given: object = from_json(profiler.options, options)
    except DocumentError as error:
        return _refused("bad-options", f"the options of {profiler.name} cannot be used: {error}")
    where = "on this machine" if command.image.reference is None else "in this image"
    tool = find_tool(profiler, getattr(given, "path", None), where=where)
    here = preflight.machine(gpus, stated=command.vendor != "auto")
    found = tuple(preflight.check(profiler, options, here, tool, folder))
    if found and found[0].severity == "critical":
        return Prepared(profiler, tool, found, refusal=found[0])
    options = preflight.degrade(profiler, options, found)
    request = WrapRequest.of(
        command,
        options,
        out=str(out),
        tool=tool.path or tool.name or "",
        version=tool.version,
        vendor=gpus,
    )
    wrapped = profiler.part("wrap").wrap(request)
    warnings = [finding for finding in found if finding.severity == "warning"]
    warnings += [Finding("recording-note", "info", note) for note in wrapped.notes]
    return Prepared(profiler, tool, found, options, wrapped, warnings=tuple(warnings))


def _options(command: Command, profiler: Profiler) -> Mapping[str, object]:
    """The profiler's block, where the command holds one for each profiler that it may become."""
    if command.profiler is not None or command.collector == profiler.name:
        return command.options
    block = command.options.get(profiler.name)
    return block if isinstance(block, dict) else {}


def _refused(code: str, reason: str) -> Prepared:
    return Prepared(refusal=Finding(code, "critical", reason))
