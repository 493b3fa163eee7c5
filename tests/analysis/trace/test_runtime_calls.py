"""Runtime calls and what they enqueued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from profrun.analysis.trace.frame import Frame, frame
from profrun.analysis.trace.runtime_calls import apis, launch_waits, looks_blocking
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace
from tests.conftest import first

LAUNCH = "cudaLaunchKernel"


def test_calls_and_what_they_enqueued() -> None:
    rows: list[Row] = [
        ("api", "cudaGraphLaunch", 0, 10, "main"),
        ("api", LAUNCH, 10, 4, "main"),
        ("api", LAUNCH, 20, 8, "main"),
    ]
    rows += [("kernel", "k", 50 + place, 1, "stream 7", {"launch": 0}) for place in range(3)]
    rows += [("sync", "Stream Wait Event", 60, 1, "stream 7", {"launch": 1})]  # a wait is no work
    found = {row.name: row for row in apis(memory_trace(rows))}
    launch = found[LAUNCH]
    assert (launch.calls, launch.total_ns, launch.mean_ns, launch.p50_ns, launch.max_ns) == (
        2,
        12,
        6.0,
        6.0,
        8,
    )
    assert {name: row.gpu_slices for name, row in found.items()} == {"cudaGraphLaunch": 3, LAUNCH: 0}


def launches(*pairs: tuple[int, int], late: int, step: int = 500_000) -> Frame:
    """A frame of launches: (ns in the call, ns of the kernel); a kernel starts ``late`` ns after its call
    began."""
    rows: list[Row] = []
    for place, (call, work) in enumerate(pairs):
        rows.append(("api", LAUNCH, place * step, call, "main"))
        rows.append(("kernel", "k", place * step + late, work, "stream 7", {"launch": len(rows) - 1}))
    return frame(memory_trace(rows))


def early(source: Frame, ns: int) -> Frame:
    """The same with all GPU work ``ns`` earlier."""
    ts, end = source.ts.copy(), source.end.copy()
    ts[source.gpu] -= ns
    end[source.gpu] -= ns
    return replace(source, ts=ts, end=end)


WAITED = [(9_000 + work, work) for work in (2_000, 3_000, 5_000, 40_000, 60_000, 300_000)]
"""Calls that take 9 us more than their kernel."""
FREE = [(7_000, work) for work in (2_000, 3_000, 5_000, 40_000, 60_000, 300_000)]
"""Calls that take 7 us whatever their kernel takes."""


def test_calls_that_cover_their_kernels_were_blocking() -> None:
    waits = launch_waits(launches(*WAITED, late=5_000))
    assert waits is not None
    assert (waits.launches, waits.share, waits.time_share, waits.stretched) == (6, 1.0, 1.0, True)
    assert waits.blocking


@pytest.mark.parametrize("ns", first(20, sorted(range(0, 400_000, 5_000), key=lambda ns: (ns % 20_000, ns))))
def test_gpu_work_that_is_recorded_early_was_not_waited_for(ns: int) -> None:
    """Kernels that end before their launch returns, because the GPU's clock is early."""
    assert not looks_blocking(early(launches(*FREE, late=9_000), ns))


def test_short_kernels_inside_of_equal_calls_tell_nothing() -> None:
    source = launches(*[(16_000, 2_000)] * 9, late=9_000)
    waits = launch_waits(source)
    assert waits is not None
    assert waits.blocked is None
    assert not looks_blocking(source)


def test_few_launches_tell_nothing_and_calls_that_return_early_did_not_wait() -> None:
    few, free = launch_waits(launches(*WAITED[:4], late=5_000)), launch_waits(launches(*FREE, late=9_000))
    assert few is not None
    assert free is not None
    assert (few.blocked, free.blocked) == (None, False)


def test_a_call_that_returns_long_after_its_kernel_waited_for_something_else() -> None:
    assert not looks_blocking(launches(*[(call + 200_000, work) for call, work in WAITED], late=5_000))


def test_a_graph_is_no_launch_of_a_kernel() -> None:
    assert launch_waits(frame(memory_trace([
        ("api", "cudaGraphLaunch", 0, 90, "main"), ("kernel", "k", 10, 50, "stream 7", {"launch": 0}),
    ]))) is None  # fmt: skip


BLOCKING = ("mlp_blocking", "transformer_blocking", "train_blocking")
ASYNC = ("mlp", "transformer", "train", "matmul_add_64", "matmul_add_4096", "rep2_transformer", "mlp_compile")


@pytest.mark.parametrize("name", BLOCKING)
def test_real_launches_that_blocked(name: str, real: Callable[..., Trace]) -> None:
    assert looks_blocking(frame(real(f"h200/torch/{name}.json.gz")))


@pytest.mark.parametrize("name", ASYNC)
def test_real_launches_that_did_not_block_at_any_offset_of_the_gpu(
    name: str, real: Callable[..., Trace]
) -> None:
    source = frame(real(f"h200/torch/{name}.json.gz"))
    offsets = np.unique(np.round(np.geomspace(100, 10**7, 300)).astype(int))
    assert [int(ns) for ns in (0, *offsets, *-offsets) if looks_blocking(early(source, int(ns)))] == []
