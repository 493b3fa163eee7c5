"""The documentation holds together: links lead somewhere, pages are listed, commands and job are real."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import pytest
from importlinter.api import read_configuration

from profrun.cli.app import COMMANDS
from profrun.jobs.load import load_text
from profrun.store import events
from profrun.version import VERSION
from tests.conftest import ROOT
from tests.test_layout import ROOMS

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


def test_every_link_leads_somewhere() -> None:
    assert {page: links for page in PAGES if (links := broken(page))} == {}


def test_a_link_into_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A head, `x`\n[1](a.md#a-head-x) [2](b.md) [3](#c) [4](https://x.y/z) `[5](d)`\n")
    assert broken(page) == ["b.md", "#c"]


def test_every_page_is_in_the_index() -> None:
    listed = set(LINK.findall((ROOT / "docs/README.md").read_text()))
    docs = ROOT / "docs"
    pages = [page for folder in (".", "tutorials", "how-to", "jobs") for page in (docs / folder).glob("*.md")]
    assert {page.relative_to(docs).as_posix() for page in pages} - {"README.md"} <= listed


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


ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ROOM_FILE = re.compile(  # not the target of a link, which another test follows
    rf"(?<![\w/.-])(?<!\]\()(?:{'|'.join(ROOMS)}|tests)/[\w/*-]+\.(?:py|c|md|yaml)\b"
)
DOTTED = re.compile(rf"`(?:profrun\.)?((?:{'|'.join(ROOMS)})\.[\w.]+)(?:\(\))?`")


def named_by_pages(pattern: re.Pattern[str]) -> list[tuple[Path, str]]:
    """What the pages name, each once per page."""
    return [(page, name) for page in PAGES for name in sorted(set(pattern.findall(page.read_text("utf-8"))))]


def test_every_file_of_a_room_that_a_page_names_is_there() -> None:
    named = [  # NAME is the recipes' word for a name of your own
        (page, name) for page, name in named_by_pages(ROOM_FILE) if "NAME" not in name
    ]
    assert [(page, name) for page, name in named if not any(ROOT.glob(name))] == []


def resolves(dotted: str) -> bool:
    """Whether a dotted name below ``profrun`` is a module, or a class or function in one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(["profrun", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, name, None)) is not None for name in parts[cut:])
    return False


def test_every_module_and_function_that_a_page_names_is_there() -> None:
    named = [(page, name) for page, name in named_by_pages(DOTTED) if not name.endswith(".py")]
    assert [(page, name) for page, name in named if not resolves(name)] == []


def test_the_layers_on_the_page_are_those_that_are_checked() -> None:
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    (layers,) = [one["layers"] for one in contracts if one["containers"] == ["profrun"]]
    after = ARCHITECTURE.partition("<!-- layers -->\n")[2]
    assert [line.strip() for line in after.partition("\n\n")[0].splitlines()] == layers


def test_every_room_has_a_row_on_the_page() -> None:
    assert sorted(re.findall(r"^\| `(\w+)/` \|", ARCHITECTURE, flags=re.MULTILINE)) == sorted(ROOMS)


DOCUMENTS = re.findall(r"^### `\S+`: `([\w.]+)\.(\w+)`\n(.*?)(?=^#)", ARCHITECTURE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("module", "name", "text"), DOCUMENTS, ids=[name for _, name, _ in DOCUMENTS])
def test_the_fields_of_a_document_on_the_page_are_those_of_its_dataclass(
    module: str, name: str, text: str
) -> None:
    listed = re.findall(r"`(\w+)`", text.partition("Fields:")[2])
    kind = getattr(importlib.import_module(f"profrun.{module}"), name)
    assert listed == [field.name for field in dataclasses.fields(kind)]


def test_the_events_on_the_page_are_those_of_the_log() -> None:
    assert f"`{', '.join(events.NAMES)}`" in ARCHITECTURE


def test_the_newest_release_of_the_changelog_is_this_version() -> None:
    heads = re.findall(r"^## (\S+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads[0] == VERSION
