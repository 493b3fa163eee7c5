"""FLOPs of ops from their shapes, counted as torch counts them."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.flops import flops_of


@pytest.mark.parametrize(
    ("name", "shapes", "flops"),
    [
        ("aten::mm", [[2, 3], [3, 5]], 60),
        ("aten::bmm", [[7, 2, 3], [7, 3, 5]], 420),
        ("aten::addmm", [[5], [2, 3], [3, 5], [], []], 60),
        ("aten::baddbmm", [[7, 2, 5], [7, 2, 3], [7, 3, 5]], 420),
        ("aten::add", [[4, 4], [4], []], 16),
        ("aten::mul", [[4, 4], [4, 4]], 16),
        ("aten::mm", [[2, 3], [4, 5]], None),
        ("aten::mm", [], None),
        ("aten::mm", [[], []], None),
        ("aten::relu", [[4, 4]], None),
    ],
)
def test_flops_are_counted_as_torch_does(name: str, shapes: list[object], flops: int | None) -> None:
    assert flops_of(name, shapes) == flops


def test_flops_of_a_convolution_need_its_arguments() -> None:
    shapes = [[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]
    assert (
        flops_of("aten::conv2d", shapes, ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"])
        == 2 * 36 * 4 * 3 * 9
    )
    assert flops_of("aten::conv2d", shapes) is None
