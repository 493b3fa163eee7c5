"""Pages of docs/ whose commands can be run: their files, commands and outputs, read from the Markdown.

A fenced block says what it is in its first line:

* ``sh``: commands, run by bash in the page's folder. ``exit=1`` is the exit code that they must have (0 where
  nothing is said; ``exit=0,2``: one of these). ``needs=docker`` says that they need something that not every
  machine has. ``recorded=NAME`` says that they are about the run in tests/data/h200/pages/NAME.tar.xz, which
  then is the newest in ``runs/``.
* ``text``: what the commands before it print. ``recorded=NAME``: what ``profrun status`` prints about that
  run.
* ``python train.py``, ``yaml job.yaml``: a file of this name in the page's folder.

Other blocks are for the reader alone.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^```(?P<head>\S[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_STAMP = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?: ?(?:ns|us|ms|s|min|%|x|[KMG]i?B)(?!\w))?")
_NUMBERS = re.compile(r"#( #)+")  # 1 min 04 s
_VERDICT = re.compile(r"( -> .*? per \w+)\b.*")
_DRY = ("run", "submit")
_GROUPS = ("baseline", "images", "job")
_COPIES = ("job", "examples")
_SHELL = ("|", "||", "&&", ";", ">", ">>")


@dataclass(frozen=True)
class Output:
    """A ``text`` block."""

    text: str
    recorded: str | None = None


@dataclass
class Commands:
    """An ``sh`` block and what it prints."""

    text: str
    line: int
    exits: tuple[int, ...]
    needs: str | None
    recorded: str | None
    outputs: list[Output] = field(default_factory=list)


@dataclass
class Page:
    """A page: its files, and its commands in their order."""

    path: Path
    files: dict[str, str]
    commands: list[Commands]


def read_page(path: Path) -> Page:
    """The page with everything that can be run.

    Raises:
        ValueError: an output has no commands before it.
    """
    page = Page(path, {}, [])
    text = path.read_text(encoding="utf-8")
    for block in _FENCE.finditer(text):
        language, *words = block["head"].split()
        said = dict(word.split("=", 1) for word in words if "=" in word)
        if language == "sh":
            line = text.count("\n", 0, block.start()) + 1
            exits = tuple(int(code) for code in said.get("exit", "0").split(","))
            page.commands.append(
                Commands(block["text"], line, exits, said.get("needs"), said.get("recorded"))
            )
        elif language == "text":
            if not page.commands:
                raise ValueError(f"{path}: an output without a command")
            page.commands[-1].outputs.append(Output(block["text"], said.get("recorded")))
        elif words:
            (name,) = words
            page.files[name] = block["text"]
    return page


def lay_out(page: Page, folder: Path) -> list[Path]:
    """Write the page's files into a folder; their paths."""
    for name, text in page.files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return [folder / name for name in page.files]


def reader_environ() -> dict[str, str]:
    """The environment of a page's commands: this one without profrun's variables; torch takes one thread."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PROFRUN_")}
    return {**kept, "OMP_NUM_THREADS": "1"}


def masked(line: str) -> str:
    """A line without what differs between runs and machines.

    That is: numbers with their units, the stamps in runs' names, blanks, and what follows "a 3 ms -> b 2 ms
    per step", because only a quiet machine allows a verdict.
    """
    plain = _VERDICT.sub(r"\1", _STAMP.sub("#", line))
    return _NUMBERS.sub("#", " ".join(_NUMBER.sub("#", plain).split()))


def missing_lines(shown: str, printed: str, *, exact: bool) -> list[str]:
    """Lines of a page that a command does not print, or not in this order.

    A line ``...`` stands for any lines, and ``...`` at the end of a line for its rest.

    Args:
        shown: a ``text`` block.
        printed: all that the command printed.
        exact: numbers, blanks and the ends of lines must be equal too. Otherwise any number will do, and a
            longer number may move the words behind it to the next line.
    """
    lines = [line for line in shown.splitlines() if line.strip() not in ("", "...")]
    return _absent_lines(lines, printed) if exact else _absent_words(lines, printed)


def _absent_lines(lines: list[str], printed: str) -> list[str]:
    there = iter([line.rstrip() for line in printed.splitlines()])
    absent = []
    for line in lines:
        wanted, cut = line.removesuffix("...").rstrip(), line.endswith("...")
        if not any(found.startswith(wanted) if cut else found == wanted for found in there):
            absent.append(line)
            there = iter([])
    return absent


def _absent_words(lines: list[str], printed: str) -> list[str]:
    """A line begins where a printed line begins or the line before it ended; likewise it ends."""
    words: list[str] = []
    begins = set()
    for line in printed.splitlines():
        begins.add(len(words))
        words += masked(line).split()
    begins.add(len(words))
    absent: list[str] = []
    at, broken = 0, ""  # the words up to here are used; the line before, where it ended inside a printed line
    for line in lines:
        wanted, cut = masked(line.removesuffix("...")).split(), line.endswith("...")
        places = (place for place in range(at, len(words)) if place in begins or place == at)
        place = next((place for place in places if _is_at(wanted, words, place, cut=cut)), None)
        if broken and place != at:
            absent.append(broken)
        if place is None:
            return [*absent, line]
        at = place + len(wanted)
        broken = "" if cut or at in begins else line
    return [*absent, broken] if broken else absent


def _is_at(wanted: list[str], words: list[str], place: int, *, cut: bool) -> bool:
    found = words[place : place + len(wanted)]
    return " ".join(found).startswith(" ".join(wanted)) if cut else found == wanted


def shell_lines(text: str) -> str:
    """The commands that are not profrun's."""
    return "\n".join(line for line in _lines(text) if line.split()[:1] != ["profrun"])


def rehearsals(text: str) -> list[list[str]]:
    """Arguments that only check those of each command: a dry run of what starts trials, else its help.

    ``profrun job examples`` stays as it is: it only writes the jobs that later commands need.
    """
    found = []
    for line in _lines(text):
        words = shlex.split(line)
        if words[:1] != ["profrun"]:
            continue
        arguments = list(itertools.takewhile(lambda word: word not in _SHELL, words[1:]))
        if tuple(arguments[:2]) == _COPIES:
            found.append(arguments)
            continue
        depth = 2 if arguments[0] in _GROUPS else 1
        check = "--dry-run" if arguments[0] in _DRY else "--help"
        found.append([*arguments[:depth], check, *arguments[depth:]])
    return found


def _lines(text: str) -> list[str]:
    return text.replace("\\\n", " ").splitlines()
