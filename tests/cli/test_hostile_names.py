"""Every command that prints names, on a trace and a run whose every name is hostile: none is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profrun import cli
from profrun.store.runs import Run
from tests.cli.running import Capture, call
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

EVIL = "k_\x1b]0;pwn\x07\x1b[2J\r\nforged: line\x9b31m\u202e"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SLICES = [
    ("step", f"profrun.step#1 {EVIL}", 0, 1000, EVIL),
    ("op", EVIL, 5, 20, EVIL),
    ("range", EVIL, 5, 30, EVIL),
    ("api", EVIL, 10, 5, EVIL),
    ("kernel", EVIL, 100, 300, "stream 7"),
]
TRACE_COMMANDS = [
    ("summary",),
    ("summary", "-v"),
    ("diagnose",),
    ("diagnose", "-v"),
    ("query", "SELECT 1"),
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "t\x1b[2J"
    make_trace(folder, SLICES).close()
    return folder


def clean(text: str) -> bool:
    """Whether a terminal would obey nothing of it but colours, and no line is forged."""
    return not OBEYED.search(re.sub(r"\x1b\[[0-9;]*m", "", text)) and "\nforged" not in text


@pytest.mark.parametrize("words", TRACE_COMMANDS)
@pytest.mark.parametrize("colour", ["always", "never"])
def test_commands_about_a_trace(capsys: Capture, hostile: Path, words: tuple[str, ...], colour: str) -> None:
    done = call(capsys, words[0], hostile, *words[1:], "--color", colour)
    assert done.code == 0, done.err
    assert clean(done.out), done.out
    assert clean(done.err), done.err


def test_a_comparison(capsys: Capture, hostile: Path, tmp_path: Path) -> None:
    make_trace(tmp_path / "b", SLICES).close()
    for by in ("kernel", "op", "range", "category", "step"):
        done = call(capsys, "compare", hostile, "vs", tmp_path / "b", "--by", by)
        assert clean(done.out + done.err), done.out + done.err


def test_normalize_and_its_refusals(capsys: Capture, tmp_path: Path) -> None:
    for name in ("\x1b[2J.json", "\x9b.csv", "a\rb"):
        (tmp_path / name).write_text(f"{EVIL},{EVIL}\n1,2\n")
        done = call(capsys, "normalize", tmp_path / name, "-o", tmp_path / "o\x1b")
        assert done.code == 65
        assert clean(done.out + done.err), done.err


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run, _ = new_run(tmp_path / "runs")
    first = begin(run.trial("000-a-none-r1"))
    run.log().append("started", first.folder.name, attempt=1, handle={"backend": "local", "data": {}})
    leave(first, "failed", reason=EVIL)
    first.stdout.write_text(EVIL)
    first.stderr.write_text(EVIL)
    evil = run.path.with_name(f"{run.path.name}-\x1b[2J\u202e")
    run.path.rename(evil)
    return Run(evil)


@pytest.mark.parametrize("words", [("runs",), ("status",), ("status", "-v"), ("logs",), ("nonsense\x1b[2J",)])
def test_commands_about_a_run(
    capsys: Capture, run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: __import__("os").terminal_size((80, 24)))
    given = [*words, "--runs", str(run.path.parent)]
    capsys.readouterr()
    cli.run([*given, run.name] if words[0] in ("status", "logs") else given)
    found = capsys.readouterr()
    text = found.out + found.err
    printed = text if words[0] != "logs" else text.replace("\nforged", "")
    assert clean(printed), text


@pytest.mark.parametrize("command", ["logs", "report", "summary", "open", "normalize"])
def test_a_name_that_no_file_can_have(command: str, tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, command, "x" * 100_000)
    assert done.code == 64
    assert len(done.err) < 2000
