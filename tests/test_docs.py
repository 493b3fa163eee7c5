"""The documentation holds together: links lead somewhere, pages are listed, commands and job are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profrun.cli.app import COMMANDS
from profrun.jobs.load import load_text
from tests.conftest import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMES = [name for section in COMMANDS.values() for name in section]


def prose(page: Path) -> str:
    """The page without code blocks and inline code, where brackets mean other things."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken(page: Path) -> list[str]:
    """Links of a page to files or headings that are not there."""
    found = []
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_link_into_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A head, `x`\n[1](a.md#a-head-x) [2](b.md) [3](#c) [4](https://x.y/z) `[5](d)`\n")
    assert broken(page) == ["b.md", "#c"]


def test_every_page_is_in_the_index() -> None:
    listed = set(LINK.findall((ROOT / "docs/README.md").read_text()))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= listed


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_documented(name: str) -> None:
    assert f"`profrun {name}" in (ROOT / "docs/cli.md").read_text()
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `profrun ")]
    assert any(re.search(rf"`(profrun )?{name}\b", row) for row in rows)


def test_the_readmes_job_is_one() -> None:
    text = (ROOT / "README.md").read_text()
    (spec,) = re.findall(r"^```yaml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    job = load_text(spec)
    assert list(job.variants) == ["baseline", "optimised"]


def test_the_readmes_picture_is_small() -> None:
    assert (ROOT / "docs/images/report.png").stat().st_size < 200_000


def test_every_code_of_the_job_is_listed() -> None:
    """docs/in-job.md names the code of each finding that the wrapper, the hook or a preflight makes."""
    made = [*(ROOT / "in_job").glob("*.py"), ROOT / "contract/machine.py"]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in made)
    codes = set(re.findall(r'(?:Finding|_refused)\(\s*"([a-z-]+)"', sources))
    codes |= set(re.findall(r'Verdict\(\s*"[a-z]+", [^"]*"([a-z-]+)"', sources))
    listed = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs/in-job.md").read_text(encoding="utf-8")))
    assert len(codes) > 30
    assert codes - listed == set()
