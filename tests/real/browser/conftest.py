"""Chromium, and the report of a recording of an H200."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace.summary import summarize
from profrun.cli import run as profrun
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.conftest import ROOT, missing
from tests.real.browser.kit import FLAGS, H200
from tests.reports.mapped_run import mapped_run


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium from $PROFRUN_CHROMIUM or the PATH."""
    try:
        from playwright import sync_api
    except ImportError:
        missing("playwright")
    found = os.environ.get("PROFRUN_CHROMIUM") or shutil.which("chromium")
    if not found:
        missing("chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def h200(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """(report, summary as JSON) of a transformer layer on an H200."""
    folder = tmp_path_factory.mktemp("h200")
    normalize([H200], folder / "t")
    assert profrun(["report", str(folder / "t"), "--out", str(folder / "t.html")]) == 0
    with Trace(folder / "t") as trace:
        return folder / "t.html", summarize(trace).to_json()


@pytest.fixture(scope="session")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a trial whose kernels have lines, with their source."""
    run, _ = mapped_run(tmp_path_factory.mktemp("lines"))
    out = run.path / "lines.html"
    words = ["report", str(run.path / "trials/001-default-torch-r1"), "--source", "--out", str(out)]
    assert profrun(words) == 0
    return out


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two variants of a transformer layer on an H200."""
    folder = tmp_path_factory.mktemp("comparison")
    sides = []
    for name in ("baseline", "optimised"):
        normalize(
            [ROOT / f"tests/data/h200/transformer/{name}-torch-r1/rank0/pt.trace.json.gz"], folder / name
        )
        sides.append(str(folder / name))
    words = [sides[0], "vs", sides[1], "--allow", "work", "--html", str(folder / "page.html")]
    assert profrun(["compare", *words]) in (0, 1, 2)
    return folder / "page.html"
