"""Calls of jitted functions, with a stand-in for jax; tests/real/jax runs the real one."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from profrun.in_job.jax_calls import watch_jit
from tests.conftest import ROOT, need_tool
from tests.in_job.kit import Trial, fake_nsys

STANDINS = ROOT / "tests/standins"

JAX = '''
"""As jax: jit gives an object of a type of its own, which runs its function once per shape, traced."""
import functools
import jax._src.core as core
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

class PjitFunction:
    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self._traced = False
    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)
    def __call__(self, *args):
        if not self._traced:
            self._traced, outer = True, core.trace_ctx.trace
            core.trace_ctx.trace = DynamicJaxprTrace()
            try:
                self.__wrapped__(*args)
            finally:
                core.trace_ctx.trace = outer
        return self.__wrapped__(*args) if core.trace_ctx.trace is None else None
    def lower(self, *args):
        return "lowered " + self.__name__
    def __reduce__(self):
        return PjitFunction, (self.__wrapped__,)

def jit(fun=None, /, *, static_argnums=None):
    """Jits."""
    return PjitFunction(fun) if fun is not None else lambda fun: PjitFunction(fun)
'''
PARTS = {
    "__init__.py": JAX,
    "_src/__init__.py": "",
    "_src/core.py": "class trace_ctx:\n    trace = None\n",
    "_src/interpreters/__init__.py": "",
    "_src/interpreters/partial_eval.py": "class DynamicJaxprTrace: pass\n",
}


def stand_in(root: Path) -> Path:
    """A folder with a package jax."""
    for name, text in PARTS.items():
        path = root / "jax" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


class Watch:
    """Writes down what is called in no other call."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.inside = False

    def before(self, _sign: str, thing: Any) -> bool:
        if self.inside:
            return False
        self.inside = True
        weakref.ref(thing)
        self.names.append(thing.__name__)
        return True

    def after(self) -> None:
        self.inside = False


@pytest.fixture
def jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in, watched; ``jax.watch`` is the watch."""
    monkeypatch.syspath_prepend(str(stand_in(tmp_path)))
    import jax as module  # type: ignore[import-not-found, unused-ignore]

    module.watch = Watch()
    watch_jit(module, module.watch)
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "jax"]:
        del sys.modules[name]


class Slotted:
    """Can be called, and not be referred to weakly."""

    __slots__ = ()

    def __call__(self, x: float) -> float:
        return x


def double(x: float) -> float:
    """Doubles."""
    return x * 2


def test_outermost_calls_are_told_and_tracing_is_not(jax: Any) -> None:
    inner = jax.jit(double)

    def outer(x: float) -> float:
        return float(inner(inner(x)) or 0)

    def same(x: float) -> float:
        return x

    jitted, decorated = jax.jit(outer), jax.jit(static_argnums=0)(same)
    partial = functools.partial(jax.jit, static_argnums=0)(decorated)
    assert [jitted(3), jitted(4), inner(1), decorated(5), partial(6)] == [12, 16, 2, 5, 6]
    assert jax.watch.names == ["outer", "outer", "double", "same", "same"]


def test_a_call_that_fails_ends(jax: Any) -> None:
    broken = jax.jit(double)
    for _ in range(2):
        with pytest.raises(TypeError):
            broken(None)
    assert jax.watch.names == ["double", "double"]


def test_the_cover_is_the_jitted_function_in_everything_else(jax: Any) -> None:
    class Model:
        factor = 3

        scaled = jax.jit(lambda self, x: self.factor * x)

    jitted: Any = jax.jit(double)
    assert Model().scaled(2) == 6
    assert (jitted.__name__, jitted.__doc__, jitted.__module__) == ("double", "Doubles.", __name__)
    assert str(inspect.signature(jitted)) == str(inspect.signature(double))
    assert isinstance(jitted, jax.PjitFunction)
    assert jitted.lower(1) == "lowered double"
    assert not hasattr(jitted, "no_such_thing")
    assert copy.deepcopy(jitted)(2) == 4
    assert hash(jitted) == hash(jitted)
    assert jitted in {jitted: 1}
    assert (jax.jit.__name__, jax.jit.__doc__) == ("jit", "Jits.")


def test_the_same_function_jitted_again_is_the_same_thing(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    things: list[object] = []
    monkeypatch.setattr(jax.watch, "before", lambda _sign, thing: things.append(thing))
    for _ in range(2):
        jax.jit(double)(1)
    slotted = jax.jit(Slotted())
    slotted(1)
    assert things == [double, double, slotted], "what cannot be referred to weakly stands for itself"


def test_what_jax_jits_for_itself_is_not_covered(jax: Any) -> None:
    own: Callable[..., Any] = lambda x: x  # noqa: E731
    own.__module__ = "jax.numpy"
    assert type(jax.jit(own)) is jax.PjitFunction


def test_a_jax_without_what_tells_of_tracing_or_without_jit_is_left_alone() -> None:
    empty = ModuleType("jax")
    watch_jit(empty, Watch())  # type: ignore[arg-type]
    assert not hasattr(empty, "jit")
    old = SimpleNamespace(jit=lambda fun: fun)
    watch_jit(old, Watch())  # type: ignore[arg-type]
    assert old.jit(double)(2) == 4


LOOP = """
from functools import partial
import jax
@jax.jit
def normed(x): return x - 1
@partial(jax.jit, static_argnums=1)
def update(w, x): return w + x
w = 0
for step in range(7):
    w = update(w, normed(step))
print("w", w)
"""


ON_GPU = """
import ctypes, os
import jax
cuda = ctypes.CDLL(os.environ["STANDIN"])
@jax.jit
def update(w):
    cuda.standin_use_gpu()
    cuda.standin_work()
    return w
for step in range(6):
    update(step)
"""


def test_without_torch_the_window_is_opened_and_closed_by_the_driver(tmp_path: Path) -> None:
    """Steps 2 and 3 are active; the stand-in jax calls a function twice the first time, to trace it."""
    library, log = tmp_path / "libcuda.so.1", tmp_path / "cuda.log"
    source = str(STANDINS / "cuda.c")
    build = [need_tool("cc"), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library), source]
    subprocess.run(build, check=True)
    nsys = {"collector": "nsys", "vendor": "nvidia", "ranges": {"steps": "auto"}}
    trial = Trial(tmp_path, [sys.executable, "job.py"], ON_GPU, **nsys)
    stand_in(trial.work)
    environ = {"PROFRUN_STANDIN_CUDA_LOG": str(log), "STANDIN": str(library), **fake_nsys(tmp_path, 0.0)}
    done = trial.run(environ)
    assert done.exit["state"] == "finished", (done.exit["reason"], done.log("stderr"))
    assert done.exit["steps"] == {"how": "jit", "count": 6}
    calls = re.sub("(synchronize )+", "synchronize ", " ".join(log.read_text().split()))
    window = "synchronize start work work synchronize stop"
    assert calls == f"work work work {window} work work synchronize"


def test_a_loop_without_torch_has_steps(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [sys.executable, "job.py"], LOOP)
    stand_in(trial.work)
    done = trial.run()
    assert done.exit["state"] == "finished", done.log("stderr")
    assert done.log() == "w 14\n"
    assert done.exit["steps"] == {"how": "jit", "count": 7}
    assert {row["window"] for row in done.steps()["steps"][2:4]} == {"active"}
