"""The page and the notebook about Python run as they stand, and say all that there is."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import profrun
from tests.api.conftest import recording, write_job
from tests.conftest import ROOT

PAGE = ROOT / "docs/python.md"
NOTEBOOK = ROOT / "docs/from_python.ipynb"
RUN_NOTEBOOK = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.argv[3])
"""
"""A process of its own: the warnings of these packages are no errors of ours."""


def snippets() -> list[str]:
    """The Python blocks of the page, in order."""
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.thorough
def test_every_snippet_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    write_job(tmp_path, repeats=1)
    shutil.copy(recording("baseline-torch-r1"), tmp_path / "rank0.pt.trace.json.gz")
    names: dict[str, object] = {}
    for snippet in snippets():
        exec(compile(snippet, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "query failed: Binder Error" in printed
    assert "normalised 000-baseline-none-r1" in printed
    assert (tmp_path / "trace.pftrace").exists()


def test_the_page_names_everything() -> None:
    page = PAGE.read_text()
    for name in set(profrun.__all__) - {"__version__", "Comparison", "Run", "Trace"}:
        assert f"profrun.{name}" in page, name
    for kind in (profrun.Trace, profrun.Run, profrun.Table):
        own = [name for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"]
        for name in own:
            assert re.search(rf"\b{name}\(", page), f"{kind.__name__}.{name}"
    for option in inspect.signature(profrun.compare).parameters.keys() - {"a", "b", "runs"}:
        assert f"`{option}`" in page, option
    for option in inspect.signature(profrun.improve).parameters.keys() - {"job_or_run"}:
        assert f"`{option}`" in page, option


def test_the_notebook_holds_no_output() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.thorough
def test_the_notebook_runs(tmp_path: Path) -> None:
    done = tmp_path / "done.ipynb"
    finished = subprocess.run(
        [sys.executable, "-c", RUN_NOTEBOOK, str(NOTEBOOK), str(NOTEBOOK.parent), str(done)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"},
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    for words in ("NVIDIA H200", "critical path of process 0", "per step: ", "aten::addmm", "<table"):
        assert words in done.read_text()
