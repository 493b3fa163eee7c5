"""The workflow of docs/how-to/gate-a-pull-request.md: valid for GitHub, and its commands decide rightly."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.support.pages import lay_out, read_page, reader_environ

PAGE = read_page(ROOT / "docs/how-to/gate-a-pull-request.md")
FILE = ".github/workflows/performance.yml"
WORKFLOW = PAGE.files[FILE]
STEPS: list[dict[str, Any]] = yaml.safe_load(WORKFLOW)["jobs"]["compare"]["steps"]


def schema_verdict(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check a workflow against the schema of GitHub's workflow files."""
    path = folder / "workflow.yml"
    path.write_text(text)
    words = ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)


def test_the_workflow_is_valid_for_github(tmp_path: Path) -> None:
    done = schema_verdict(WORKFLOW, tmp_path)
    assert done.returncode == 0, done.stdout
    assert schema_verdict(WORKFLOW.replace("runs-on", "run-on"), tmp_path).returncode == 1


def checked_out(folder: Path, change: str = "") -> Path:
    """The workspace after the two checkouts: the code before, and after a change at the end of its loop."""
    files = folder / "files"
    lay_out(PAGE, files)
    for step in STEPS:
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            shutil.copytree(files, folder / step["with"]["path"])
    program = folder / "after/train.py"
    program.write_text(program.read_text() + change)
    return folder


def run_step(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step's commands as GitHub's machines do: `bash -e`, with a file for the summary."""
    (step,) = (step for step in STEPS if step.get("name") == name)
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder,
        env={**reader_environ(), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_the_job_is_one_that_the_workflow_can_start(tmp_path: Path) -> None:
    checked_out(tmp_path)
    (step,) = (step for step in STEPS if step.get("name") == "Measure")
    done = subprocess.run(
        [*step["run"].split(), "--dry-run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^python (\w+)/train.py$", done.stdout, re.MULTILINE)[:2] == ["before", "after"]


@pytest.mark.pages
@pytest.mark.parametrize(
    ("change", "codes", "words"),
    [
        ("", {0}, {"passed", "inconclusive"}),
        ("    __import__('time').sleep(0.3)\n", {1}, {"failed"}),
    ],
    ids=["nothing", "slower"],
)
def test_the_commands_decide(change: str, codes: set[int], words: set[str], tmp_path: Path) -> None:
    checked_out(tmp_path, change)
    done = run_step("Measure", tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_step("Compare", tmp_path)
    assert done.returncode in codes, done.stdout + done.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert any(word in summary for word in words), summary
    (step,) = (step for step in STEPS if step.get("name") == "Keep the report")
    assert list(tmp_path.glob(step["with"]["path"]))
