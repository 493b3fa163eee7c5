"""How rocprofv3, or rocprof where that is all there is, wraps a command. Pure; shipped into the job.

Flags were checked against the command-line tables of rocprofv3's documentation for ROCm 6.2, 6.3, 6.4, 7.0,
7.1 and 7.2 and against its argument parser of ROCm 7.0; ``SINCE`` says since which ROCm a flag is used. No
AMD GPU was at hand: none of these commands has been run on one.

What rocprofv3 needs to be told:

* the output format, because ROCm 7.0 changed the default from csv to rocpd;
* no ``-o``: with a name of its own every process of a job writes the same file. Left out, files are
  ``<-d>/<hostname>/<pid>_...``;
* ``--marker-trace``: without it releases before spring 2026 never hear roctxProfilerResume and
  roctxProfilerPause, and record nothing with ``--selected-regions``.
"""

from __future__ import annotations

from ...contract.codec import from_json
from ...contract.schedule import STEADY
from ...contract.units import bytes_text
from ...contract.wrapping import Wrapped, WrapRequest
from .profiler import Options

SINCE: dict[str, tuple[int, int]] = {
    "rocpd": (7, 0),
    "--selected-regions": (7, 0),
    "--rccl-trace": (6, 4),
    "--rocdecode-trace": (6, 4),
    "--runtime-trace": (6, 4),
    "--kokkos-trace": (6, 4),
    "--rocjpeg-trace": (7, 0),
    "--memory-allocation-trace": (6, 3),
    "--pmc": (6, 3),
    "--kernel-include-regex": (6, 3),
}
"""First ROCm of flags and formats that not every rocprofv3 has."""

_SDK = {(0, 4): (6, 2), (0, 5): (6, 3), (0, 6): (6, 4), (1, 0): (7, 0), (1, 1): (7, 1), (1, 2): (7, 2)}
_DEFAULT = ("kernel", "hip", "marker", "memory-copy")
_FILES = {"rocpd": "**/*_results.db", "json": "**/*_results.json"}


_V1_FLAG = {
    **dict.fromkeys(
        ("kernel", "hip", "hip-runtime", "hip-compiler", "memory-copy", "runtime"), "--hip-trace"
    ),
    **dict.fromkeys(("hsa", "hsa-core", "hsa-amd", "hsa-image", "hsa-finalizer"), "--hsa-trace"),
    "marker": "--roctx-trace",
    "sys": "--sys-trace",
}


def rocm(version: tuple[int, ...] | None) -> tuple[int, int] | None:
    """ROCm's version from what the tool stated: its own (0.4 to 1.2 of rocprofiler-sdk) or ROCm's."""
    if not version:
        return None
    pair = (version[0], version[1] if len(version) > 1 else 0)
    if pair[0] > 1:
        return pair
    return _SDK.get(pair) or ((7, 2) if pair > (1, 2) else (6, 2))


def wrap(request: WrapRequest) -> Wrapped:
    """``rocprofv3 ... -- COMMAND``, one command per group of counters; or ``rocprof ... COMMAND``."""
    options = from_json(Options, request.options)
    if request.tool.rpartition("/")[2] == "rocprof":
        return _v1(request, options)
    notes: list[str] = []
    release = rocm(request.version)
    if release is None:
        notes.append("rocprofv3 did not state its version: the flags of ROCm 7 are used")
        release = (7, 2)
    groups = _groups(options, release, notes)
    windowed = _windowed(request, release, notes)
    chosen = _format(options, release, notes)
    window = ["--selected-regions"] if windowed and release >= SINCE["--selected-regions"] else []
    if groups:
        notes.append("counters serialise kernels: their times are not compared with those of a timeline")
    commands = []
    for number, group in enumerate(groups or [()], 1):
        folder = _folder(request, f"pass{number}" if len(groups) > 1 else "")
        argv = [request.tool, "--output-format", chosen, "-d", folder]
        argv += _counter_flags(options, group) if group else []
        argv += [] if group else _trace_flags(options, release, notes)
        argv += [*window, *(options.args or ()), "--", *request.argv]
        commands.append(tuple(argv))
    _clash(request, notes)
    kernels = "**/*_counter_collection.csv" if groups else "**/*_trace.csv"
    return Wrapped(
        argv=commands[0],
        hook="roctx",
        emitter="roctx",
        finalise_s=120.0,
        expected=(_FILES.get(chosen, kernels),),
        passes=tuple(commands[1:]),
        notes=notes,
    )


def reason(log: str, *, windowed: bool = True, reported: bool = False) -> str | None:
    """Why there are no files or no GPU data in them, by what the profiler printed; None: not known.

    Args:
        log: stdout and stderr of the profiler.
        windowed: whether recording waited for roctxProfilerResume.
        reported: whether whole files are there: then recording did resume.
    """
    for needle, text in _LOG_REASONS:
        if needle in log:
            return text
    return _NEVER_RESUMED if windowed and not reported else None


_NEVER_RESUMED = (
    "rocprofv3 recorded nothing: roctxProfilerResume was never called, so the run ended before its window "
    "opened (fewer steps than the schedule's skip_first + wait + warmup), no step was found, the image has "
    "no ROCTX library, or the process was killed before rocprofv3 wrote"
)

_LOG_REASONS = (
    (
        "CONFIGURATION_LOCKED",
        (
            "two copies of rocprofiler-sdk were loaded: torch's own, beside the one of rocprofv3; use an "
            "image whose torch was built against the ROCm it has, or collectors: [torch]"
        ),
    ),
    (
        "unrecognized arguments",
        (
            "this rocprofv3 does not know one of the flags: its version was not found out or is too old "
            "for args"
        ),
    ),
    (
        "Permission denied: /dev/kfd",
        (
            "the job may not open /dev/kfd: pass --device=/dev/kfd --device=/dev/dri and the numeric groups "
            "that own them"
        ),
    ),
    (
        "cannot be collected in a single pass",
        "a group of counters does not fit the hardware: make more and smaller groups in rocprof.pmc",
    ),
    ("No space left on device", "the disk that holds the trial's folder is full: rocprofv3 could not write"),
)


def _windowed(request: WrapRequest, release: tuple[int, int], notes: list[str]) -> bool:
    if request.whole:
        schedule = request.schedule
        notes.append(
            f"rocprofv3 records the run as a whole, at most {schedule.max_seconds:g} s and "
            f"{bytes_text(schedule.max_size)}: the hook of a Python program ends it at a limit "
            f"(roctxProfilerPause); a program in another language is recorded to its end"
        )
        return False
    if release < SINCE["--selected-regions"]:
        notes.append(
            f"rocprofv3 of ROCm {release[0]}.{release[1]} has no --selected-regions: it records from the "
            f"start of the run to the window's end (roctxProfilerPause)"
        )
        if request.schedule.wait == STEADY:
            notes.append(
                "the files grow as long as schedule.wait waits for the steady state: set it to a number"
            )
    return True


def _format(options: Options, release: tuple[int, int], notes: list[str]) -> str:
    asked = options.output_format or "auto"
    known = release >= SINCE["rocpd"]
    if asked == "rocpd" and not known:
        notes.append(f"rocprofv3 of ROCm {release[0]}.{release[1]} does not write rocpd: csv instead")
    if asked in ("csv", "json"):
        return asked
    return "rocpd" if known else "csv"


def _trace_flags(options: Options, release: tuple[int, int], notes: list[str]) -> list[str]:
    """Flags of what to trace; kinds that this release does not know are left out, with a note."""
    flags = []
    kinds = list(options.trace or _DEFAULT)
    if "marker" not in kinds:
        kinds.append("marker")
    for kind in kinds:
        flag = f"--{kind}-trace"
        if release < SINCE.get(flag, (0, 0)):
            notes.append(f"{kind} is left out: rocprofv3 has {flag} from ROCm {_dotted(SINCE[flag])} on")
        else:
            flags.append(flag)
    if options.kernels:
        notes.append("kernels is left out: rocprofv3 filters counters by kernel name, not traces")
    return flags


def _counter_flags(options: Options, group: tuple[str, ...]) -> list[str]:
    flags = ["--pmc", *group, "--marker-trace"]
    if options.kernels:
        flags += ["--kernel-include-regex", options.kernels]
    return flags


def _groups(options: Options, release: tuple[int, int], notes: list[str]) -> list[tuple[str, ...]]:
    """Groups of counters; none where this release takes them from a file only."""
    groups = [group for group in options.pmc or () if group]
    if groups and release < SINCE["--pmc"]:
        notes.append(
            "pmc is left out: before ROCm 6.3 rocprofv3 takes counters from a file only (args: [-i, FILE])"
        )
        return []
    if len(groups) > 1:
        notes.append(f"{len(groups)} groups of counters: the command runs {len(groups)} times")
    return groups


def _folder(request: WrapRequest, part: str) -> str:
    """Output folder; with several ranks one per rank, named by RANK (%rank% is not torchrun's)."""
    parts = [request.out.rstrip("/"), part, "rank%env{RANK}%" if request.ranks > 1 else ""]
    return "/".join(item for item in parts if item)


def _clash(request: WrapRequest, notes: list[str]) -> None:
    if any(word.rpartition("/")[2].startswith(("python", "torchrun")) for word in request.argv[:1]):
        notes.append(
            "torch wheels of 2026 carry a rocprofiler-sdk of their own: if rocprofv3 ends with "
            "CONFIGURATION_LOCKED or hangs at start, use an image whose torch uses the image's ROCm"
        )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _v1(request: WrapRequest, options: Options) -> Wrapped:
    """``rocprof --hip-trace --roctx-trace --timestamp on -o FILE COMMAND``: no ``--``, and no window."""
    notes = [
        "rocprof (v1) records the run to its end: it has no window, and no limit of the schedule ends it"
    ]
    argv = [request.tool]
    for kind in options.trace or _DEFAULT:
        flag = _V1_FLAG.get(kind)
        if flag is None:
            notes.append(f"{kind} is left out: rocprof (v1) does not trace it")
        elif flag not in argv:
            argv.append(flag)
    if options.pmc:
        notes.append(
            "pmc is left out: rocprof (v1) takes counters from an input file only (args: [-i, FILE])"
        )
    if request.schedule.wait == STEADY and not request.whole:
        notes.append("schedule.wait: steady only says which of the recorded steps count as the window")
    if request.ranks > 1:
        notes.append(
            "rocprof (v1) writes one file per command: start one rank with each (srun, mpirun), not torchrun"
        )
    argv += ["--timestamp", "on", "-o", request.out.rstrip("/") + "/results.csv"]
    argv += options.args or ()
    return Wrapped(
        argv=(*argv, *request.argv),
        hook="none",
        emitter="roctx",
        finalise_s=300.0,  # it turns its records into csv, json and a database after the program
        expected=("results*.csv", "results.json", "results.db"),
        notes=notes,
    )
