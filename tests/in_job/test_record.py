"""Which process of a rank writes results.json."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profrun.contract.results import ResultKind
from profrun.in_job.config import HookConfig
from profrun.in_job.record import ProcessFiles


@pytest.fixture(autouse=True)
def rank_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")


def write(
    folder: Path,
    pid: int,
    kind: ResultKind,
    *values: float | None,
    role: str | None = None,
    forked: bool = False,
    run: int = 0,
) -> None:
    """A process ends that has these values."""
    config = HookConfig(str(folder), run=run)
    process: Any = SimpleNamespace(config=config, torch=None, pid=pid, forked=forked)
    course: Any = SimpleNamespace(role=lambda: role)
    none: Any = None
    ProcessFiles(process, none, none, course).write_results(kind, values, 2**-7)


def written(folder: Path) -> dict[str, list[float | None]]:
    """File -> values."""
    files = (folder / "raw").rglob("*")
    return {file.name: json.loads(file.read_text())["values"] for file in files if file.is_file()}


def test_the_first_process_with_values_has_the_file_and_the_next_one_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, 7, "none")
    assert written(tmp_path) == {"results.json": []}
    write(tmp_path, 8, "loss", 1.5, None)
    assert written(tmp_path) == {"results.json": [1.5, None]}
    assert json.loads((tmp_path / "raw/rank1/results.json").read_text()) == {
        "rank": 1,
        "kind": "loss",
        "values": [1.5, None],
        "spacing": 2**-7,
        "format": 1,
    }
    write(tmp_path, 9, "none")
    write(tmp_path, 10, "output", 2.5, forked=True)
    assert written(tmp_path) == {"results.json": [1.5, None], "results.10.json": [2.5]}


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("loss", {"role": "launcher"}),
        ("loss", {"role": "dataloader worker"}),
        ("loss", {"run": 1}),  # a further pass of a counter collection
        ("none", {"forked": True}),
    ],
)
def test_helpers_and_further_passes_write_nothing(
    tmp_path: Path, kind: ResultKind, about: dict[str, Any]
) -> None:
    write(tmp_path, 7, kind, 1.0, **about)
    assert not (tmp_path / "raw").exists()
