"""What the keys of a file say about its GPUs, whatever values they have."""

from __future__ import annotations

import pytest

from profrun.collectors.torch.reader_tracks import vendor_of


@pytest.mark.parametrize("odd", [{}, [], "64", None, 1.5])
def test_an_odd_warp_size_says_nothing_about_the_vendor(odd: object) -> None:
    keys = {"deviceProperties": [{"name": "x", "warpSize": odd}]}
    assert vendor_of(keys, ["cudaLaunchKernel"], 1) == "nvidia"
