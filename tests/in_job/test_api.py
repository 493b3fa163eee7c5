"""profrun.range and profrun.step as user code has them."""

from __future__ import annotations

import asyncio

import pytest

import profrun
from profrun.in_job import api
from profrun.in_job.sink import Sink
from tests.in_job.emitting import Strict, log


def test_nothing_happens_without_a_sink() -> None:
    assert api.hook.sink is None
    with profrun.range("x") as outer, profrun.range("x") as inner:
        assert outer is inner
    profrun.step()


def test_context_manager_decorator_coroutine_and_reentrancy(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(Strict())
    sink.open()
    monkeypatch.setattr(api.hook, "sink", sink)

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


def test_many_names_do_not_grow_memory() -> None:
    for number in range(3 * api._CACHED):
        profrun.range(f"name {number}")
    assert len(api._cache) <= api._CACHED
