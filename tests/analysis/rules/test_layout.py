"""What steps gain with channels last: 3 steps of 100 us whose GPU works from 10 to 90 us.

The first step cannot begin earlier, so up to a ninth of a gain is left out.
"""

from __future__ import annotations

import pytest

from tests.analysis.kit import Row
from tests.analysis.rules.cases import CONVOLUTION, LAYOUT, US, gpu, grid
from tests.analysis.rules.test_diagnose import ask

NATIVE = "void at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>(int)"
CUDNN = "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float>)"
LAST = "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var, float>(int)"
UPDATE = (
    "void at::native::unrolled_elementwise_kernel<at::native::batch_norm_update_stats(int)::{lambda}>(int)"
)


def steps(name: str, blocks: int) -> list[Row]:
    """A change of the layout, a convolution, and a kernel of so many blocks of 512 threads."""
    work = [(LAYOUT, 10 * US, 10 * US), (CONVOLUTION, 20 * US, 30 * US), (name, 50 * US, 40 * US)]
    return gpu(work, columns=grid(blocks, block_x=512))


@pytest.mark.parametrize("name", [NATIVE, CUDNN])
@pytest.mark.parametrize(
    ("blocks", "left"),
    [
        (66, 40 / 8),  # 66 of 132 x 4 blocks of 512 threads: an eighth of the threads that the GPU holds
        (264, 40 / 2),
        (528, 40),
        (4096, 40),
    ],
)
def test_batch_norms_with_a_block_per_channel_gain_what_their_blocks_leave_empty(
    name: str, blocks: int, left: float
) -> None:
    (found,) = ask(steps(name, blocks), "layout-changes")
    assert found.gain is not None
    assert found.gain.ns == pytest.approx((10 + 40 - left) * US, rel=0.12)
    assert ("batch norms with one block per channel take 40 us" in found.what) == (left < 40)
    assert found.evidence["batch_norm_ns"] == (3 * 40 * US if left < 40 else 0)


@pytest.mark.parametrize("name", [LAST, UPDATE, CONVOLUTION])
def test_other_kernels_with_few_blocks_gain_nothing(name: str) -> None:
    (found,) = ask(steps(name, 64), "layout-changes")
    assert found.gain is not None
    assert found.gain.ns == pytest.approx(10 * US, rel=0.12)
    assert "batch norms" not in found.what


def test_a_batch_norm_whose_blocks_are_not_known_gains_nothing() -> None:
    work = [(LAYOUT, 10 * US, 10 * US), (CONVOLUTION, 20 * US, 30 * US), (NATIVE, 50 * US, 40 * US)]
    (found,) = ask(gpu(work), "layout-changes")
    assert found.gain is not None
    assert found.gain.ns == pytest.approx(10 * US, rel=0.12)
