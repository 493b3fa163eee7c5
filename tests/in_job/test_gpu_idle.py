"""Waiting for JAX; the driver's contexts are in test_jax_calls, with a stand-in for the driver."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from profrun.in_job.gpu_idle import wait_until_idle


@pytest.mark.parametrize(("initialised", "waited"), [(True, [["array"]]), (False, [])])
def test_arrays_of_jax_are_waited_for_and_no_backend_is_made(
    monkeypatch: pytest.MonkeyPatch, initialised: bool, waited: list[list[str]]
) -> None:
    seen: list[list[str]] = []
    jax = SimpleNamespace(live_arrays=lambda: ["array"], block_until_ready=seen.append)
    monkeypatch.setitem(sys.modules, "jax", jax)
    bridge = SimpleNamespace(backends_are_initialized=lambda: initialised)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    assert not wait_until_idle(None)
    assert seen == waited


def test_a_computation_of_jax_that_failed_is_the_programs_own_business(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failed(_arrays: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(live_arrays=list, block_until_ready=failed))
    bridge = SimpleNamespace(backends_are_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    assert not wait_until_idle(None)
