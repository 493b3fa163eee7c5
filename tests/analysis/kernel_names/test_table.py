"""The family and the category of a kernel by its name."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names.table import family_and_category


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", "collective"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::masked_fill_kernel>(int)",
            "elementwise",
        ),
        ("void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>(int)", "copy"),
        ("zzz", "unknown"),
    ],
)
def test_the_category_of_a_name(name: str, category: str) -> None:
    assert family_and_category(name)[1] == category
