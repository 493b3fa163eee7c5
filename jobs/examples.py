"""The jobs that come with profrun: where they are, their names and their questions. No job is read here.

The tabulator in a shell waits for this module, so it imports nothing of profrun.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

FOLDER = Path(__file__).absolute().parent
"""The folder of the jobs; the paths in their commands count from here."""


def names() -> list[str]:
    """The names of all examples, in the order of the alphabet."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def path_of(name: str) -> Path:
    """The file of an example."""
    return FOLDER / f"{name}.yaml"


def question(name: str) -> str:
    """What an example asks: the comment at the top of its file, up to the first empty one."""
    with path_of(name).open(encoding="utf-8") as file:
        lines = takewhile(bool, (line.lstrip("#").strip() for line in file))
        return " ".join(lines)
