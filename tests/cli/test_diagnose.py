"""``profrun diagnose``: the findings with their evidence."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import Capture, call


def test_diagnose_prints_findings_with_evidence(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "diagnose", trace, "--json").json["findings"]
    assert found
    text = " ".join(call(capsys, "diagnose", trace).out.split())  # wherever the terminal's width breaks it
    for finding in found:
        assert finding["what"] in text
        assert {"code", "severity", "what", "why", "fix", "evidence"} <= set(finding)
