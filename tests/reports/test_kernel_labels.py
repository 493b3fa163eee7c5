"""Short kernel names that still differ where the kernels do."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.kernels import kernels
from profrun.reports.kernel_labels import kernel_labels
from tests.analysis.kit import memory_trace

ADD = "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<float> >(int)"
MUL = "void at::native::elementwise_kernel<128, 4, at::native::MulFunctor<float> >(int)"
WIDE = "void at::native::elementwise_kernel<512, 4, at::native::MulFunctor<float> >(int)"


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ([ADD], ["elementwise_kernel"]),
        ([ADD, MUL], ["elementwise_kernel: CUDAFunctor_add", "elementwise_kernel: MulFunctor"]),
        ([ADD, MUL, WIDE], ["elementwise_kernel: CUDAFunctor_add", MUL, WIDE]),
    ],
)
def test_labels(names: list[str], labels: list[str]) -> None:
    trace = memory_trace([("kernel", name, 10 * at, 9 - at, "stream 7") for at, name in enumerate(names)])
    assert kernel_labels(kernels(trace)) == labels
