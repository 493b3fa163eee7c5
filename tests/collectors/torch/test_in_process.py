"""The recorder inside the program waits for gloo, whose threads torch would let write into freed memory."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from profrun.collectors.torch.in_process import wait_for_gloo


def thread(name: str, work: Callable[[], object]) -> threading.Thread:
    """A started thread whose name the kernel knows."""

    def run() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
        work()

    found = threading.Thread(target=run, daemon=True)
    found.start()
    return found


def busy_until(stop: threading.Event) -> Callable[[], None]:
    """Work that never sleeps; it holds Python's lock for a moment only."""
    data = bytes(50_000_000)

    def work() -> None:
        while not stop.is_set():
            hashlib.sha256(data)

    return work


def test_a_thread_of_gloo_that_runs_is_waited_for() -> None:
    stop = threading.Event()
    thread("pt_gloo_runloop", busy_until(stop))
    waiting = threading.Thread(target=wait_for_gloo, args=(600.0,), daemon=True)
    waiting.start()
    waiting.join(1.0)
    assert waiting.is_alive()
    stop.set()
    waiting.join(300)
    assert not waiting.is_alive()


def test_threads_of_gloo_that_wait_for_work_and_other_threads_that_run_hold_nothing_up() -> None:
    stop = threading.Event()
    thread("pt_gloo_runloop", stop.wait)
    thread("loader", busy_until(stop))
    waiting = threading.Thread(target=wait_for_gloo, args=(600.0,), daemon=True)
    waiting.start()
    waiting.join(300)
    stop.set()
    assert not waiting.is_alive()


def test_a_collective_that_is_not_done_is_not_waited_for_without_end() -> None:
    stop = threading.Event()
    thread("pt_gloo_runloop", busy_until(stop))
    began = time.monotonic()
    wait_for_gloo(0.5)
    stop.set()
    assert time.monotonic() - began >= 0.5
