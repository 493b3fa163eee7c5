"""Where the addresses of a trace are from: itself, the mapping beside it, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import InconclusiveError
from profrun.runner.mapped import find_mapped, mapped, run_of
from profrun.traces.trace import Trace
from tests.reports.mapped_run import mapped_run
from tests.tracekit import make_trace


def test_a_mapping_tells_its_own_and_those_of_the_trial_beside_it(tmp_path: Path) -> None:
    run, folder = mapped_run(tmp_path)
    with (
        Trace(run.trial("001-default-torch-r1").trace) as clean,
        Trace(run.trial("002-default-mapping-r1").trace) as mapping,
    ):
        told, own = find_mapped(clean), find_mapped(mapping)
    assert told is not None
    assert own is not None
    assert (told.mapping, own.mapping) == ("002-default-mapping-r1", None)
    files = {line.file for one in told.addresses.table for line in one.lines}
    assert files == {str(folder / "model.py"), str(folder / "train.py")}
    assert (told.addresses.of == own.addresses.of).all()


def test_a_trace_beside_no_mapping_has_none(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", [("kernel", "k", 1, 2, "stream 7")]) as trace:
        assert find_mapped(trace) is None
        with pytest.raises(InconclusiveError, match=r"lines: true"):
            mapped(trace)


def test_the_run_of_a_trace(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    found = run_of(run.trial("001-default-torch-r1").trace)
    assert found is not None
    assert found.path == run.path
    assert run_of(tmp_path / "a/b/trace") is None
