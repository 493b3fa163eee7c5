"""``profrun export``: files for Perfetto and Chrome."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Capture, call


@pytest.mark.parametrize(("to", "suffix"), [("perfetto", ".pftrace"), ("chrome", ".json.gz")])
def test_export_writes_every_slice_and_never_over_a_file(
    tmp_path: Path, trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, to: str, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = call(capsys, "export", trace, "--to", to, "--json").json
    assert (found["path"], found["slices"], found["to"]) == (f"t{suffix}", 4, to)
    assert Path(found["path"]).stat().st_size == found["bytes"] > 0
    again = call(capsys, "export", trace, "--to", to)
    assert again.code == 64
    assert "exists already" in again.err
    assert call(capsys, "export", trace, "--to", to, "--out", tmp_path / "x").code == 0
    assert call(capsys, "export", trace, "--to", "pdf").code == 64
