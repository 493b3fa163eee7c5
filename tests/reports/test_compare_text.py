"""What a comparison and its gate say in words."""

from __future__ import annotations

from pathlib import Path

import profrun
from profrun.analysis.compare import compare
from profrun.collectors.normalize import normalize
from profrun.contract.window_phase import WindowPhase
from profrun.reports.compare_sentence import Called
from profrun.reports.compare_text import comparison_text
from profrun.reports.terminal_layout import Style
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import OTHER, trial
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
    assert narrow.split().count("us") == text.split().count("us")  # nothing is lost


def test_text_of_a_comparison(recorded: Recorded) -> None:
    a, b = recorded("h200/torch/mlp"), recorded("h200/torch/mlp_compile")
    lines = comparison_text(compare([a], [b])).splitlines()
    assert lines[0] == (
        "mlp 333.2 us -> mlp_compile 339.5 us per step (+1.9 %), no verdict from 1 + 1 trials"
    )
    assert lines[1].startswith("  record at least 3 trials per side")
    assert lines[2] == "a: mlp (NVIDIA H200, torch, 1 trial, 3 steps)"
    fused = next(line for line in lines if line.startswith("  replaced"))
    assert fused.split()[-6:] == ["us", "-20.1", "%", "2", "->", "1"]
    assert "  -: one trial cannot prove that a row changed" in lines
    assert "  rows -13.41 us, unexplained by them +19.28 us, total +5.876 us" in lines
    assert not any(len(line) > 130 for line in lines)


def test_text_without_a_number(recorded: Recorded) -> None:
    a, b = recorded("h200/torch/transformer"), recorded("h200/torch/transformer_optim")
    text = comparison_text(compare([a], [b]))
    measured = "transformer 1.222 ms, transformer_optim 2.695 ms per step, no verdict"
    assert text.startswith(f"{measured}: different work per step: 13.42 GFLOP")
    lines = text.splitlines()
    assert lines[-2:] == ["to compare them all the same:", "  --allow work"]
    facts = lines.index("measured per step, without a verdict")
    assert [line.split("  ")[1] for line in lines[facts + 2 : lines.index("", facts)]] == [
        "step time", "GPU work", "kernel launches", "matrix FLOPs", "tokens",
    ]  # fmt: skip
    assert "change" not in text
    assert "by kernel" not in text


def test_several_reasons_stand_on_lines_of_their_own() -> None:
    text = comparison_text(
        compare([trial(ranks=2)], [trial(OTHER, measure="wall")]), called=Called(("x", "vs", "y"))
    )
    lines = text.splitlines()
    assert lines[0] == "a 100 ns, b 100 ns per step, no verdict, for 2 reasons"
    assert [line.split(":")[0] for line in lines[1:3]] == ["critical", "critical"]
    command = "profrun compare x vs y --allow clock --allow ranks"
    assert lines[-2:] == ["to compare them all the same:", f"  {command}"]


def test_no_word_about_time_without_an_interval() -> None:
    """Twice as long in one trial per side: the number is there, and no word that calls it proven."""
    text = comparison_text(compare([trial()], [trial((200, 201, 199, 200, 202))]))
    assert "a 100 ns -> b 200 ns per step (+100.0 %), no verdict from 1 + 1 trials" in text
    assert "slower" not in text
    assert "faster" not in text


def test_rows_with_a_word_show_the_interval_that_proves_it() -> None:
    a = [trial(), trial((99, 101, 100, 100, 101)), trial((100, 99, 101, 101, 100))]
    b = [trial((120, 121, 119)), trial((119, 121, 120)), trial((120, 119, 122))]
    lines = comparison_text(compare(a, b)).splitlines()
    assert any(line.startswith("  slower: k: +19.8 % (95 % interval +") for line in lines)


BOOST = WindowPhase(1, 2, 0, 17, 2.94e6, 2, 18, 599, 3.42e6, same_level=False)


def test_a_window_outside_of_the_steady_phase_is_said_of_its_side() -> None:
    text = comparison_text(
        compare([trial()], [trial(OTHER, window=BOOST), trial(window=BOOST), trial((99, 100))])
    )
    (line,) = [line for line in text.splitlines() if "window" in line]
    assert line == f"note: b: t: {BOOST.text} (and so in 1 other trial)"


def test_the_window_of_a_trial_without_a_profiler_is_not_said() -> None:
    text = comparison_text(compare([trial()], [trial(OTHER, window=BOOST, profiled=False, tool="none")]))
    assert "window" not in text
