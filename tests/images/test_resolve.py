"""From the word in a job spec to a reference, and what an image is known by."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.errors import UsageError
from profrun.images import probe
from profrun.images.resolve import _digest, _split, reference


@pytest.mark.parametrize(
    ("wanted", "vendor", "expected"),
    [
        ("auto", "nvidia", "profrun/cuda:latest"),
        ("auto", "amd", "profrun/rocm:latest"),
        ("auto", "none", "profrun/cuda:latest"),
        ("cuda", "amd", "profrun/cuda:latest"),
        ("rocm", "none", "profrun/rocm:latest"),
        ("nvcr.io/nvidia/pytorch:25.12-py3", "amd", "nvcr.io/nvidia/pytorch:25.12-py3"),
    ],
)
def test_auto_follows_the_gpu(wanted: str, vendor: str, expected: str) -> None:
    assert reference(wanted, vendor) == expected


def test_no_image_is_no_container() -> None:
    with pytest.raises(UsageError, match="--backend local"):
        reference("none", "nvidia")


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("a/b:1", ["c/d@sha256:1", "a/b@sha256:2"], "a/b@sha256:2"),
        ("localhost:5000/b", ["localhost:5000/b@sha256:2"], "localhost:5000/b@sha256:2"),
        ("debian:12", ["docker.io/library/debian@sha256:3"], "docker.io/library/debian@sha256:3"),
        ("x", ["c/d@sha256:1"], "c/d@sha256:1"),
        ("x", [], "sha256:0"),
    ],
)
def test_the_digest_is_the_registrys_else_the_id(name: str, known: list[str], expected: str) -> None:
    assert _digest(name, known, "sha256:0") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b:1", ("a/b", "1")),
        ("a/b", ("a/b", "latest")),
        ("localhost:5000/b", ("localhost:5000/b", "latest")),
        ("a/b@sha256:1", ("a/b", "sha256:1")),
    ],
)
def test_what_is_pulled(name: str, expected: tuple[str, str]) -> None:
    assert _split(name) == expected


def test_the_probe_reports_what_is_there() -> None:
    """It runs in any Python without anything of ours; here in this one."""
    source = Path(probe.__file__).read_text()
    done = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    version = subprocess.run([sys.executable, "-V"], capture_output=True, text=True, check=True).stdout
    assert f"Python {found['python']}" == version.strip()
    assert set(found) >= {"nsys", "ncu", "rocprofv3", "torch", "nvtx", "os", "machine", "uid"}


def test_a_tool_without_a_version_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "ncu"
    broken.write_text("#!/bin/sh\necho libfoo.so: cannot open shared object file\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe.tool("ncu")
    assert found is not None
    assert found["version"] is None
    assert "cannot open shared object" in (found["problem"] or "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert probe.tool("ncu") is None
