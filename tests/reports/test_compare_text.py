"""What a comparison and its gate say in words."""

from __future__ import annotations

from pathlib import Path

import profrun
from profrun.analysis.compare import compare
from profrun.collectors.normalize import normalize
from profrun.reports.compare_text import comparison_text
from profrun.reports.terminal_layout import Style
from tests.analysis.compare.conftest import Recorded
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


def test_text_of_a_comparison(recorded: Recorded) -> None:
    a, b = recorded("h200/torch/mlp"), recorded("h200/torch/mlp_compile")
    lines = comparison_text(compare([a], [b])).splitlines()
    assert lines[0] == (
        "inconclusive: 339.5 us against 333.2 us per step, ratio 1.019 (1 and 1 trials); "
        "about 3 trials per side are needed"
    )
    assert lines[1] == "a: mlp (NVIDIA H200, torch, 1 trial, 3 steps)"
    fused = next(line for line in lines if line.startswith("  replaced"))
    assert fused.split()[-5:] == ["us", "0.799", "2", "->", "1"]
    assert "  rows -13.41 us, unexplained by them +19.28 us, total +5.876 us" in lines
    assert not any(len(line) > 130 for line in lines)


def test_text_without_a_number(recorded: Recorded) -> None:
    a, b = recorded("h200/torch/transformer"), recorded("h200/torch/transformer_optim")
    text = comparison_text(compare([a], [b]))
    assert text.startswith("incomparable: different work per step: 13.42 GFLOP")
    assert "ratio" not in text
    assert "by kernel" not in text
