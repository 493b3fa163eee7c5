"""``profrun summary --as torch``: torch's table, and what does not fit together."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import Capture, call


def test_torchs_columns_and_totals(trace: Path, capsys: Capture) -> None:
    lines = call(capsys, "summary", trace, "--as", "torch").out.splitlines()
    assert " ".join(lines[0].split()) == (
        "Name Self CPU % Self CPU CPU total % CPU total CPU time avg "
        "Self CUDA Self CUDA % CUDA total CUDA time avg # of Calls"
    )
    assert lines[-1] == "Self CUDA time total: 0.500us"
    assert lines[-2].startswith("Self CPU time total: ")


def test_rows_sort_and_json(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "summary", trace, "--as", "torch", "--json", "--sort", "count").json
    assert [row["calls"] for row in found["rows"]] == sorted(
        (row["calls"] for row in found["rows"]), reverse=True
    )
    cut = call(capsys, "summary", trace, "--as", "torch", "--rows", 1).out
    assert f"... and {len(found['rows']) - 1} more (--rows 0 shows all)" in cut


def test_options_of_torchs_table_need_it(trace: Path, capsys: Capture) -> None:
    assert (
        "--sort and --group-by-shapes need --as torch"
        in call(capsys, "summary", trace, "--sort", "count").err
    )
    assert "--as knows torch only" in call(capsys, "summary", trace, "--as", "tf").err
