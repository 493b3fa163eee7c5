"""Input shapes of ops as codes."""

from __future__ import annotations

import numpy as np

from profrun.analysis.trace.op_shapes import op_shapes
from tests.analysis.kit import memory_trace


def test_equal_shapes_have_one_code() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 9, "main", {"ops.shapes": "[[2, 3], [3, 4]]", "ops.dtypes": '["float"]'}),
            ("op", "aten::mm", 10, 9, "main", {"ops.shapes": "[[2, 3], [3, 4]]"}),
            ("op", "aten::mm", 20, 9, "main", {"ops.shapes": "[[5, 3], [3, 4]]"}),
            ("op", "aten::relu", 30, 9, "main"),
        ]
    )
    found = op_shapes(trace)
    shape, dtype = found.of(4, np.arange(4))
    assert [found.shapes[code] if code >= 0 else None for code in shape] == [
        "[[2, 3], [3, 4]]",
        "[[2, 3], [3, 4]]",
        "[[5, 3], [3, 4]]",
        None,
    ]
    assert [found.dtypes[code] if code >= 0 else None for code in dtype] == ['["float"]', None, None, None]
