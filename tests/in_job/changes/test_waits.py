"""Waits that do nothing for the program, and still wait for torch, triton and the hook."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from profrun.contract.changes import parse
from profrun.in_job import gpu_idle
from profrun.in_job.changes.waits import NoCalls, NoEmptyCache, NoSynchronize


class Event:
    """A torch.cuda.Event whose time is known when somebody has waited for it."""

    def __init__(self, *, over: bool) -> None:
        self.over = over
        self.waits = 0

    def query(self) -> bool:
        return self.over

    def synchronize(self) -> None:
        self.over = True
        self.waits += 1

    def elapsed_time(self, end_event: Event) -> float:
        if not end_event.over:
            raise RuntimeError("device not ready")
        return 2.5


def made(kind: type[NoCalls], text: str) -> tuple[NoCalls, Any, list[str]]:
    """The change, a stand-in torch, and what was really called."""
    called: list[str] = []

    class OwnEvent(Event):
        def elapsed_time(self, end_event: Event) -> float:
            return super().elapsed_time(end_event)

    def empty_cache() -> None:
        called.append("empty_cache")

    cuda = SimpleNamespace(
        synchronize=lambda device=None: called.append(f"synchronize {device}"),
        empty_cache=empty_cache,
        memory=SimpleNamespace(empty_cache=empty_cache),
        Event=OwnEvent,
        is_initialized=lambda: True,
    )
    torch = SimpleNamespace(cuda=cuda)
    process: Any = SimpleNamespace(warn=lambda _finding: None)
    change = kind(parse(text), process)
    change.attach(torch)
    return change, torch, called


def call_from(package: str, function: Any, *args: Any) -> None:
    """Call a function from a module of this name."""
    module = ModuleType(package)
    vars(module).update(function=function, args=args)
    exec("function(*args)", vars(module))


@pytest.mark.parametrize(
    ("package", "real"),
    [
        ("__main__", False),
        ("train.loop", False),
        ("torchvision.models", False),
        ("torch.cuda.graphs", True),
        ("torch.autograd.profiler", True),
        ("triton.testing", True),
    ],
)
def test_who_still_waits(package: str, *, real: bool) -> None:
    change, torch, called = made(NoSynchronize, "no-synchronize")
    call_from(package, torch.cuda.synchronize, "cuda:1")
    assert called == (["synchronize cuda:1"] if real else [])
    assert change.count == (not real)


def test_the_hook_still_waits() -> None:
    change, torch, called = made(NoSynchronize, "no-synchronize")
    assert gpu_idle.wait_until_idle(torch)
    assert (called, change.count) == (["synchronize None"], 0)


def test_times_between_events_wait_for_the_event() -> None:
    """A program waits with synchronize() before it reads times; torch raises an error otherwise."""
    _change, torch, _called = made(NoSynchronize, "no-synchronize")
    begin, end = torch.cuda.Event(over=True), torch.cuda.Event(over=False)
    assert begin.elapsed_time(end) == 2.5
    assert begin.elapsed_time(end) == 2.5
    assert end.waits == 1


def test_the_cache_is_kept() -> None:
    change, torch, called = made(NoEmptyCache, "no-empty-cache")
    call_from("__main__", torch.cuda.empty_cache)
    call_from("__main__", torch.cuda.memory.empty_cache)
    call_from("torch.cuda.graphs", torch.cuda.empty_cache)
    assert called == ["empty_cache"]
    finding = change.finding()
    assert finding is not None
    assert finding.what == "no-empty-cache: 2 calls of torch.cuda.empty_cache() did nothing"


def test_real_torch_has_what_is_replaced() -> None:
    torch = pytest.importorskip("torch")
    assert torch.cuda.empty_cache is torch.cuda.memory.empty_cache
    assert callable(torch.cuda.synchronize)
    assert callable(torch.cuda.Event.elapsed_time)
    assert "torch.cuda" in sys.modules
