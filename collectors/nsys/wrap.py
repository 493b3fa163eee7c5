"""How Nsight Systems wraps a command: flags, window, names, export. Pure; shipped into the job.

Flags were checked against ``nsys profile --help`` of 2024.2.3 and 2025.3.1 and run with them; ``FLAGS`` says
since when a flag is used, for older and newer ones.
"""

from __future__ import annotations

from ...contract.codec import from_json
from ...contract.machine import dotted
from ...contract.schedule import STEADY
from ...contract.units import bytes_text
from ...contract.wrapping import Limits, Wrapped, WrapRequest
from .profiler import Options

FLAGS: dict[str, tuple[int, ...]] = {
    "--cuda-graph-trace": (2021, 5),
    "--gpu-metrics-devices": (2024, 4),  # --gpu-metrics-device before
    "--python-sampling": (2024, 2),
    "--python-backtrace": (2025, 3),  # 2024.2.3 has it, but its exports do not hold the stacks
    "--pytorch": (2025, 3),
}
"""The last two: no version between 2024.2.3 and 2025.3.1 was looked at."""

_GPU_TRACE = ("cuda", "nvtx", "cublas", "cudnn")
_HOST_TRACE = ("nvtx",)


def nvtx_recordable(nvtx: tuple[int, ...], nsys: tuple[int, ...]) -> bool | None:
    """Does this nsys record ranges of this version of Python's nvtx package? None: not known.

    Measured: nvtx 0.2.10 and 0.2.11 are recorded by nsys 2024.2.3; nvtx 0.2.12, 0.2.14, 0.2.15 and 0.2.17
    lose every range under 2023.4.4 and 2024.2.3, without a warning. The hook's injection emitter does
    not need the package and is recorded by 2024.2.3 too.
    """
    if nvtx < (0, 2, 12):
        return True
    if nsys[:2] <= (2024, 2):
        return False
    return None


def wrap(request: WrapRequest) -> Wrapped:
    """``nsys profile ... COMMAND``; reports land in ``request.out`` and are exported to SQLite there.

    The recorded part is the hook's window (cudaProfilerStart/Stop) where there is a CUDA GPU, else the whole
    run: without CUDA nothing calls cudaProfilerStart, and nsys would write no report at all. A run without
    steps is recorded as a whole, too, in a session that the wrapper can end when a limit is reached:
    ``--duration`` would count the seconds in which the program imports torch, and nothing limits the size.
    """
    options = from_json(Options, request.options)
    notes: list[str] = []
    gpu = request.vendor == "nvidia"
    windowed = _windowed(request, options, gpu, notes)
    limits = _limits(request, options, notes) if request.whole else None
    argv = [request.tool, "profile", "--trace=" + ",".join(_trace(options, gpu))]
    argv += _window_flags(request, options, windowed, notes)
    if limits is not None:
        argv.append("--session-new=" + _SESSION)
    stacks = _stacks(request, options, gpu, notes)
    sample = options.sample or "none"
    argv += [
        "--sample=" + ("process-tree" if stacks and sample == "none" else sample),
        "--cpuctxsw=" + (options.cpuctxsw or "none"),
        *stacks,
        *_python_flags(request, options, notes),
    ]
    if gpu and _has(request, "--cuda-graph-trace"):
        argv.append("--cuda-graph-trace=" + (options.cuda_graph_trace or "node"))
    if options.trace_fork is not False:
        argv.append("--trace-fork-before-exec=true")
    argv += _metrics_flags(request, options, gpu, notes)
    argv += [
        "--env-var=TMPDIR=" + (options.tmpdir or "/tmp"),
        "--force-overwrite=true",
        "--output=" + request.out.rstrip("/") + "/" + _name(request),
        *(options.args or ()),
    ]
    return Wrapped(
        argv=(*argv, *request.argv),
        # nsys writes its unfinished report to TMPDIR: the trial's folder is on a disk that is large enough,
        # not shared with other users' /tmp/nvidia, and kept when the job is stopped half way; its lock files
        # go after the export.
        env={"TMPDIR": request.out},
        hook="cuda" if windowed else "none",
        emitter="nvtx",
        finalise_s=900.0 if stacks else 120.0,
        export=(
            export_command(request.tool, stacks=bool(stacks)),
            ("rm", "-rf", request.out.rstrip("/") + "/nvidia"),
        ),
        expected=("*.nsys-rep", "*.sqlite"),
        named_last=("report*.qdstrm",),  # nsys-report-*.qdstrm while nsys 2024.2.3 writes it
        limits=limits,
        notes=notes,
    )


def export_command(tool: str, *, stacks: bool = False) -> tuple[str, ...]:
    """``nsys export`` of one report ('{file}') to the SQLite file beside it, by the nsys that recorded it.

    An older nsys cannot read the report of a newer one, so this runs where it was recorded. Without
    ``--output`` nsys writes into the working directory, whatever the report's path.

    Args:
        stacks: the report has Python stacks, whose frames are exported only when asked for (2025.3.1).
    """
    blobs = ("--include-blobs=true",) if stacks else ()
    return (
        tool,
        "export",
        "--type=sqlite",
        *blobs,
        "--force-overwrite=true",
        "--output={file}.sqlite",
        "{file}",
    )


def reason(log: str, *, windowed: bool = True, reported: bool = False) -> str | None:
    """Why there is no report, or no GPU data in it, read from what nsys printed; None when it says nothing.

    Args:
        log: stdout and stderr of ``nsys profile``.
        windowed: whether the capture waited for cudaProfilerStart.
        reported: whether whole reports are there: then what nsys says of its importer was settled afterwards
            (it prints that it found none also where an import follows and works).
    """
    if "No reports were generated" in log:
        return _NEVER_STARTED if windowed else "nsys recorded nothing: it found no process to trace"
    for needle, text in _LOG_REASONS:
        if needle in log and not (reported and needle == _NO_IMPORTER):
            return text
    return None


def not_started(log: str) -> str | None:
    """What nsys printed, where it failed before it could start the program; None: it says nothing of that.

    nsys and its agent are two processes. How far the start has got decides which text nsys prints; it exits
    with 1 then, and the next attempt works. What was seen of 2024.2.3 on two cores:

    - 9 of 340 starts, four at a time, lost the connection between the two within 0.2 s.
    - Where its agent or its launcher was killed 0.04 to 0.07 s after the start, nsys printed "Agent launcher
      failed" and "Failed to probe the process".
    - 7 of 500 starts, twelve at a time beside six busy processes, ended because ``sem_open`` did not find a
      semaphore that nsys makes for its own processes.

    Args:
        log: stdout and stderr of ``nsys profile``.
    """
    lines = (line.strip() for line in log.splitlines())
    return next((line for line in lines if line == "End of file" or line.startswith(_START_FAILED)), None)


_AGENT_LOST = "Connection to Agent lost"
_START_FAILED = (
    _AGENT_LOST,
    "[QuadDCommon::tag_message*] = Local Endpoint is not available",
    "Agent launcher failed",
    "Failed to probe the process",
    "[boost::errinfo_api_function_*] = sem_open",
    "Session name '",  # "... 'profrun' is already in use": a start that was killed has left its session
)

_NEVER_STARTED = (
    "nsys recorded nothing: cudaProfilerStart was never called, so the run ended before its window opened "
    "(fewer steps than the schedule's skip_first + wait + warmup), no step was found, or the work ran in a "
    "process that the hook did not reach"
)

_NO_IMPORTER = "Importer error status"
_LOG_REASONS = (
    (
        _AGENT_LOST,
        (
            "nsys lost the connection to its agent, so its recording is missing or incomplete: repeat a "
            "trial that failed with profrun resume RUN --failed"
        ),
    ),
    (
        "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        (
            "CUPTI has one subscriber at a time and another profiler (torch.profiler, DCGM, ncu) holds it: "
            "there is no CUDA data in this report"
        ),
    ),
    (
        _NO_IMPORTER,
        (
            "nsys left its recording (.qdstrm) without a report (.nsys-rep), because its QdstrmImporter was "
            "not found or failed: import it with the QdstrmImporter of a full installation of Nsight Systems"
        ),
    ),
    (
        "No space left on device",
        "the disk is full that holds the trial's folder, or cluster.scratch: nsys could not write its report",
    ),
    (
        "None of the installed GPUs are supported",
        "this nsys cannot sample metrics of this GPU: leave gpu_metrics out, or use a newer nsys",
    ),
    (
        "insufficient privilege",
        (
            "GPU metrics need counter permission (NVreg_RestrictProfilingToAdminUsers=0 or CAP_SYS_ADMIN); "
            "the timeline does not"
        ),
    ),
)


_SESSION = "profrun"
"""The session that ``nsys stop`` ends. Sessions are kept below TMPDIR, which is the rank's own folder: those
of two trials do not clash."""


def _limits(request: WrapRequest, options: Options, notes: list[str]) -> Limits:
    """A run without steps is recorded up to the schedule's limits; ``duration`` replaces ``max_seconds``."""
    schedule = request.schedule
    seconds = None if options.duration else schedule.max_seconds
    where = "its first use of a GPU" if request.vendor == "nvidia" else "its start"
    time = "" if seconds is None else f"{seconds:g} s from {where} on, and at most "
    notes.append(f"nsys records the run as a whole: at most {time}{bytes_text(schedule.max_size)}")
    return Limits((request.tool, "stop", "--session=" + _SESSION), seconds, schedule.max_size)


def _windowed(request: WrapRequest, options: Options, gpu: bool, notes: list[str]) -> bool:
    if request.whole:
        return False
    if options.capture == "all":
        notes.append("nsys records the whole run (capture: all)")
        return False
    if not gpu:
        notes.append("nsys records the whole run: without a CUDA GPU nothing calls cudaProfilerStart")
        return False
    return True


def _window_flags(request: WrapRequest, options: Options, windowed: bool, notes: list[str]) -> list[str]:
    if windowed:
        cycles = request.schedule.repeat
        end = "stop" if cycles == 1 else f"repeat:{cycles}"
        return ["--capture-range=cudaProfilerApi", f"--capture-range-end={end}"]
    if options.duration and request.schedule.wait == STEADY and not request.whole:
        notes.append(
            "duration may end the recording before the window opens, because schedule.wait waits for the "
            "steady state"
        )
    flags = []
    if options.delay:
        flags.append(f"--delay={options.delay:g}")
    if options.duration:
        # Without --kill none nsys ends the application when the duration is over.
        flags += [f"--duration={options.duration:g}", "--kill=none"]
    return flags


def _trace(options: Options, gpu: bool) -> tuple[str, ...]:
    return options.trace or (_GPU_TRACE if gpu else _HOST_TRACE)


def _metrics_flags(request: WrapRequest, options: Options, gpu: bool, notes: list[str]) -> list[str]:
    flags = []
    selector = options.gpu_metrics
    if selector is not None and not gpu:
        notes.append("gpu_metrics is left out: there is no NVIDIA GPU")
    elif selector is not None:
        plural = _has(request, "--gpu-metrics-devices")
        flags.append(f"--gpu-metrics-device{'s' if plural else ''}={selector}")
        if options.gpu_metrics_frequency:
            flags.append(f"--gpu-metrics-frequency={options.gpu_metrics_frequency}")
    if gpu and options.cuda_memory_usage:
        flags.append("--cuda-memory-usage=true")
    return flags


def _stacks(request: WrapRequest, options: Options, gpu: bool, notes: list[str]) -> list[str]:
    """Flags for the Python stacks of CUDA calls.

    nsys takes such a stack where it takes a backtrace of the call, which it does only while it samples the
    CPU. Of a list like ``kernel:0,memory:0`` only the last word counts (2024.2.3, 2025.3.1); 0 is the least
    time of a call, in ns.
    """
    if options.python_backtrace in (None, "none"):
        return []
    if not gpu:
        notes.append("python_backtrace is left out: there is no NVIDIA GPU")
        return []
    if not _has(request, "--python-backtrace"):
        notes.append(_needs("python_backtrace", "--python-backtrace", request))
        return []
    notes.append(
        "python_backtrace: nsys samples the CPU, and keeps every library that the program loads (2 GiB with "
        "PyTorch), so that it ends minutes after the program"
    )
    own = any(arg.startswith("--cudabacktrace") for arg in options.args or ())
    return [*([] if own else ["--cudabacktrace=all:0"]), f"--python-backtrace={options.python_backtrace}"]


def _python_flags(request: WrapRequest, options: Options, notes: list[str]) -> list[str]:
    flags = []
    if options.python_sampling and _has(request, "--python-sampling"):
        flags.append("--python-sampling=true")
    elif options.python_sampling:
        notes.append(_needs("python_sampling", "--python-sampling", request))
    if options.pytorch and _has(request, "--pytorch"):
        flags.append("--pytorch=" + ",".join(options.pytorch))
        if "functions-trace" in options.pytorch:
            notes.append(
                "pytorch: functions-trace breaks torch.compile, which then fails to import "
                "nsys_nvtx_annotations (nsys 2025.3.1, torch 2.11)"
            )
    elif options.pytorch:
        notes.append(_needs("pytorch", "--pytorch", request))
    return flags


def _needs(option: str, flag: str, request: WrapRequest) -> str:
    """That an option is left out, with the version from which it works."""
    return (
        f"{option} is left out: it needs nsys {dotted(FLAGS[flag])} or newer, and this is "
        f"{dotted(request.version)}"
    )


def _has(request: WrapRequest, flag: str) -> bool:
    """An unknown version is taken as a recent one."""
    return request.version is None or request.version >= FLAGS[flag]


def _name(request: WrapRequest) -> str:
    """One rank, one folder: 'report'. With several ranks also host and root pid, in case they share one.

    ``%q{RANK}`` is not used: nsys keeps the pattern itself as the name where RANK is not set.
    """
    return "report" if request.ranks == 1 else "report_%h_%p"
