"""A stand-in for torch.cuda whose GPU lags behind the host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class Gpu:
    """Events get their time when the GPU reaches them: ``run(ms)`` lets it work so long."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue: list[Any] = []
        self.calls: list[str] = []
        self.broken = False
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                self.time: float | None = None

            def record(self) -> None:
                gpu.queue.append(self)

            def query(self) -> bool:
                return self.time is not None

            def synchronize(self) -> None:
                if gpu.broken:
                    raise RuntimeError("CUDA error: an illegal memory access was encountered")
                gpu.run(0.0)

            def elapsed_time(self, other: Event) -> float:
                assert self.time is not None
                assert other.time is not None
                return other.time - self.time

        cudart = SimpleNamespace(
            cudaProfilerStart=lambda: self.calls.append("start"),
            cudaProfilerStop=lambda: self.calls.append("stop"),
        )
        self.cuda = SimpleNamespace(
            Event=Event,
            is_initialized=lambda: True,
            is_available=lambda: True,
            synchronize=lambda: self.calls.append("synchronize"),
            cudart=lambda: cudart,
        )
        self.version = SimpleNamespace(hip=None)

    def run(self, ms: float) -> None:
        for event in self.queue:
            event.time = self.now
        self.queue.clear()
        self.now += ms
