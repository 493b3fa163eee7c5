"""The report for everybody: axe finds no serious violation, in light and dark, on a desk and on a telephone.

axe-core (MPL-2.0) is fetched by npm, in a pinned version, into a cache; it is no part of profrun
(docs/decisions/0011-axe-in-tests.md).
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from profrun.cli import run as profrun
from profrun.runner.report import write_run_report
from profrun.store.state import read_state
from tests.conftest import missing
from tests.real.browser.kit import Watched, drawn
from tests.reports.runs import finished_run
from tests.runner.test_history import make_run

pytestmark = pytest.mark.browser
AXE = "axe-core@4.14.1"
INTEGRITY = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""sha512 of the package, as the registry states it."""
CACHE = Path(os.environ.get("PROFRUN_CACHE", Path.home() / ".cache/profrun"))
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 120) + " " + node.failureSummary).join(" | ")}`);
}"""  # noqa: E501


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    package = CACHE / f"{AXE.replace('@', '-')}.tgz"
    if not package.exists():
        if not shutil.which("npm"):
            missing("npm")
        CACHE.mkdir(parents=True, exist_ok=True)
        packing = ["npm", "pack", AXE, "--pack-destination", str(CACHE)]
        done = subprocess.run(packing, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            missing(f"{AXE} ({done.stderr.strip()[-200:]})")
    data = package.read_bytes()
    assert base64.b64encode(hashlib.sha512(data).digest()).decode() == INTEGRITY, f"{package} is damaged"
    with tarfile.open(package) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


def violations(seen: Watched, axe: str) -> list[str]:
    """What axe calls serious or critical; the script is put in by the test, past the page's policy."""
    seen.page.evaluate(axe)
    return list(seen.page.evaluate(RUN))


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
)
def test_a_trace_has_no_serious_violation(
    chromium: Any, h200: tuple[Path, dict[str, Any]], axe: str, scheme: str, width: int
) -> None:
    path, _ = h200
    seen = Watched(chromium, path, color_scheme=scheme, viewport={"width": width, "height": 900})
    for closed in seen.page.locator("details").all():
        closed.evaluate("one => { one.open = true; }")
    drawn(seen.page)
    assert violations(seen, axe) == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.quiet(path)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_tab_of_a_run_has_none(
    chromium: Any, axe: str, tmp_path: Path, scheme: str, width: int
) -> None:
    run, _ = finished_run(tmp_path)
    path = write_run_report(read_state(run))
    seen = Watched(chromium, path, color_scheme=scheme, viewport={"width": width, "height": 900})
    for tab in seen.page.locator("[role=tab]").all():
        tab.click()
        tab.and_(seen.page.locator("[aria-selected=true]")).wait_for()
        drawn(seen.page)
        assert violations(seen, axe) == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.quiet(path)


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400)]
)
def test_lines_with_their_kernels_and_their_source_have_none(
    chromium: Any, lines: Path, axe: str, scheme: str, width: int
) -> None:
    seen = Watched(chromium, lines, color_scheme=scheme, viewport={"width": width, "height": 900})
    for closed in seen.page.locator("details").all():
        closed.evaluate("one => { one.open = true; }")
    seen.page.locator(".flame .frame.line").first.click()
    seen.page.locator(".flame input").fill("gemm")
    seen.page.locator(".flame .panel .src.chosen").wait_for()
    drawn(seen.page)
    assert violations(seen, axe) == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.quiet(lines)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_history_has_none(chromium: Any, axe: str, tmp_path: Path, scheme: str) -> None:
    for number, step in enumerate((1000, 1000, 2000)):
        make_run(tmp_path, number, step).report.write_text("")
    path = tmp_path / "index.html"
    assert profrun(["report", "--index", str(tmp_path)]) == 0
    seen = Watched(chromium, path, color_scheme=scheme)
    for closed in seen.page.locator("details").all():
        closed.evaluate("one => { one.open = true; }")
    assert violations(seen, axe) == []
    assert seen.page.locator("circle.slower").count() == 2
    assert seen.quiet(path)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_comparison_has_none(chromium: Any, axe: str, comparison: Path, scheme: str, width: int) -> None:
    seen = Watched(chromium, comparison, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert violations(seen, axe) == []
    assert seen.quiet(comparison)


def test_axe_sees_what_is_wrong(chromium: Any, axe: str, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<!doctype html><html><body><img src='data:,'><p>x</p></body></html>")
    found = violations(Watched(chromium, tmp_path / "bad.html"), axe)
    assert {line.split(":")[0] for line in found} >= {"image-alt", "html-has-lang"}
