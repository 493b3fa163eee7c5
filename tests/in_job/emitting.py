"""An emitter that notices what NVTX would silently get wrong."""

from __future__ import annotations

import threading

from profrun.in_job.sink import Sink


class Strict:
    """An emitter that writes down intervals and refuses what NVTX would silently get wrong."""

    name = "strict"
    hears_record_function = False

    def __init__(self) -> None:
        self.open: dict[int, list[str]] = {}
        self.log: list[str] = []

    def push(self, name: str) -> str:
        self.open.setdefault(threading.get_ident(), []).append(name)
        self.log.append("+" + name)
        return name

    def pop(self, handle: str) -> None:
        assert self.open[threading.get_ident()].pop() == handle, "closed in the wrong order"
        self.log.append("-" + handle)


def log(sink: Sink) -> str:
    assert isinstance(sink.emitter, Strict)
    return " ".join(sink.emitter.log).replace("profrun.step#", "s")
