"""What waiting for a rank costs, on traces of a few kernels whose step without the late rank is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.late_rank import Lateness, host_bound_ns, lateness
from profrun.analysis.rules.step_cost import UnprofiledStep
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import LAUNCH, NCCL, NVJET, SGEMM, US, twin

Gpu = Sequence[tuple[str, int, int]]
"""Kernels of one rank: name, start and end, us."""


def ranks(*gpus: Gpu, length: int) -> list[Row]:
    """One step per rank; collectives run on a stream of their own. Times us."""
    rows: list[Row] = []
    for rank, kernels in enumerate(gpus):
        rows.append(step(0, 0, length * US, f"r{rank}:main"))
        for name, start, end in kernels:
            rows.append(("api", LAUNCH, 0, US, f"r{rank}:main"))
            extra = {"launch": len(rows) - 1}
            if name == NCCL:
                extra |= {"collectives.op": "allreduce", "collectives.group": "0"}  # type: ignore[dict-item]
            track = f"r{rank}:stream {9 if name == NCCL else 7}"
            rows.append(("kernel", name, start * US, (end - start) * US, track, extra))
    return rows


def late(rows: list[Row], rank: int, count: int = 2, unprofiled: UnprofiledStep | None = None) -> Lateness:
    found = lateness(Context(memory_trace(rows, ranks=count), unprofiled=unprofiled), rank)
    assert found is not None
    return found


LARGE_BATCH = ranks(
    [(NVJET, 0, 100), (NCCL, 100, 420), (NVJET, 100, 290)],  # the second takes 190 us instead of 100
    [(SGEMM, 0, 400), (NCCL, 400, 420)],
    length=430,
)
"""Rank 1 has twice the work. If it had that of rank 0, a step would take 100 + 100 + 20 + 10 us: 200 less."""
LATE_HOST = ranks([(NVJET, 0, 100), (NCCL, 100, 320)], [(NVJET, 200, 300), (NCCL, 300, 320)], length=330)
"""Rank 1 begins 200 us later; both compute for 100 us."""


def test_a_wait_beside_computation_costs_what_it_slows_the_computation() -> None:
    found = late(LARGE_BATCH, 1)
    assert found.waits_ns == 300 * US
    assert found.bare_ns == 110 * US  # from 290 to 400 us
    assert found.slowed_ns == 90 * US
    assert found.longer_ns == 200 * US
    assert found.bound_ns == 210 * US  # and 10 us in which the GPU of rank 1 is idle


def test_what_could_be_gained_is_not_less_than_what_the_twin_without_the_straggler_gains() -> None:
    (finding,) = [one for one in diagnose(memory_trace(LARGE_BATCH, ranks=2)) if one.code == "straggler"]
    assert finding.gain_ns is not None
    assert finding.gain_ns >= 200 * US
    assert "wait 300 us per step for rank 1 inside of collectives" in finding.what
    assert "110 us of it with no other work on the GPU" in finding.what
    assert "kernels beside the rest take 90 us longer" in finding.what
    assert "rank 1 computes 200 us per step longer than they do" in finding.what


def test_a_wait_of_one_of_two_ranks_counts_whole() -> None:
    """The step takes 200 us less with no late host: the mean of the ranks would be half of that."""
    assert late(LATE_HOST, 1).bound_ns == 200 * US


def test_ranks_that_only_the_profiler_makes_wait_are_no_straggler() -> None:
    """A step takes 330 us under the profiler, and 125 us without: there is no time to wait 200 us."""
    found = diagnose(memory_trace(LATE_HOST, ranks=2), unprofiled=twin(125))
    assert "straggler" not in {one.code for one in found}
    assert late(LATE_HOST, 1, unprofiled=twin(125)).bound_ns == 5 * US  # 125 - 100 - 20


def test_of_two_late_ranks_the_second_limits_what_the_first_could_gain() -> None:
    rows = ranks(
        [(NVJET, 0, 100), (NCCL, 100, 320)],
        [(SGEMM, 0, 290), (NCCL, 290, 320)],
        [(SGEMM, 0, 300), (NCCL, 300, 320)],
        length=330,
    )
    found = late(rows, 2, 3)
    assert found.waits_ns == (200 + 10) / 2 * US
    assert found.bound_ns == 10 * US


def test_a_kernel_that_never_ran_alone_may_have_lost_all_its_time_beside_the_wait() -> None:
    """Its time alone is not known. So it is not said to be slowed down, and bounds nothing."""
    rows = ranks([(NCCL, 50, 420), (NVJET, 50, 240)], [(SGEMM, 0, 400), (NCCL, 400, 420)], length=430)
    found = late(rows, 1)
    assert found.slowed_ns == 0
    assert found.longer_ns == 210 * US
    assert found.cost_ns == (160 + 190) * US
    assert found.bound_ns == 350 * US


@pytest.mark.parametrize("rank", [0, 5])
def test_one_rank_waits_for_nobody(rank: int) -> None:
    rows = ranks([(NVJET, 0, 100), (NCCL, 100, 120)], length=130)
    assert lateness(Context(memory_trace(rows)), rank) is None


def test_host_time_of_one_of_two_ranks_counts_whole() -> None:
    """Rank 1 loses 200 us to its host, and rank 0 waits 200 us for it: the mean would be 100 us."""
    ctx = Context(memory_trace(LATE_HOST, ranks=2))
    assert host_bound_ns(ctx, list(zip(ctx.waiting, (0, 200 * US), strict=True))) == 200 * US


def test_host_time_for_which_no_other_rank_waits_gains_nothing() -> None:
    """Rank 0 computes all the time and waits for nobody, so its step does not get shorter."""
    rows = ranks([(SGEMM, 0, 300), (NCCL, 300, 320)], [(NVJET, 0, 100), (NCCL, 100, 320)], length=320)
    ctx = Context(memory_trace(rows, ranks=2))
    assert host_bound_ns(ctx, list(zip(ctx.waiting, (0, 50 * US), strict=True))) == 0
