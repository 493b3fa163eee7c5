"""What more threads on the CPU could gain, counted by hand: one step of 100 us with one thread on 4 cores."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.cpu_threads import few_cpu_threads
from tests.analysis.kit import memory_trace, step
from tests.analysis.rules.cases import LAUNCH, LOADER, ONE_THREAD, US

PRODUCT = ("op", "aten::mm", 5 * US, 40 * US, "main")
SUM = ("op", "aten::add", 50 * US, 20 * US, "main")
FETCH = ("op", LOADER, 50 * US, 20 * US, "main")
CALL = ("api", LAUNCH, 60 * US, US, "main")


@pytest.mark.parametrize(
    ("rows", "gain_us"),
    [([PRODUCT], 30), ([PRODUCT, SUM], 45), ([PRODUCT, FETCH], 30), ([PRODUCT, SUM, CALL], 30)],
    ids=["three quarters of a product", "and of a sum", "not of a fetch", "not of work for a GPU"],
)
def test_all_operations_on_the_cpu_share_the_cores(rows: list[tuple[object, ...]], gain_us: int) -> None:
    trace = memory_trace([step(0, 0, 100 * US), *rows])
    (hit,) = few_cpu_threads.find(Context(trace, ONE_THREAD))
    assert hit.gain is not None
    assert hit.gain.ns == gain_us * US
