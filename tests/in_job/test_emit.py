"""profrun.range and the stacks behind it: what an emitter sees always nests and balances."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import profrun
from profrun.in_job import api, emit


class Recorder:
    """An emitter that writes down intervals and refuses what NVTX would silently get wrong."""

    name = "recorder"
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


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[emit.Sink]:
    made = emit.Sink(Recorder())
    made.open()
    monkeypatch.setattr(api, "_sink", made)
    yield made
    assert made.emitter is not None


def log(sink: emit.Sink) -> str:
    assert isinstance(sink.emitter, Recorder)
    return " ".join(sink.emitter.log).replace("profrun.step#", "s")


def test_nothing_happens_without_a_sink() -> None:
    assert api._sink is None
    with profrun.range("x") as outer, profrun.range("x") as inner:
        assert outer is inner
    profrun.step()


def test_context_manager_decorator_coroutine_and_reentrancy(sink: emit.Sink) -> None:
    @profrun.range("deco")
    def f(n: int) -> int:
        return n if n == 0 else f(n - 1)

    @profrun.range("coro")
    async def g() -> int:
        await asyncio.sleep(0)
        return 7

    with profrun.range("a"):
        assert f(1) == 0
    assert asyncio.run(g()) == 7
    assert f.__name__ == "f"
    assert log(sink) == "+a +deco +deco -deco -deco -a +coro -coro"
    assert sink.emitted == 4


def test_exceptions_and_ranges_left_open_inside(sink: emit.Sink) -> None:
    def fail() -> None:
        with profrun.range("a"):
            sink.push("forgotten")
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    sink.pop("never opened")
    assert log(sink) == "+a +forgotten -forgotten -a"
    assert sink.depth() == 0


def test_steps_are_outermost_and_cut_what_straddles_them(sink: emit.Sink) -> None:
    with profrun.range("epoch"):
        sink.begin_step(0)
        with profrun.range("forward"):
            pass
        with profrun.range("opt"):
            sink.end_step()  # the optimizer's step is the end of the step
            sink.begin_step(1)
        with profrun.range("forward"):
            pass
        sink.end_step()
    assert log(sink) == (
        "+epoch -epoch +s0 +epoch +forward -forward +opt -opt -epoch -s0 "
        "+s1 +epoch +forward -forward -epoch -s1"
    )


def test_a_range_opened_before_the_window_shows_inside_it() -> None:
    sink = emit.Sink(Recorder())
    sink.push("train")
    sink.push("before")
    sink.pop("before")
    sink.open()
    sink.push("forward")
    sink.close()
    sink.pop("forward")
    sink.push("after")
    sink.pop("after")
    sink.pop("train")
    assert log(sink) == "+train +forward -forward -train"


def test_threads_have_their_own_stacks(sink: emit.Sink) -> None:
    def work() -> None:
        with profrun.range("worker"):
            pass

    with profrun.range("main"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert log(sink) == "+main +worker -worker -main"


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.sampled_from("abc")),
        st.tuples(st.just("pop"), st.sampled_from("abc")),
        st.tuples(st.sampled_from(["step", "open", "close", "cut"]), st.just("")),
    ),
    max_size=40,
)


@given(ACTIONS)
def test_whatever_is_called_the_emitter_sees_balanced_nesting(actions: list[tuple[str, str]]) -> None:
    """Recorder.pop asserts order; at the end, closing closes all, and each opening was counted."""
    sink, step = emit.Sink(Recorder()), 0
    for action, name in actions:
        if action == "push":
            sink.push(name)
        elif action == "pop":
            sink.pop(name)
        elif action == "step":
            sink.end_step()
            sink.begin_step(step)
            step += 1
        else:
            getattr(sink, action)()
    sink.close()
    assert isinstance(sink.emitter, Recorder)
    assert not any(sink.emitter.open.values())
    assert sink.emitted == sum(entry[0] == "+" for entry in sink.emitter.log)


def test_many_names_do_not_grow_memory() -> None:
    for number in range(3 * api._CACHED):
        profrun.range(f"name {number}")
    assert len(api._cache) <= api._CACHED


def test_the_emitter_that_the_tool_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """No injection and no NVTX in torch: a warning when this nsys cannot read the nvtx package."""
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.setattr(emit, "_package_version", lambda _: (0, 2, 17))
    emitter, notes = emit.choose("nvtx", None, (2024, 2, 3))
    assert emitter is not None
    assert emitter.name == "nvtx"
    assert notes[0].code == "ranges-lost"
    monkeypatch.setattr(emit, "_package_version", lambda _: (0, 2, 11))
    assert emit.choose("nvtx", None, (2024, 2, 3))[1] == []
    assert emit.choose(None, None, ()) == (None, [])
