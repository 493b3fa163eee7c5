"""``profrun open``: the file for Perfetto is made once."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import Capture, call


def test_open_makes_a_file_once_and_says_where_to_look(trace: Path, capsys: Capture) -> None:
    first = call(capsys, "open", trace, "--json").json
    made = Path(first["path"]).stat().st_mtime_ns
    assert "ui.perfetto.dev" in first["how"]
    done = call(capsys, "open", trace)
    assert first["path"] in done.out
    assert Path(first["path"]).stat().st_mtime_ns == made
