"""Classes of idle time on hand-drawn traces; every ns is accounted for."""

from __future__ import annotations

from profrun.analysis.trace.idle import idle
from tests.analysis.kit import memory_trace

LAUNCH = "cudaLaunchKernel"


def test_idle_classes_of_a_stream_to_the_ns() -> None:
    trace = memory_trace(
        [
            ("api", LAUNCH, 0, 5, "main"), ("api", LAUNCH, 10, 5, "main"), ("api", LAUNCH, 20, 5, "main"),
            ("api", LAUNCH, 400, 5, "main"),
            ("kernel", "a", 100, 50, "stream 7", {"launch": 0}),
            ("kernel", "b", 155, 45, "stream 7", {"launch": 1}),  # 5 ns after: the hardware's own gap
            # queued, 100 ns late: held back by something
            ("kernel", "c", 300, 20, "stream 7", {"launch": 2}),
            ("kernel", "d", 420, 10, "stream 7", {"launch": 3}),  # enqueued only after c had ended
            ("kernel", "e", 500, 10, "stream 7"),  # nobody knows who enqueued it
            ("kernel", "f", 310, 40, "stream 8"),  # another stream covers a part
        ]
    )  # fmt: skip
    device, stream, _ = idle(trace)
    assert (stream.stream, stream.span_ns, stream.busy_ns, stream.idle_ns) == (7, 410, 135, 275)
    waits = (stream.host_wait_ns, stream.kernel_wait_ns, stream.other_ns, stream.unknown_ns)
    assert waits == (100, 5, 100, 70)
    assert sum(waits) == stream.idle_ns
    assert stream.gaps == {"host_wait": 1, "kernel_wait": 1, "other": 1, "unknown": 1}
    # of the whole device the gap before d is 70 ns: stream 8 runs until 350
    assert (device.track, device.idle_ns, device.host_wait_ns) == (None, 245, 70)


def test_a_gap_of_exactly_the_usual_delay_is_other() -> None:
    rows = [
        ("api", LAUNCH, 0, 1, "main"), ("api", LAUNCH, 1, 1, "main"), ("api", LAUNCH, 2, 1, "main"),
        ("kernel", "a", 10, 10, "stream 7", {"launch": 0}),
        ("kernel", "b", 49, 10, "stream 7", {"launch": 1}),
        ("kernel", "c", 89, 10, "stream 7", {"launch": 2}),
    ]  # fmt: skip
    _, stream = idle(memory_trace(rows))
    assert (stream.kernel_wait_ns, stream.other_ns) == (29, 30)


def test_nested_kernels_leave_no_gap() -> None:
    rows = [
        ("kernel", "a", 0, 100, "stream 7"),
        ("kernel", "b", 10, 10, "stream 7"),
        ("kernel", "c", 50, 80, "stream 7"),
    ]
    device, _ = idle(memory_trace(rows))
    assert (device.busy_ns, device.idle_ns) == (130, 0)
