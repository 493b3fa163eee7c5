"""Replays: what a step would take with shorter GPU work, without waits, or with a faster host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.idle_time import lies_in
from profrun.analysis.rules.replay import REPLAY_ERROR, Replay, replay
from profrun.analysis.rules.step_cost import UnprofiledStep
from profrun.analysis.trace.runtime_calls import is_blocking
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import ADD, LAUNCH, US
from tests.conftest import examples

LATENCY = 2 * US


def program(events: Sequence[tuple[str, int]], length: int | None = None) -> list[Row]:
    """One step of a host that does these things one after the other.

    Args:
        events: ('host', ns of work), ('gpu', ns of a kernel; its launch takes 1 us), ('wait', 0: until the
            GPU has run dry).
        length: ns of the step; None for the host's time.
    """
    rows: list[Row] = [step(0, 0, 0)]
    host = free = 0
    for kind, ns in events:
        if kind == "host":
            host += ns
        elif kind == "gpu":
            rows.append(("api", LAUNCH, host, US, "main"))
            begin = max(free, host + LATENCY)
            rows.append(("kernel", ADD, begin, ns, "stream 7", {"launch": len(rows) - 1}))
            free, host = begin + ns, host + US
        else:
            end = max(host, free)
            rows.append(("api", "cudaStreamSynchronize", host, end - host, "main"))
            host = end
    rows[0] = step(0, 0, length or max(host, 1))
    return rows


def made(rows: Sequence[Row]) -> tuple[Replay, Context]:
    context = Context(memory_trace(rows))
    calls = context.frame.of("api")
    waits = calls[context.frame.named(calls, is_blocking)]
    (one,) = context.waiting
    found = replay(context.frame, one, context.step_gpu, waits, int(context.judged.host[0][1][-1]))
    assert found is not None
    return found, context


QUEUED = [("gpu", 50 * US), ("gpu", 50 * US), ("gpu", 50 * US)]
STARVED = [("gpu", 5 * US), ("host", 50 * US)] * 3
SYNCED = [("gpu", 50 * US), ("wait", 0), ("host", 30 * US)] * 3


def test_shorter_work_gains_where_the_step_waits_for_it() -> None:
    found, _ = made(program(QUEUED))
    assert found.time() == found.recorded == 152 * US
    assert found.time(kept=np.array([1.0, 0.5, 1.0])) == 127 * US


def test_shorter_work_gains_nothing_where_the_host_is_late() -> None:
    found, _ = made(program(STARVED))
    assert found.time() == found.recorded == 153 * US
    assert found.time(kept=np.zeros(3)) == 153 * US


def test_a_step_that_waits_gains_the_work_and_the_wait() -> None:
    found, _ = made(program(SYNCED))
    assert found.time() == found.recorded == 3 * 82 * US
    assert found.time(kept=np.array([0.0, 1.0, 1.0])) == (3 * 82 - 50) * US
    skipped = np.array([True, True, True])
    assert found.time(skipped=skipped) == 2 * US + 150 * US  # the GPU is busy all the time


def test_a_faster_host() -> None:
    found, _ = made(program(STARVED))
    assert found.time(0.5) == 76.5 * US
    assert found.scale_for(76.5 * US, 1 / 3) == pytest.approx(0.5, abs=1e-3)
    assert found.scale_for(1.0, 1 / 3) == 1 / 3  # never faster than a profiler can have made it slower


def test_which_waits_are_meant() -> None:
    found, context = made(program(SYNCED))
    calls = context.frame.of("api")
    waits = calls[context.frame.named(calls, is_blocking)]
    assert found.waits_in(lies_in(context.frame, waits[1:2], 0)).tolist() == [False, True, False]


def test_shorter_for_good() -> None:
    found, _ = made(program(QUEUED))
    half = np.full(3, 0.5)
    assert found.shorter(half).time() == found.time(kept=half)


events = st.lists(
    st.tuples(st.sampled_from(["host", "gpu", "wait"]), st.integers(1, 90).map(lambda us: us * US)),
    min_size=1,
    max_size=30,
).filter(lambda found: any(kind == "gpu" for kind, _ in found))


@examples(25, 2000)
@given(events)
def test_an_unchanged_replay_is_the_recording(found: list[tuple[str, int]]) -> None:
    again, _ = made(program(found))
    assert again.time() == pytest.approx(again.recorded, abs=len(found) * LATENCY)


@examples(25, 2000)
@given(events, st.data())
def test_a_replay_takes_as_long_as_the_changed_program(
    found: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Kernels are shortened in the program itself, and in the replay of its recording."""
    kernels = [place for place, (kind, _) in enumerate(found) if kind == "gpu"]
    kept = [data.draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in kernels]
    changed = list(found)
    for place, part in zip(kernels, kept, strict=True):
        changed[place] = ("gpu", round(changed[place][1] * part))
    again, _ = made(program(found))
    truth, _ = made(program(changed))
    assert again.time(kept=np.array(kept)) == pytest.approx(truth.recorded, abs=len(found) * LATENCY)


@examples(25, 1000)
@given(events)
def test_less_work_or_fewer_waits_never_take_longer(found: list[tuple[str, int]]) -> None:
    again, _ = made(program(found))
    whole = again.time()
    assert again.time(kept=np.full(len(again.ids), 0.3)) <= whole + 1
    assert again.time(skipped=np.ones(len(again.wait), dtype=bool)) <= whole + 1
    assert again.time(0.5) <= whole + 1


FAITHFUL = ("train", "transformer", "mlp", "rep1_mlp_compile", "matmul_add_64", "rep2_transformer")


@pytest.mark.parametrize("name", FAITHFUL)
def test_real_steps_take_as_long_in_a_replay(name: str, real: Callable[..., Trace]) -> None:
    context = Context(real(f"h200/torch/{name}.json.gz"))
    ((_, found, _),) = context.replays
    assert found.time() == pytest.approx(found.recorded, rel=0.01)


def test_the_host_is_as_fast_as_the_unprofiled_step_says(real: Callable[..., Trace]) -> None:
    """The step of 20.8 ms under the profiler takes 11.3 ms without it, by the program's own clock."""
    twin = UnprofiledStep(11_294_074, 11_000_000, 11_500_000, 3, 20, "wall")
    context = Context(real("h200/torch/train.json.gz"), unprofiled=twin)
    ((_, found, scales),) = context.replays
    assert scales == pytest.approx([0.541, 0.501], abs=0.01)
    times = [found.time(scale) / len(context.steps) for scale in scales]
    assert times == pytest.approx([twin.ns, (1 - REPLAY_ERROR) * twin.low_ns], rel=0.001)


def test_a_profiler_that_hides_the_waiting_for_the_gpu_hides_no_gain() -> None:
    """Without a profiler the host waits for the GPU; with it the host is late, and never waits.

    The unprofiled time is measured 3 % too long, which a slower host explains as well as waiting does.
    """

    def of(host: int, kernel: int) -> list[Row]:
        batch = [("gpu", kernel * US), ("host", host * US)] * 10
        return program([*batch, ("gpu", kernel * US), ("wait", 0), ("host", 2 * host * US)])

    (true, _), (changed, _) = made(of(45, 50)), made(of(45, 25))
    assert (true.recorded, changed.recorded) == (642 * US, 577 * US)
    measured = round(1.03 * true.recorded)
    context = Context(
        memory_trace(of(67, 50)), unprofiled=UnprofiledStep(measured, 642 * US, measured, 2, 9, "wall")
    )
    ((_, found, scales),) = context.replays
    half = np.full(11, 0.5)
    gain = context.gpu_gain(context.step_gpu, half)
    assert found.most_saved(scales[:1], half) < true.recorded - changed.recorded <= gain.ns
    assert gain.ns == round(found.most_saved(scales, half))


def test_a_call_that_lasts_as_long_as_its_copy_goes_with_it() -> None:
    """A copy of 60 us is staged by its call; the host does 40 us more, and waits 10 us for a kernel."""
    rows: list[Row] = [
        step(0, 0, 110 * US),
        ("api", "cudaMemcpyAsync", 0, 60 * US, "main"),
        ("memcpy", "Memcpy HtoD (Pageable -> Device)", 2 * US, 58 * US, "stream 7", {"launch": 1}),
        ("api", LAUNCH, 99 * US, US, "main"),
        ("kernel", ADD, 101 * US, 9 * US, "stream 7", {"launch": 3}),
        ("api", "cudaStreamSynchronize", 100 * US, 10 * US, "main"),
    ]
    found, context = made(rows)
    assert found.time() == found.recorded == 110 * US
    no_copy, at_once = np.array([0.0, 1.0]), np.array([1.0])
    call = lies_in(context.frame, np.array([1]), 0)
    assert found.most_saved(at_once, no_copy) == 0, "the host stages it all the same"
    assert found.most_saved(at_once, no_copy, gone=call) == 60 * US
    assert found.most_saved(at_once, np.array([0.0, 0.0]), gone=call) == 60 * US + 9 * US
    both = lies_in(context.frame, np.array([1, 5]), 0)
    assert found.most_saved(at_once, no_copy, both, both) == 60 * US, "the kernel runs to its end"
    assert found.most_saved(2 * at_once, no_copy, gone=call) == 120 * US


def test_what_is_waited_in_a_call_is_no_time_of_its_own() -> None:
    found, context = made(program([("gpu", 50 * US), ("wait", 0), ("host", 20 * US)]))
    wait = lies_in(context.frame, np.array([3]), 0)
    assert found.most_saved(np.array([1.0]), gone=wait) == 0
