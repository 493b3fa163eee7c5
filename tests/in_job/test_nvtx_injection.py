"""NVTX through the injected library: what happens where nobody listens (with nsys: test_cpu)."""

from __future__ import annotations

import ctypes.util

import pytest

from profrun.in_job.nvtx_injection import NvtxInjection, connect


def test_where_no_tool_is_injected_there_is_no_emitter() -> None:
    assert connect({}) is None
    assert connect({"NVTX_INJECTION64_PATH": ""}) is None
    assert connect({"NVTX_INJECTION64_PATH": "/no/such/library.so"}) is None


def test_a_library_that_is_no_nvtx_tool_is_refused() -> None:
    library = ctypes.util.find_library("c") or "libc.so.6"
    with pytest.raises(OSError, match="InitializeInjectionNvtx2"):
        NvtxInjection(library)
    assert connect({"NVTX_INJECTION64_PATH": library}) is None
