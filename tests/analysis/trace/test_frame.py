"""The frame that every question is asked of: how it is read makes no difference to what is in it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.trace import frame as frames
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
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
