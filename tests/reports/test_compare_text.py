"""What a comparison says in words."""

from __future__ import annotations

from pathlib import Path

import profrun
from profrun.collectors.normalize import normalize
from profrun.reports.compare_text import comparison_text
from profrun.reports.terminal_layout import Style
from tests.conftest import shared_data


def test_a_replaced_kernel_is_named_with_what_came_instead(tmp_path: Path) -> None:
    """Inductor fused gelu and mul of the gated MLP into one Triton kernel, recorded on an H200."""
    for name in ("mlp", "mlp_compile"):
        normalize([shared_data(f"h200/torch/{name}.json.gz")], tmp_path / name)
    text = comparison_text(profrun.compare(tmp_path / "mlp", tmp_path / "mlp_compile"))
    assert (
        "replaced: mul (vectorized_elementwise_kernel) + gelu (vectorized_elementwise_kernel) "
        "-> triton_poi_fused_gelu_mul" in text
    )
    narrow = comparison_text(profrun.compare(tmp_path / "mlp", tmp_path / "mlp_compile"), Style(80))
    assert max(map(len, narrow.splitlines())) <= 80
    assert " ".join(narrow.split()).count("ratio") == " ".join(text.split()).count("ratio")  # nothing is lost
