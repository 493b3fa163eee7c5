"""How Nsight Compute wraps a command: window, filters, sets, export. Pure; shipped into the job."""

from __future__ import annotations

import re

from ...contract.codec import from_json
from ...contract.wrapping import Wrapped, WrapRequest
from .profiler import Options

DEFAULT_LAUNCHES = 100
"""Launches profiled when no window bounds them: replay costs up to seconds per kernel."""

_COLLECTIVES = "ncclDevKernel|ncclKernel"
_NVTX_SPECIAL = re.compile(r"([\\@,\[\]/*+])")


def wrap(request: WrapRequest) -> Wrapped:
    """``ncu ... --export report COMMAND``; its durations are those of serialised, replayed kernels."""
    options = from_json(Options, request.options)
    notes = ["ncu replays kernels one by one: its durations are never compared with a timeline's"]
    windowed = request.vendor == "nvidia" and not request.whole
    clock = options.clock_control or "none"
    notes.append(f"clock control: {clock}")
    argv = [
        request.tool,
        "--target-processes",
        "all",
        "--clock-control",
        clock,
        *_what(options),
        *_which(request, options, windowed, notes),
    ]
    for value, flag in (
        (options.cache_control, "--cache-control"),
        (options.replay_mode, "--replay-mode"),
        (options.graph_profiling, "--graph-profiling"),
    ):
        if value is not None:
            argv += [flag, value]
    argv += [
        "--force-overwrite",
        "--export",
        request.out.rstrip("/") + "/" + _name(request),
        *(options.args or ()),
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


def _what(options: Options) -> list[str]:
    """Sets, sections and metrics: 'basic' unless something else was asked for."""
    flags: list[str] = []
    for section in options.sections or ():
        flags += ["--section", section]
    if options.set is not None or not (flags or options.metrics):
        flags += ["--set", options.set or "basic"]
    if options.metrics:
        flags += ["--metrics", ",".join(options.metrics)]
    return flags


def _which(request: WrapRequest, options: Options, windowed: bool, notes: list[str]) -> list[str]:
    """Which launches: the window, NVTX ranges, names, skip and count."""
    flags: list[str] = []
    if windowed:
        flags += ["--profile-from-start", "off"]
    if options.ranges:
        flags.append("--nvtx")
        for name in options.ranges:
            flags += ["--nvtx-include", _nvtx_filter(name)]
    pattern = options.kernels
    if pattern is None and request.ranks > 1:
        pattern = f"^(?!{_COLLECTIVES})"
        notes.append("NCCL kernels are left out: replaying one would wait for the other ranks for ever")
    if pattern is not None:
        flags += ["--kernel-name", f"regex:{pattern}"]
    if options.launch_skip:
        flags += ["--launch-skip", str(options.launch_skip)]
    count = options.launch_count
    if count is None and not windowed:
        count = DEFAULT_LAUNCHES
        notes.append(f"ncu profiles the first {count} kernel launches of the run: it is recorded as a whole")
    if count:
        flags += ["--launch-count", str(count)]
    return flags


def _nvtx_filter(name: str) -> str:
    """A push/pop range of the default domain for --nvtx-include: special characters escaped, '/' last."""
    return _NVTX_SPECIAL.sub(r"\\\1", name) + "/"


def _name(request: WrapRequest) -> str:
    """One rank, one folder: 'report'. With several ranks also host and pid, in case they share one."""
    return "report" if request.ranks == 1 else "report_%h_%p"
