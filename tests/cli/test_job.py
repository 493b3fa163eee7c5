"""``profrun job``: a spec is checked and shown, and the schema is printed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import Capture, call
from tests.conftest import ROOT


def test_a_spec_is_checked_and_shown(tmp_path: Path, capsys: Capture) -> None:
    job = ROOT / "jobs/transformer.yaml"
    assert call(capsys, "job", "check", job).code == 0
    shown = call(capsys, "job", "check", job, "--show", "--set", "repeats=7").out
    assert "repeats: 7\n" in shown
    (tmp_path / "x.yaml").write_text(shown)
    assert call(capsys, "job", "check", tmp_path / "x.yaml", "--json").json["ok"] is True
    (tmp_path / "x.yaml").write_text("name: t\ncomand: python x.py\n")
    done = call(capsys, "job", "check", tmp_path / "x.yaml")
    assert done.code == 64
    assert "x.yaml:2:1" in done.err
    assert json.loads(call(capsys, "job", "schema").out)["title"] == "profrun job"
