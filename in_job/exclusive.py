"""Profilers exclude each other: what user code does with torch.profiler inside a trial, and record_function.

CUPTI and rocprofiler-sdk serve one subscriber. In a trial whose profiler is the subscriber, a torch.profiler
of the program's own is kept to CPU activity, so the program goes on working and the trial's data stays whole.
Where the trial's profiler is torch.profiler itself, the program's own is switched off: torch allows one at
a time. In other trials it runs as written. In each case a warning says so.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from ..contract.finding import Finding

if TYPE_CHECKING:
    from .sink import Sink
    from .torch_types import Profile, Torch

Warn = Callable[[Finding], None]
CODE = "program-profiles-itself"


def guard(torch: Torch, collector: str, warn: Warn, *, exclusive: bool, is_torch: bool) -> None:
    """Put the rules of this module on torch's profilers.

    Args:
        collector: as the job names it, for the warnings.
        exclusive: the trial's profiler takes the GPU's tracing interface.
        is_torch: the trial's profiler is torch.profiler itself.
    """
    if is_torch:
        _switch_off(torch, collector, warn)
    elif exclusive:
        _cpu_only(torch, collector, warn)
    else:
        _tell(torch, warn)


def _cpu_only(torch: Torch, collector: str, warn: Warn) -> None:
    owner = torch.autograd.profiler.profile
    original = owner.__init__

    @functools.wraps(original)
    def __init__(self: Profile, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        activities = getattr(self, "kineto_activities", None)
        if not getattr(self, "enabled", True) or not activities:
            return
        cpu = torch.profiler.ProfilerActivity.CPU
        if activities == {cpu}:
            return
        self.kineto_activities = {cpu}
        self.use_device = None
        self.use_cuda = False
        warn(
            Finding(
                CODE,
                "warning",
                f"the program starts torch.profiler inside a {collector} trial: it records CPU activity only",
                "the GPU's tracing interface serves one profiler at a time",
                "use collectors: [torch]",
            )
        )

    owner.__init__ = __init__


def _switch_off(torch: Torch, collector: str, warn: Warn) -> None:
    owner = torch.profiler.profile
    original = owner.__init__
    finding = Finding(
        CODE,
        "warning",
        f"the program starts torch.profiler itself: it records nothing in a {collector} trial",
        "torch runs one profiler at a time, and that is profrun's",
    )

    @functools.wraps(original)
    def __init__(self: Profile, *args: Any, **kwargs: Any) -> None:
        warn(finding)
        arguments = dict(kwargs)
        arguments["schedule"] = lambda _step: torch.profiler.ProfilerAction.NONE
        arguments["on_trace_ready"] = None
        original(self, **{name: value for name, value in arguments.items() if name != "record_steps"})
        self.record_steps = False
        _make_inert(torch, self, collector, warn)

    owner.__init__ = __init__
    _legacy_off(torch, warn, finding)


def _make_inert(torch: Torch, profile: Profile, collector: str, warn: Warn) -> None:
    """Reading results gives empty ones instead of an assertion about a profiler that never ran."""
    empty = torch.autograd.profiler_util.EventList([])
    profile.events = lambda: empty
    profile.key_averages = lambda *_args, **_kwargs: empty

    def export(path: Any, *_args: Any, **_kwargs: Any) -> None:
        what = f"the program's own trace {path} was not written: its profiler is off in a {collector} trial"
        warn(Finding("own-trace-not-written", "warning", what))

    for name in ("export_chrome_trace", "export_stacks", "export_memory_timeline"):
        setattr(profile, name, export)


def _legacy_off(torch: Torch, warn: Warn, finding: Finding) -> None:
    """torch.autograd.profiler.profile used directly; torch.profiler makes one too, for its own use."""
    owner = torch.autograd.profiler.profile
    enter = owner.__enter__

    @functools.wraps(enter)
    def __enter__(self: Profile) -> Any:
        if getattr(self, "enabled", False):
            warn(finding)
            self.enabled = False
            self.function_events = torch.autograd.profiler_util.EventList([])
        return enter(self)

    owner.__enter__ = __enter__  # torch.profiler does not come through here: it calls _prepare_trace


def _tell(torch: Torch, warn: Warn) -> None:
    owner = torch.profiler.profile
    original = owner.start

    @functools.wraps(original)
    def start(self: Profile) -> Any:
        what = "the program runs torch.profiler itself: step times of this trial include its overhead"
        warn(Finding(CODE, "warning", what))
        return original(self)

    owner.start = start


def reroute_record_function(torch: Torch, sink: Sink) -> None:
    """torch.profiler.record_function reaches NVTX or ROCTX too, while somebody records."""
    owner = torch.autograd.profiler.record_function
    enter, leave = owner.__enter__, owner.__exit__

    @functools.wraps(enter)
    def __enter__(self: Profile) -> Any:
        sink.push(self.name)
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self: Profile, *error: Any) -> Any:
        try:
            return leave(self, *error)
        finally:
            sink.pop(self.name)

    owner.__enter__, owner.__exit__ = __enter__, __exit__
