"""The hook in programs with the real jax, on its CPU backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.in_job.kit import Trial

pytestmark = pytest.mark.jax

CPU = {"JAX_PLATFORMS": "cpu"}

USES = """
import copy, functools, inspect
import jax, jax.numpy as jnp
from jax import jit

@jit
def update(w, x):
    "One step."
    return w - 0.1 * jax.grad(loss)(w, x)
@functools.partial(jax.jit, static_argnums=(1,), static_argnames=("k",))
def power(x, n, *, k=1):
    return x ** n * k
@jax.jit(donate_argnums=0)
def donated(x):
    return x + 1
def plain_loss(w, x):
    return jnp.mean((x @ w) ** 2)
loss = jax.jit(plain_loss)
class Model:
    factor = 2.0
    @functools.partial(jax.jit, static_argnums=0)
    def scaled(self, x):
        return self.factor * x

w, x = jnp.ones((4,)), jnp.ones((8, 4))
print(update.__name__, update.__doc__, update.__module__, inspect.signature(update), repr(update)[:30])
print(isinstance(update, type(jax._src.api.jit(lambda: 0))), isinstance(update, jax.stages.Wrapped))
print(update.lower(w, x).compile()(w, x), update.eval_shape(w, x), jax.eval_shape(update, w, x))
print(jax.grad(loss)(w, x), jax.grad(plain_loss)(w, x), jax.value_and_grad(loss)(w, x))
print(jax.vmap(loss, in_axes=(None, 0))(w, x[:, None]), jax.jvp(loss, (w, x), (w, x)))
print(power(x, 3, k=2).sum(), Model().scaled(x).sum(), donated(jnp.ones(3)), jit(update)(w, x))
print(jax.make_jaxpr(update)(w, x).eqns[0].primitive, jax.tree_util.tree_leaves([update])[0] is update)
print(jax.lax.scan(lambda w, x: (update(w, x[None]), 0), w, x), jax.checkpoint(loss)(w, x))
print(copy.copy(update)(w, x), jax.jit(lambda f, x: f(x, x[None]), static_argnums=0)(update, w))
update.clear_cache()
print(update._cache_size(), functools.wraps(update)(lambda *a: update(*a)).__wrapped__ is update)
"""
LOOPS = """
import sys
import jax, jax.numpy as jnp

@jax.jit
def normed(x): return x - x.mean()
@jax.jit
def cell(w, x): return w - 0.1 * jnp.mean(x)
@jax.jit
def layers(w, x):
    for _ in range(5):
        w = cell(w, x)
    return w
loss = jax.jit(lambda w, x: jnp.mean((x * w) ** 2))
w, x = jnp.ones(()), jnp.ones((8, 4))
def pair(): return cell(w, normed(x))
def nested(): return layers(w, x)
def scan(): return jax.lax.scan(lambda w, x: (cell(w, x), 0), layers(w, x), x)[0]   # traces cell each time
def again(): return jax.jit(cell.__wrapped__)(w, x)
def grad(): return w - 0.1 * jax.grad(loss)(w, x)
def library(): return jnp.where(x > 0, jnp.sort(x), jnp.linalg.norm(x)).sum() + layers(w, x)
for _ in range(6):
    globals()[sys.argv[1]]()
"""


def interpreter() -> str:
    """A Python that has jax: $PROFRUN_JAX or this one."""
    python = os.environ.get("PROFRUN_JAX") or sys.executable
    if subprocess.run([python, "-c", "import jax"], capture_output=True).returncode:
        missing("jax")
    return python


def test_a_jitted_function_can_do_in_a_job_what_it_can_do_outside(tmp_path: Path) -> None:
    python = interpreter()
    trial = Trial(tmp_path, [python, "job.py"], USES)
    done = trial.run(CPU)
    assert done.exit["state"] == "finished", done.log("stderr")
    outside = subprocess.run(
        [python, trial.work / "job.py"], capture_output=True, text=True, env=os.environ | CPU
    )
    assert outside.returncode == 0, outside.stderr
    assert done.log().replace(" ", "") == outside.stdout.replace(" ", "")
    assert not list((done.folder / "hook").glob("error*"))


@pytest.mark.parametrize("name", ["pair", "nested", "scan", "again", "grad", "library"])
def test_each_iteration_is_a_step(tmp_path: Path, name: str) -> None:
    done = Trial(tmp_path, [interpreter(), "job.py", name], LOOPS).run(CPU)
    assert done.exit["state"] == "finished", done.log("stderr")
    assert done.exit["steps"] == {"how": "jit", "count": 6}
