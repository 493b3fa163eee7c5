"""The tutorials and the how-tos: their commands run, and print what the pages show."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from profrun.analysis.rules.recording import slower_twin
from profrun.runner.finish import write_findings
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.cli.running import Capture, call
from tests.conftest import ROOT, unpack
from tests.reports.documents import parse
from tests.support.pages import (
    Page,
    lay_out,
    masked,
    missing_lines,
    read_page,
    reader_environ,
    rehearsals,
    shell_lines,
)

RECORDED = ROOT / "tests/data/h200/pages"
TUTORIALS = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]
PATHS = [*TUTORIALS, *sorted((ROOT / "docs/how-to").glob("*.md"))]
README = ROOT / "README.md"
with_readme = pytest.mark.parametrize("path", [README, *PATHS], ids=lambda path: path.stem)


def bash(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader would; what they print on stderr is among the output."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env={**reader_environ(), "COLUMNS": "100", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def recorded(name: str, folder: Path) -> Path:
    """A folder with a recorded run in ``runs/``, with the comparisons and answers of today."""
    runs = folder / name / "runs"
    if not runs.exists():
        with tarfile.open(RECORDED / f"{name}.tar.xz") as archive:
            unpack(archive, runs)
        (run,) = runs.iterdir()
        write_findings(read_state(Run(run)), [])
    return runs.parent


def follow(page: Page, folder: Path) -> tuple[str, bool]:
    """Run the commands of a page in an empty folder.

    Returns:
        The first lines of the page that its commands do not print, with what they print ("" if they print
        all); and whether profrun says there that the machine was busy during the trials without a profiler.
        Then the share of a finding has another denominator than on the page.
    """
    lay_out(page, folder)
    for commands in page.commands:
        if commands.needs or commands.recorded:
            continue
        done = bash(commands.text, folder)
        assert done.returncode in commands.exits, f"line {commands.line}: {done.stdout}"
        for output in commands.outputs:
            absent = [] if output.recorded else missing_lines(output.text, done.stdout, exact=False)
            if absent:
                return f"{absent} not in {done.stdout}", slower_twin.title in done.stdout
    return "", False


@with_readme
def test_the_words_of_every_command_are_known(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    page = read_page(path)
    lay_out(page, tmp_path)
    (tmp_path / "train.py").touch()  # the reader's own program, where a page shows none
    monkeypatch.chdir(tmp_path)
    for commands in page.commands:
        done = bash(shell_lines(commands.text), tmp_path)
        assert done.returncode == 0, done.stdout
        for words in rehearsals(commands.text):
            called = call(capsys, *words)
            assert called.code == 0, f"line {commands.line}: {called.err}"


@pytest.mark.parametrize(
    "path",
    [README, *(pytest.param(path, marks=pytest.mark.thorough) for path in PATHS)],
    ids=lambda path: path.stem,
)
def test_what_a_page_shows_of_a_recorded_run_is_what_profrun_says_of_it(path: Path, tmp_path: Path) -> None:
    for commands in read_page(path).commands:
        for output in commands.outputs:
            name = output.recorded or commands.recorded
            if name is None:
                continue
            text = "profrun status last" if output.recorded else commands.text
            done = bash(text, recorded(name, tmp_path))
            assert output.recorded or done.returncode in commands.exits, done.stdout
            assert missing_lines(output.text, done.stdout, exact=True) == [], done.stdout


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.thorough if path in TUTORIALS else pytest.mark.pages)
        for path in PATHS
    ],
    ids=lambda path: path.stem,
)
def test_a_page_can_be_followed_from_its_first_line_to_its_last(path: Path, tmp_path: Path) -> None:
    page = read_page(path)
    absent, busy = "", True
    for number in range(3):
        if busy:  # which only another try can tell from a wrong page
            folder = tmp_path / str(number)
            folder.mkdir()
            absent, busy = follow(page, folder)
    assert absent == ""


@pytest.mark.thorough
def test_the_page_about_the_report_names_its_sections_as_they_are(tmp_path: Path) -> None:
    folder = recorded("gan", tmp_path)
    done = bash("profrun report last --out report.html", folder)
    assert done.returncode == 0, done.stdout
    document = parse((folder / "report.html").read_text(encoding="utf-8"))
    heads = [node.text for node in document.every("h3")]
    for note in document.every("p", class_="note"):
        if note.text.startswith("Not in this "):
            heads += note.text.partition(": ")[2].rstrip(".").split(", ")
    text = (ROOT / "docs/how-to/read-the-report.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| **")]
    named = [name for row in rows for name in re.findall(r"\*\*(.*?)\*\*", row)]
    assert len(heads) > 15
    assert sorted(named) == sorted(set(heads))


def test_a_line_that_is_not_printed_is_found() -> None:
    printed = "step 1.5 ms\nGPU busy 3 %\nreport: /tmp/x\n"
    assert missing_lines("step 22.6 us\n...\nreport: ...\n", printed, exact=False) == []
    assert missing_lines("GPU busy 4 %\nstep 1 ms\n", printed, exact=False) == ["step 1 ms"]
    assert missing_lines("step 1.6 ms\n", printed, exact=True) == ["step 1.6 ms"]
    wrapped = "  1  137 ms (90 %)  it compiles: constant or dynamic\n     shapes\n  2  1 ms\n"
    assert (
        missing_lines("1  1.37 s (9 %)  it compiles: constant or\ndynamic shapes\n", wrapped, exact=False)
        == []
    )
    for wrong in ("dynamic shapes", "1 1 ms (1 %) it compiles: constant", "it compiles: constant or dynamic"):
        assert missing_lines(wrong, wrapped, exact=False) == [wrong]
    assert masked("  a 3 ms -> b 2 ms per step: 33 % faster [1 to 60 %]") == "a # -> b # per step"
    assert masked("after 1 min 04 s, 9 trials") == masked("after 50 s, 12 trials")
    assert masked("run-20261122T140020Z-92f0: +3.5 %  of 2.74 x") == "run-#: # of #"


def test_commands_are_rehearsed_without_starting_anything() -> None:
    text = (
        "cd x\nprofrun run -n 3 \\\n -- python a.py\nprofrun compare a vs b > c\nprofrun baseline save m a\n"
        "profrun job examples mlp\nprofrun job check a.yaml\n"
    )
    assert shell_lines(text) == "cd x"
    assert rehearsals(text) == [
        ["run", "--dry-run", "-n", "3", "--", "python", "a.py"],
        ["compare", "--help", "a", "vs", "b"],
        ["baseline", "save", "--help", "m", "a"],
        ["job", "examples", "mlp"],
        ["job", "check", "--help", "a.yaml"],
    ]
