"""How Nsight Compute wraps a command: window, filters, sets, export. Pure; shipped into the job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...contract.wrapping import Wrapped, WrapRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL: str | None = "ncu"

OPTIONS: dict[str, str] = {
    "set": "section set: basic (default), detailed, full, roofline, ...; see ncu --list-sets",
    "sections": "list of sections, instead of a set",
    "metrics": "list of metrics, beside the set (alone when neither set nor sections is given)",
    "kernels": "regular expression on the kernel's name without its arguments",
    "ranges": "list of NVTX ranges (push/pop): only kernels launched inside them",
    "launch_skip": "kernel launches to skip after the filters",
    "launch_count": "kernel launches to profile; default all of the window, 100 where there is no window",
    "clock_control": "none (default: clocks as the GPU runs them), base",
    "cache_control": "all (default: flushed before each replay), none",
    "replay_mode": "kernel (default), application, range, app-range",
    "graph_profiling": "node (default) or graph",
    "args": "further arguments for ncu, as written",
}

DEFAULT_LAUNCHES = 100
"""Launches profiled when no window bounds them: replay costs up to seconds a kernel."""

_COLLECTIVES = "ncclDevKernel|ncclKernel"
_NVTX_SPECIAL = re.compile(r"([\\@,\[\]/*+])")


def wrap(request: WrapRequest) -> Wrapped:
    """``ncu ... --export report COMMAND``; its durations are those of serialised, replayed kernels."""
    options = request.options
    notes = ["ncu replays kernels one by one: its durations are never compared with a timeline's"]
    windowed = request.vendor == "nvidia" and request.steps_found
    clock = str(options.get("clock_control", "none"))
    notes.append(f"clock control: {clock}")
    argv = [
        request.tool,
        "--target-processes",
        "all",
        "--clock-control",
        clock,
        *_what(options),
        *_which(request, windowed, notes),
    ]
    for option, flag in _PLAIN.items():
        if option in options:
            argv += [flag, str(options[option])]
    argv += [
        "--force-overwrite",
        "--export",
        request.out.rstrip("/") + "/" + _name(request),
        *[str(value) for value in options.get("args", ())],
    ]
    return Wrapped(
        argv=(*argv, *request.argv),
        env={},
        hook="cuda" if windowed else "none",
        emitter="nvtx",
        finalise_s=60.0,
        export=(export_command(request.tool, request.version),),
        expected=("*.ncu-rep",),
        notes=notes,
    )


_PLAIN = {
    "cache_control": "--cache-control",
    "replay_mode": "--replay-mode",
    "graph_profiling": "--graph-profiling",
}


def export_command(tool: str, version: tuple[int, ...] | None) -> tuple[str, ...]:
    """One report ('{file}') as CSV beside it: base units, in the C locale (no decimal comma).

    Recent versions shorten kernel names on paper (2025.3.1 drops 'native::' and whole template arguments), so
    that no other tool's name matches: they are told not to. Older ones do not know the flag.
    """
    whole_names = ("--rename-kernels", "0") if version is not None and version >= (2025, 1) else ()
    return (
        "env",
        "LC_ALL=C",
        tool,
        "--import",
        "{file}",
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        *whole_names,
        "--log-file",
        "{file}.csv",
    )


def reason(log: str, *, windowed: bool = True, reported: bool = False) -> str | None:
    """Why there is no kernel in the report, read from what ncu printed; None when it says nothing.

    Args:
        log: stdout and stderr of ``ncu``.
        windowed: whether profiling waited for cudaProfilerStart.
        reported: whether a whole report is there: then the window did open.
    """
    for needle, text in _LOG_REASONS:
        if needle in log:
            return text
    if "No kernels were profiled" in log:
        if windowed and not reported:
            return (
                "ncu saw no kernel between cudaProfilerStart and cudaProfilerStop: the run ended before its "
                "window opened, no step was found, or a filter matched nothing"
            )
        return "ncu saw no kernel: the program launched none, or a filter matched nothing"
    return None


_LOG_REASONS = (
    (
        "ERR_NVGPUCTRPERM",
        (
            "this user may not read GPU counters: set NVreg_RestrictProfilingToAdminUsers=0 on the host, or "
            "run with CAP_SYS_ADMIN (docker: --cap-add=SYS_ADMIN)"
        ),
    ),
    (
        "LibraryNotLoaded",
        "ncu could not load the driver's profiling library: the container does not pass it through",
    ),
    (
        "DriverResourceUnavailable",
        "the GPU's counters are held by another tool (DCGM, another ncu, nsys with GPU metrics)",
    ),
    (
        "Cannot find newer version",
        "this ncu is older than the GPU or the driver: use the one of the CUDA toolkit in the image",
    ),
)


def _what(options: Mapping[str, Any]) -> list[str]:
    """Sets, sections and metrics: 'basic' unless something else was asked for."""
    flags: list[str] = []
    for section in options.get("sections", ()):
        flags += ["--section", str(section)]
    metrics = [str(name) for name in options.get("metrics", ())]
    if "set" in options or not (flags or metrics):
        flags += ["--set", str(options.get("set", "basic"))]
    if metrics:
        flags += ["--metrics", ",".join(metrics)]
    return flags


def _which(request: WrapRequest, windowed: bool, notes: list[str]) -> list[str]:
    """Which launches: the window, NVTX ranges, names, skip and count."""
    options = request.options
    flags: list[str] = []
    if windowed:
        flags += ["--profile-from-start", "off"]
    ranges = [str(name) for name in options.get("ranges", ())]
    if ranges:
        flags.append("--nvtx")
        for name in ranges:
            flags += ["--nvtx-include", _nvtx_filter(name)]
    pattern = options.get("kernels")
    if pattern is None and request.ranks > 1:
        pattern = f"^(?!{_COLLECTIVES})"
        notes.append("NCCL kernels are left out: replaying one would wait for the other ranks for ever")
    if pattern is not None:
        flags += ["--kernel-name", f"regex:{pattern}"]
    if options.get("launch_skip"):
        flags += ["--launch-skip", str(options["launch_skip"])]
    count = options.get("launch_count")
    if count is None and not windowed:
        count = DEFAULT_LAUNCHES
        notes.append(f"no window can be driven: the first {count} kernel launches are profiled")
    if count:
        flags += ["--launch-count", str(count)]
    return flags


def _nvtx_filter(name: str) -> str:
    """A push/pop range of the default domain for --nvtx-include: special characters escaped, '/' last."""
    return _NVTX_SPECIAL.sub(r"\\\1", name) + "/"


def _name(request: WrapRequest) -> str:
    """One rank, one folder: 'report'. With several ranks also host and pid, in case they share one."""
    return "report" if request.ranks == 1 else "report_%h_%p"
