"""``profrun doctor``: what works here, and exit code 69 for what must work and does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Capture, call


def test_doctor_says_what_works_and_69_for_what_must(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    monkeypatch.setenv("PATH", str(tmp_path))  # no profiler is found here
    for name in ("PROFRUN_NSYS", "PROFRUN_NCU", "PROFRUN_ROCPROFV3"):
        monkeypatch.delenv(name, raising=False)
    done = call(capsys, "doctor", "--no-inside", "--runs", tmp_path, "--json")
    assert (done.code, done.json["cannot"]) == (0, [])
    assert done.json["collectors"]["none"]["local"] is True
    done = call(capsys, "doctor", "none", "rocprof", "--no-inside", "--runs", tmp_path, "--json")
    assert (done.code, done.json["cannot"]) == (69, ["rocprof"])
    text = call(capsys, "doctor", "--no-inside", "--runs", tmp_path)
    assert "nowhere.sock" in text.out
    assert "\n  none      no profiler     here\n" in text.out
    assert "perf_event_paranoid" not in text.out
    every = call(capsys, "doctor", "-v", "--no-inside", "--runs", tmp_path)
    assert every.out.startswith(text.out.partition("\nEvery check")[0])
    assert "perf-events: perf_event_paranoid is" in every.out
    assert call(capsys, "doctor", "gprof", "--no-inside", "--runs", tmp_path).code == 64
