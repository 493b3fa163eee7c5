"""Where ranges go: which library the recording tool hears."""

from __future__ import annotations

import pytest

from profrun.in_job import emitters
from profrun.in_job.config import HookConfig


def test_the_emitter_that_the_tool_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """No injection and no NVTX in torch: a warning when this nsys cannot read the nvtx package."""
    config = HookConfig("/t", profiler="nsys", emitter="nvtx", tool_version=(2024, 2, 3))
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.setattr(emitters, "_package_version", lambda _: (0, 2, 17))
    emitter, told = emitters.choose(config, None)
    assert emitter is not None
    assert emitter.name == "nvtx"
    assert [finding.code for finding in told] == ["ranges-lost"]
    assert "Nsight Systems 2024.2.3 records none from Python's nvtx 0.2.17" in told[0].why
    monkeypatch.setattr(emitters, "_package_version", lambda _: (0, 2, 11))
    assert emitters.choose(config, None)[1] == []
    assert emitters.choose(HookConfig("/t"), None) == (None, [])
    assert emitters.choose(HookConfig("/t", emitter="in_process"), None) == (None, [])
