"""No command ends in a bug of profrun on a real file, damaged ones included.

Each recording is normalized, and asked a sixth of the questions of ``bench/every_file.py``, in turns. So each
question is asked of some thirty recordings. A trace of a run of an earlier version is asked a third of these
questions. ``python bench/every_file.py`` asks all of them of all.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from bench.every_file import READ, REFUSED, RUNS, Walk, recordings, whole_run

from tests.conftest import missing


def _marked(number: int, label: str, paths: list[Path]) -> Any:
    """The smallest damaged files always: they are cheap, and each once ended in a bug."""
    always = label.startswith("hostile/") and paths[0].stat().st_size < 350
    return pytest.param(number, label, paths, id=label, marks=() if always else pytest.mark.thorough)


def test_there_are_files() -> None:
    if not any(recordings()) or not any(RUNS.glob("*.tar.xz")):
        missing("the folder of real files")


@pytest.mark.parametrize(
    ("number", "label", "paths"), [_marked(number, *one) for number, one in enumerate(recordings())]
)
def test_commands_on_every_recording(number: int, label: str, paths: list[Path], tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    trace = str(tmp_path / "trace")
    if walk.ask(label, READ | REFUSED, "normalize", *map(str, paths), "-o", trace) == 0:
        walk.trace(label, trace, first=number, every=6)
        shutil.rmtree(trace)
    assert walk.wrong == []


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.parametrize("archive", sorted(RUNS.glob("*.tar.xz")), ids=lambda path: path.name)
def test_commands_on_a_run_of_an_earlier_version(archive: Path, tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    whole_run(walk, archive, every=3)
    assert walk.wrong == []
