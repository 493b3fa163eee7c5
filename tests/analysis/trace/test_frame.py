"""The frame that every question is asked of: how it is read makes no difference to what is in it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.trace import frame as frames
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace
from tests.conftest import ROOT

RECORDING = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"


def test_columns_read_on_two_threads_are_those_read_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    normalize([RECORDING], tmp_path / "trace")
    found = []
    for rows in (10**9, 0):  # recordings in the tests are too short for threads by themselves
        monkeypatch.setattr(frames, "_LONG", rows)
        with Trace(tmp_path / "trace") as trace:
            found.append(frames.frame(trace))
    one, two = (
        {field.name: getattr(each, field.name) for field in dataclasses.fields(each)} for each in found
    )
    arrays = [name for name, value in one.items() if isinstance(value, np.ndarray)]
    assert {"ts", "end", "kind", "track", "launch"} <= set(arrays)
    assert len(one["ts"]) > 400
    for name in arrays:
        assert one[name].dtype == two[name].dtype
        assert np.array_equal(one[name], two[name]), name


def test_what_lies_in_a_slice_is_on_its_track_and_is_not_the_slice_itself() -> None:
    """Ids 0 to 4: an op with two levels in it, one behind it, and one at the same time on another thread."""
    found = frames.frame(
        memory_trace(
            [
                ("op", "outer", 0, 100, "main"),
                ("op", "middle", 10, 50, "main"),
                ("api", "inner", 20, 10, "main"),
                ("op", "behind", 100, 10, "main"),
                ("op", "beside", 20, 10, "other"),
            ]
        )
    )
    assert np.flatnonzero(found.inside(np.array([0]))).tolist() == [1, 2]
    assert np.flatnonzero(found.inside(np.array([1, 3, 4]))).tolist() == [2]
    assert not found.inside(np.array([], dtype=np.intp)).any()
