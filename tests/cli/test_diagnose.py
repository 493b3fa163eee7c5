"""``profrun diagnose``: the findings with their evidence."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.cli.running import Capture, call


def test_diagnose_prints_findings_with_evidence(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "diagnose", trace, "--json").json["findings"]
    assert found
    short = call(capsys, "diagnose", trace).out
    assert all(finding["title"] in short for finding in found)
    text = " ".join(call(capsys, "diagnose", trace, "-v").out.split())  # wherever the width breaks it
    for finding in found:
        assert finding["what"] in text
        assert {"code", "severity", "what", "why", "fix", "evidence"} <= set(finding)


def test_one_finding_by_its_number_or_its_rule(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "diagnose", trace, "--json").json["findings"]
    first = call(capsys, "diagnose", trace, "--explain", 1).out
    assert found[0]["what"] in " ".join(first.split())
    assert first == call(capsys, "diagnose", trace, "--explain", found[0]["code"]).out
    shown = call(capsys, "diagnose", trace, "--explain", 1, "--json").json["findings"]
    assert shown == found[:1]
    assert "not found in this trace" in call(capsys, "diagnose", trace, "--explain", "dataloader-stall").out
    assert "no finding 99" in call(capsys, "diagnose", trace, "--explain", 99).err
    assert "no rule 'x'" in call(capsys, "diagnose", trace, "--explain", "x").err


def test_the_printed_command_shows_the_slices(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "diagnose", trace, "--json").json["findings"]
    wanted = next(one["evidence"]["slices"] for one in found if one["evidence"]["slices"])
    lines = call(capsys, "diagnose", trace, "-v").out.replace("\\\n", " ").splitlines()
    printed = next(line.split("slices:", 1)[1] for line in lines if "profrun query" in line)
    program, *words = shlex.split(printed)
    assert program == "profrun"
    answer = call(capsys, *words, "--json").json
    place = answer["columns"].index("slice")
    assert sorted(row[place] for row in answer["rows"]) == sorted(wanted)
