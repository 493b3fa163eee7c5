"""What lies beside a profiler's file: the folder of a rank, and the hook's note."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profrun.collectors.beside import beside, rank_of
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsDevice, StepsFile

GPU = StepsDevice("nvidia", 0, "NVIDIA H200", "sm_90", sm_count=132, uuid="e1c0", host_ordinal=3)


@pytest.mark.parametrize(
    ("path", "rank"),
    [("raw/rank3/a.db", 3), ("rank1/rank2/a.db", 2), ("rank1", None), ("ranks/a.db", None)],
)
def test_the_nearest_folder_says_the_rank(path: str, rank: int | None) -> None:
    assert rank_of(Path(path)) == rank


def test_a_file_alone(tmp_path: Path) -> None:
    found = beside(tmp_path / "x.json")
    assert (found.rank({100}), found.host, found.steps) == (None, None, None)


@pytest.mark.parametrize(("pid", "rank"), [(100, 5), (101, 2)])  # another process of the rank's folder
def test_the_note_of_the_process_comes_before_the_folder(tmp_path: Path, pid: int, rank: int) -> None:
    folder = tmp_path / "rank2"
    folder.mkdir()
    steps = StepsFile(5, pid, "explicit", "wall", Anchor(1, 2, 3), host="node7", device=GPU)
    (folder / "steps.json").write_text(json.dumps(to_json(steps)))
    found = beside(folder / "x.json")
    assert (found.rank({100}), found.host) == (rank, "node7")
    rows: list[dict[str, Any]] = [
        {"ordinal": 0, "name": "unknown", "sm_count": 4},
        {"ordinal": 1, "name": "NVIDIA H200"},
    ]
    found.describe(rows, {100})
    known = {"ordinal": 0, "name": "NVIDIA H200", "sm_count": 4, "uuid": "e1c0", "host_ordinal": 3}
    assert (known.items() <= rows[0].items()) == (pid == 100)
    assert rows[1] == {"ordinal": 1, "name": "NVIDIA H200"}


def test_a_note_that_is_cut_short_is_none(tmp_path: Path) -> None:
    (tmp_path / "steps.json").write_text('{"rank": 1, ')
    assert beside(tmp_path / "x.json").steps is None
