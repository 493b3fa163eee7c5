"""Profilers exclude each other: what user code does with torch.profiler inside a trial, and record_function.

CUPTI and rocprofiler-sdk serve one subscriber. Inside nsys, ncu and rocprof trials a profiler of the user's
own code is kept to CPU activity, so the program goes on working and the trial's data stays whole. In
torch trials the user's profiler is switched off: torch allows one at a time, and it is ours. In ``none``
trials it runs as written. In each case a warning says so.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from . import emit
from .torch_profile import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable

EXTERNAL = ("nsys", "ncu", "rocprof")


def guard(torch: Any, collector: str, warn: Callable[[str], None]) -> None:
    """Put the rules of this module on torch's profilers."""
    if collector in EXTERNAL:
        _cpu_only(torch, collector, warn)
    elif collector == "torch":
        _switch_off(torch, warn)
    else:
        _tell(torch, warn)


def _cpu_only(torch: Any, collector: str, warn: Callable[[str], None]) -> None:
    owner = torch.autograd.profiler.profile
    original = owner.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
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
            f"the program starts torch.profiler inside a {collector} trial: it records CPU activity only, "
            "because the GPU's tracing interface serves one profiler at a time: use collectors: [torch]"
        )

    owner.__init__ = __init__


def _switch_off(torch: Any, warn: Callable[[str], None]) -> None:
    owner = torch.profiler.profile
    original = owner.__init__
    message = (
        "the program starts torch.profiler itself: it records nothing in a torch trial, because torch runs "
        "one profiler at a time and profrun's has the window"
    )

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        warn(message)
        arguments = dict(kwargs)
        arguments["schedule"] = lambda _step: torch.profiler.ProfilerAction.NONE
        arguments["on_trace_ready"] = None
        original(self, **{name: value for name, value in arguments.items() if name != "record_steps"})
        self.record_steps = False
        _make_inert(torch, self, warn)

    owner.__wrapped_init__ = original
    owner.__init__ = __init__
    _legacy_off(torch, warn, message)


def _make_inert(torch: Any, profile: Any, warn: Callable[[str], None]) -> None:
    """Reading results gives empty ones instead of an assertion about a profiler that never ran."""
    empty = torch.autograd.profiler_util.EventList([])
    profile.events = lambda: empty
    profile.key_averages = lambda *_args, **_kwargs: empty

    def export(path: Any, *_args: Any, **_kwargs: Any) -> None:
        warn(f"the program's own trace {path} was not written: its profiler is off in a torch trial")

    for name in ("export_chrome_trace", "export_stacks", "export_memory_timeline"):
        setattr(profile, name, export)


def _legacy_off(torch: Any, warn: Callable[[str], None], message: str) -> None:
    """torch.autograd.profiler.profile used directly; torch.profiler makes one too, for its own use."""
    owner = torch.autograd.profiler.profile
    enter = owner.__enter__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        if getattr(self, "enabled", False):
            warn(message)
            self.enabled = False
            self.function_events = torch.autograd.profiler_util.EventList([])
        return enter(self)

    owner.__enter__ = __enter__  # torch.profiler does not come through here: it calls _prepare_trace


def _tell(torch: Any, warn: Callable[[str], None]) -> None:
    owner = torch.profiler.profile
    original = owner.start

    @functools.wraps(original)
    def start(self: Any) -> Any:
        if not getattr(self, OURS, False):
            warn("the program runs torch.profiler itself: step times of this trial include its overhead")
        return original(self)

    owner.start = start


def reroute_record_function(torch: Any, sink: emit.Sink) -> None:
    """torch.profiler.record_function reaches NVTX or ROCTX too, while somebody records."""
    owner = torch.autograd.profiler.record_function
    enter, leave = owner.__enter__, owner.__exit__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        sink.push(self.name)
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self: Any, *error: Any) -> Any:
        try:
            return leave(self, *error)
        finally:
            sink.pop(self.name)

    owner.__enter__, owner.__exit__ = __enter__, __exit__


def once(messages: Iterable[str]) -> list[str]:
    """The messages in order, each one time."""
    return list(dict.fromkeys(messages))
