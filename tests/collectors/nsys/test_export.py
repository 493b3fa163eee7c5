"""Which command exports a report, by a stand-in for nsys."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.collectors.nsys.export import export_report

NSYS = """#!/bin/sh
if [ "$2" = --help ]; then echo "$HELP"; exit 0; fi
echo "$@" > "$SAID"
for word in "$@"; do case "$word" in --output=*) : > "${word#--output=}" ;; esac; done
"""


@pytest.mark.parametrize(
    ("text", "blobs"),
    [("--force-overwrite= and --include-blobs [true|false]", " --include-blobs=true"), ("--lazy=", "")],
    ids=["2025.3", "2024.2"],
)
def test_payloads_are_exported_where_this_nsys_can(
    text: str, blobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames of Python stacks are payloads. An nsys that does not know the flag would end with an error."""
    tool, report, said = tmp_path / "nsys", tmp_path / "a.nsys-rep", tmp_path / "said"
    tool.write_text(NSYS)
    tool.chmod(0o755)
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2025@3@1")
    for name, value in (("PROFRUN_NSYS", tool), ("HELP", text), ("SAID", said)):
        monkeypatch.setenv(name, str(value))
    target = export_report(report, tmp_path)
    assert target == tmp_path / "report.sqlite"
    assert said.read_text().strip() == (
        f"export --type=sqlite{blobs} --force-overwrite=true --output={target} {report}"
    )
