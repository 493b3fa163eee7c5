"""The table of profilers: what each one is, as it declares itself, and what a vendor-neutral collector
becomes.

A profiler is one folder with ``profiler.py`` (the declaration, ``PROFILER``), ``wrap.py`` (how it wraps a
command) and ``reader.py`` for its files. Optional are ``in_process.py``, ``preflight.py`` and
``unfinished.py``, which run inside the job, and ``doctor.py``: ``check_host() -> Finding | Passed`` and
``check_image(versions) -> Finding | None`` are what ``profrun doctor`` says of it besides.

The folders of ``BUILT_IN`` are in ``collectors/``. Others are found by the entry point group
``profrun.collectors``, whose entries name a package: they are loaded only when a name is asked for that
is not built in, because reading entry points takes longer than the rest of the start. Inside a job all
profilers that were shipped are folders too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

BUILT_IN = ("none", "torch", "nsys", "ncu", "rocprof", "mapping")
"""Profilers of profrun itself, in the order in which they are listed and their readers are asked."""

MAPPING = "mapping"
"""The collector that ``ranges.lines`` adds to those of a job."""
UNPROFILED = "none"
"""The collector of trials without a profiler: the hook alone times their steps."""

GROUP = "profrun.collectors"
"""Entry point group of all others; ``NAME = PACKAGE``."""

VENDORS = ("nvidia", "amd", "none")
"""Whose GPUs a trial can see; ``none``: there is no GPU."""

TIMELINE, COUNTERS = "timeline", "counters"
NEUTRAL = (TIMELINE, COUNTERS)
"""Vendor-neutral collectors: a job may name one, and the vendor of the GPUs says which profiler it
becomes."""

HostSetting = Literal["nvidia_counters", "perf_events"]
"""Settings of a host that allow to everybody what otherwise takes a capability: NVIDIA's driver loaded with
``NVreg_RestrictProfilingToAdminUsers=0``; ``kernel.perf_event_paranoid`` of at most 2."""

_ROOT = __name__.split(".")[0]  # "profrun" here, "_profrun" inside a job


@dataclass(frozen=True)
class Privilege:
    """Something for which a profiler needs a capability in a container (CAP_PERFMON, or CAP_SYS_ADMIN).

    Attributes:
        what: what needs it, in words.
        setting: the host setting that allows the same to everybody.
        option: the option that asks for it; None: every trial does.
        vendor: whose GPUs it is about; None: any.
        always: containers need the capability whatever the setting is: the engine's seccomp profile asks for
            it.
    """

    what: str
    setting: HostSetting
    option: str | None = None
    vendor: str | None = None
    always: bool = False

    def asked_by(self, options: Mapping[str, object]) -> bool:
        """Whether a trial with these options needs it."""
        return self.option is None or options.get(self.option) not in (None, False, "none", "", (), [])


@dataclass(frozen=True)
class Profiler:
    """One profiler.

    Attributes:
        name: what a job writes under ``collectors``; also the name of its folder.
        title: its full name, for people.
        options: dataclass of its options, each field made with ``contract.options.option``.
        tools: its executables, the preferred one first; empty for a profiler without one.
        places: folders (globs) where its vendor installs them, looked through after the PATH.
        vendors: on whose GPUs it runs; ``none``: also without a GPU.
        timeline_on, counters_on: the vendors on whose GPUs ``timeline`` and ``counters`` become this
            profiler.
        serial: kernels run one at a time under it, so its times are no timeline's.
        serial_option: the option with which it becomes serial, None if none does.
        exclusive: it takes the GPU's tracing interface, which serves one profiler at a time.
        keeps_environment: its files may hold the program's whole environment, secrets too.
        requires: Python package that the program must be able to import; None for one that needs none.
        privileges: what it needs a capability for; empty for one that needs none.
        counters_defaults: options of a ``counters`` trial where the job does not give them.
        module_depth: down to which depth nn.Modules get ranges where the job does not say it, round the
            forward only: the profiler itself must link the backward to it.
        maps: it finds out from which lines and modules the kernels come and is no measurement: its steps take
            longer.
        alternatives: pairs of options of which a job may give only one.
        log_lines: regular expression of the begin of lines that it prints itself among those of the program,
            and that say nothing about an end; None where there are none.
        package: dotted name of its folder; set when it is loaded.
    """

    name: str
    title: str
    options: type
    tools: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    vendors: tuple[str, ...] = VENDORS
    timeline_on: tuple[str, ...] = ()
    counters_on: tuple[str, ...] = ()
    serial: bool = False
    serial_option: str | None = None
    exclusive: bool = False
    keeps_environment: bool = False
    requires: str | None = None
    privileges: tuple[Privilege, ...] = ()
    counters_defaults: Mapping[str, object] = field(default_factory=dict)
    module_depth: int = 0
    maps: bool = False
    alternatives: tuple[tuple[str, str], ...] = ()
    log_lines: str | None = None
    package: str = ""

    def stands_for(self, neutral: str, vendor: str) -> bool:
        """Whether a vendor-neutral collector becomes this profiler on a vendor's GPUs."""
        return vendor in (self.timeline_on if neutral == TIMELINE else self.counters_on)

    def is_serial(self, options: Mapping[str, object]) -> bool:
        """Whether kernels run one at a time under it with these options."""
        return self.serial or bool(self.serial_option and options.get(self.serial_option))

    def part(self, module: str) -> Any:
        """One module of its folder, like ``wrap`` or ``reader``; None when the folder has no such module.

        Raises:
            ImportError: the module is there and something that it imports is not.
        """
        name = f"{self.package}.{module}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None


class UnknownProfilerError(LookupError):
    """No profiler has this name; the message says which names there are."""


@cache
def profiler(name: str) -> Profiler:
    """The profiler of this name.

    Raises:
        UnknownProfilerError: there is none.
        ImportError: its declaration cannot be imported.
    """
    package = f"{_ROOT}.collectors.{name}"
    if name not in BUILT_IN and not (name.isidentifier() and name in _shipped()):
        package = _entry_points().get(name, "")
    if not package:
        raise UnknownProfilerError(f"unknown collector {name!r}: it is one of {', '.join(all_names())}")
    return _load(package)


def built_in() -> tuple[Profiler, ...]:
    """The profilers of profrun itself."""
    return tuple(profiler(name) for name in BUILT_IN)


def names() -> tuple[str, ...]:
    """Names of all profilers that are installed, or in a job: shipped; the built-in ones first."""
    return (*BUILT_IN, *sorted({*_entry_points(), *_shipped()} - set(BUILT_IN)))


def tools() -> tuple[str, ...]:
    """``names`` without the mapping: what a machine can have or lack."""
    return tuple(name for name in names() if not profiler(name).maps)


def all_names() -> tuple[str, ...]:
    """Everything that a job may write under ``collectors``."""
    return (*names(), *NEUTRAL)


def under_text(collector: str | None) -> str:
    """What recorded a trial, in words: "under torch", "without a profiler".

    Args:
        collector: as the job names it; "none" or None where no profiler ran.
    """
    return "without a profiler" if collector in (None, "none") else f"under {collector}"


def become(named: str, vendor: str) -> Profiler | None:
    """What a collector becomes on a vendor's GPUs: a vendor-neutral one the profiler that stands for it,
    None where nothing can do it; every other one itself.

    Raises:
        UnknownProfilerError: no profiler has this name.
        ImportError: its declaration cannot be imported.
    """
    if named not in NEUTRAL:
        return profiler(named)
    return next((found for found in built_in() if found.stands_for(named, vendor)), None)


def candidates(named: str) -> tuple[Profiler, ...]:
    """All that a collector may become, over all vendors: itself, or what stands for a neutral one.

    Raises:
        UnknownProfilerError: no profiler has this name.
    """
    if named not in NEUTRAL:
        return (profiler(named),)
    return tuple(
        found for found in built_in() if (found.timeline_on if named == TIMELINE else found.counters_on)
    )


def all_serial(options: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether kernels run one at a time under every one of these profilers.

    Args:
        options: profiler -> its options. One that is not installed (any more) does not count as serial.
    """
    return bool(options) and all(_is_serial(name, block) for name, block in options.items())


def _is_serial(name: str, options: Mapping[str, object]) -> bool:
    try:
        return profiler(name).is_serial(options)
    except UnknownProfilerError:
        return False


def _load(package: str) -> Profiler:
    declared: Profiler = importlib.import_module(f"{package}.profiler").PROFILER
    return replace(declared, package=package)


@cache
def _shipped() -> frozenset[str]:
    """Folders beside this one that declare a profiler: inside a job, all that came with the bundle."""
    if _ROOT == "profrun":
        return frozenset()
    folder = Path(__file__).resolve().parent.parent / "collectors"
    return frozenset(path.parent.name for path in folder.glob("*/profiler.py"))


@cache
def _entry_points() -> Mapping[str, str]:
    """Name -> package of every installed profiler that is not built in; empty inside a job."""
    if _ROOT != "profrun":
        return {}
    from importlib.metadata import entry_points

    return _packages(entry_points(group=GROUP))


def _packages(points: Iterable[Any]) -> dict[str, str]:
    return {point.name: point.value for point in points if point.name not in BUILT_IN}
