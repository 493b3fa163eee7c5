"""What a comparison says in words."""

from __future__ import annotations

from pathlib import Path

import profrun
from profrun.collectors.normalize import normalize
from profrun.reports.compare_text import comparison_text
from profrun.reports.terminal_layout import Table, fit
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
    narrow = comparison_text(profrun.compare(tmp_path / "mlp", tmp_path / "mlp_compile"), width=80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert " ".join(narrow.split()).count("ratio") == " ".join(text.split()).count("ratio")  # nothing is lost


def test_a_table_gives_way_by_its_names_only() -> None:
    table = Table(("kernel", "a"), [("k" * 60, "12.5 us"), ("gelu", "1 ms")], (1,))
    wide, narrow = fit([table], None).splitlines(), fit([table], 40).splitlines()
    assert max(map(len, wide)) == 2 + 60 + 2 + 7
    assert max(map(len, narrow)) == 40
    assert [line.split()[-2:] for line in narrow[1:]] == [["12.5", "us"], ["1", "ms"]]
    assert fit([Table(("a", "b"), [("x" * 30, "y" * 30)], (1,))], 20).splitlines()[1].split()[1] == "y" * 30


def test_sentences_break_at_the_width_and_keep_their_indent() -> None:
    assert fit(["  one two three four five"], 12).splitlines() == [
        "  one two",
        "    three",
        "    four",
        "    five",
    ]
    assert fit(["a sentence for grep " * 9], None).count("\n") == 0
