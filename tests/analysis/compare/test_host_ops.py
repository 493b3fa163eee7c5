"""Which runtime calls wait for the GPU."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.host_ops import is_wait


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaStreamSynchronize", True),
        ("cudaDeviceSynchronize", True),
        ("hipEventSynchronize", True),
        ("cudaMemcpy", True),
        ("cudaMemcpyAsync", False),
        ("hipMemcpyWithStream", True),
        ("cuMemcpyDtoH_v2", True),
        ("cuMemcpyDtoHAsync_v2", False),
        ("cudaFree", True),
        ("cudaFreeAsync", False),
        ("cudaLaunchKernel", False),
        ("cudaEventRecord", False),
        ("cuCtxSynchronize", True),
    ],
)
def test_calls_that_wait(name: str, *, waits: bool) -> None:
    assert is_wait(name) is waits
