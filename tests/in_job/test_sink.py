"""The stacks of ranges: what an emitter sees always nests and balances."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import profrun
from profrun.in_job import api
from profrun.in_job.sink import Sink
from tests.in_job.emitting import Strict, log


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    made = Sink(Strict())
    made.open()
    monkeypatch.setattr(api.hook, "sink", made)
    yield made
    assert made.emitter is not None


def test_exceptions_and_ranges_left_open_inside(sink: Sink) -> None:
    def fail() -> None:
        with profrun.range("a"):
            sink.push("forgotten")
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    sink.pop("never opened")
    assert log(sink) == "+a +forgotten -forgotten -a"
    assert sink.depth() == 0


def test_steps_are_outermost_and_cut_what_straddles_them(sink: Sink) -> None:
    with profrun.range("epoch"):
        sink.begin_step("profrun.step#0")
        with profrun.range("forward"):
            pass
        with profrun.range("opt"):
            sink.end_step()  # the optimizer's step is the end of the step
            sink.begin_step("profrun.step#1")
        with profrun.range("forward"):
            pass
        sink.end_step()
    assert log(sink) == (
        "+epoch -epoch +s0 +epoch +forward -forward +opt -opt -epoch -s0 "
        "+s1 +epoch +forward -forward -epoch -s1"
    )


def test_what_a_step_has_cut_goes_on_at_once_where_that_is_asked() -> None:
    sink = Sink(Strict())
    sink.push("train")
    sink.resume()  # nobody records
    sink.open()
    for number in range(2):
        sink.begin_step(f"profrun.step#{number}")
        sink.resume()
        sink.resume()
        sink.end_step()
    sink.close()
    sink.pop("train")
    assert log(sink) == "+s0 +train -train -s0 +s1 +train -train -s1"


def test_a_range_opened_before_the_window_shows_inside_it() -> None:
    sink = Sink(Strict())
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


def test_threads_have_their_own_stacks(sink: Sink) -> None:
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
        st.tuples(st.sampled_from(["step", "open", "close", "cut", "resume"]), st.just("")),
    ),
    max_size=40,
)


@given(ACTIONS)
def test_whatever_is_called_the_emitter_sees_balanced_nesting(actions: list[tuple[str, str]]) -> None:
    """Strict.pop asserts order; at the end, closing closes all, and each opening was counted."""
    sink, step = Sink(Strict()), 0
    for action, name in actions:
        if action == "push":
            sink.push(name)
        elif action == "pop":
            sink.pop(name)
        elif action == "step":
            sink.end_step()
            sink.begin_step(f"profrun.step#{step}")
            step += 1
        else:
            getattr(sink, action)()
    sink.close()
    assert isinstance(sink.emitter, Strict)
    assert not any(sink.emitter.open.values())
    assert sink.emitted == sum(entry[0] == "+" for entry in sink.emitter.log)
