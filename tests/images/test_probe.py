"""The probe that is shipped into images: it runs in any Python, without anything of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.contract.codec import from_json
from profrun.images import probe
from profrun.images.inspect import Contents, required_packages, tool_places


def _tool(folder: Path, name: str, text: str, code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {text}\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_the_probe_reports_what_is_there(tmp_path: Path) -> None:
    places = {"mytool": [f"{tmp_path}/*/bin"], "nothing": []}
    for version in ("9.0", "10.2"):
        _tool(tmp_path / version / "bin", "mytool", f"version {version}.1")
    source = Path(probe.__file__).read_text()
    asked = json.dumps({"tools": places, "packages": ["pytest", "no-such-package"]})
    done = subprocess.run(
        [sys.executable, "-I", "-c", source, asked], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    version = subprocess.run([sys.executable, "-V"], capture_output=True, text=True, check=True).stdout
    assert f"Python {found['python']}" == version.strip()
    assert set(found) >= {"torch", "nvtx", "os", "machine", "uid"}
    assert list(found["tools"]) == ["mytool"]
    contents = from_json(Contents, found)
    assert contents.tools["mytool"].path == f"{tmp_path}/10.2/bin/mytool"  # the newest
    assert contents.versions["mytool"] == "10.2.1"
    assert contents.versions["pytest"] == pytest.__version__
    assert "no-such-package" not in contents.versions


def test_a_tool_without_a_version_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, "ncu", "libfoo.so: cannot open shared object file", 127)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe.tool("ncu", ())
    assert found is not None
    assert found["version"] is None
    assert "cannot open shared object" in (found["problem"] or "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert probe.tool("ncu", ()) is None


@pytest.mark.parametrize("where", ["variable", "path", "places"])
def test_it_looks_where_the_wrapper_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    from profrun.in_job import tools

    made = _tool(tmp_path / "opt/2.10/bin", "mytool", "1.2")
    _tool(tmp_path / "opt/2.9/bin", "mytool", "1.1")
    monkeypatch.setenv("PATH", str(made.parent) if where == "path" else "/nowhere")
    if where == "variable":
        monkeypatch.setenv("PROFRUN_MYTOOL", str(made))
    places = [f"{tmp_path}/opt/*/bin"] if where == "places" else []
    assert probe.find("mytool", places) == tools.find("mytool", places) == str(made)
    assert probe.find("other", places) is tools.find("other", places) is None


def test_what_is_asked_for_is_what_profilers_declare() -> None:
    assert "/opt/nvidia/nsight-systems-cli/*/bin" in tool_places()["nsys"]
    assert {"nsys", "ncu", "rocprofv3"} <= set(tool_places())
    assert "torch" in required_packages()
