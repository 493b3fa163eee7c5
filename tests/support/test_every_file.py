"""No command ends in a bug of profrun on any real file, damaged ones included."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from bench.every_file import READ, REFUSED, RUNS, Walk, recordings, whole_run

from tests.conftest import missing


def _marked(label: str, paths: list[Path]) -> Any:
    """The smallest damaged files always: they are cheap, and each once ended in a bug."""
    always = label.startswith("hostile/") and paths[0].stat().st_size < 350
    return pytest.param(label, paths, id=label, marks=() if always else pytest.mark.thorough)


def test_there_are_files() -> None:
    if not any(recordings()) or not any(RUNS.glob("*.tar.xz")):
        missing("the folder of real files")


@pytest.mark.parametrize(("label", "paths"), [_marked(label, paths) for label, paths in recordings()])
def test_every_command_on_every_recording(label: str, paths: list[Path], tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    trace = str(tmp_path / "trace")
    if walk.ask(label, READ | REFUSED, "normalize", *map(str, paths), "-o", trace) == 0:
        walk.trace(label, trace)
        shutil.rmtree(trace)
    assert walk.wrong == []


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.parametrize("archive", sorted(RUNS.glob("*.tar.xz")), ids=lambda path: path.name)
def test_every_command_on_a_run_of_an_earlier_version(archive: Path, tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    whole_run(walk, archive)
    assert walk.wrong == []
