"""Where the GPU work of a trace comes from, as its report has it, also when the mapping is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.contract.private import Private
from profrun.runner.places import NO_SOURCE, places_of
from profrun.store.private import write_private
from profrun.traces.trace import Trace
from tests.reports.mapped_run import MODEL, SECRET, mapped_run
from tests.tracekit import make_trace

CLEAN, MAPPING = "001-default-torch-r1", "002-default-mapping-r1"


def test_tables_and_tree_are_of_the_same_work_and_source_comes_when_it_is_asked_for(tmp_path: Path) -> None:
    run, folder = mapped_run(tmp_path)
    with Trace(run.trial(CLEAN).trace) as trace:
        places, missing = places_of(trace)
        asked, _ = places_of(trace, source=True)
    assert missing == ""
    assert places is not None
    assert places.tree is not None
    assert places.lines.gpu_ns == places.modules.gpu_ns == places.tree.gpu_ns > 0
    assert (places.mapping, places.source) == (MAPPING, None)
    assert asked is not None
    assert asked.source is not None
    assert [block.file for block in asked.source.blocks] == [
        str(folder / "model.py"),
        str(folder / "train.py"),
    ]
    assert asked.source.blocks[0].lines[-1] == MODEL.splitlines()[-1]


def test_values_that_the_run_or_the_environment_keeps_secret_are_in_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = mapped_run(tmp_path)
    text = MODEL.replace("self.up(x)", "self.up(x, 'value of the run', 'value of here')")
    (folder / "model.py").write_text(text)
    write_private(run.path, Private(values=("value of the run",)))
    monkeypatch.setenv("SOME_TOKEN", "value of here")
    with Trace(run.trial(CLEAN).trace) as trace:
        places, _ = places_of(trace, source=True)
    assert places is not None
    assert places.source is not None
    shown = "\n".join(line for block in places.source.blocks for line in block.lines)
    assert "hidden = self.up(x, '<redacted>', '<redacted>')" in shown
    assert 'PASSWORD = "<redacted>"' in shown
    assert SECRET not in shown


def test_a_damaged_mapping_is_said(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    (run.trial(MAPPING).trace / "slices.parquet").write_bytes(b"torn")
    with Trace(run.trial(CLEAN).trace) as trace:
        places, missing = places_of(trace)
    assert places is None
    assert missing.startswith("The lines that launched the GPU work are not shown: ")


def test_no_source_is_shown_where_the_secrets_of_the_run_are_not_known(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    (run.path / "private.json").write_text("{")
    with Trace(run.trial(CLEAN).trace) as trace:
        places, _ = places_of(trace, source=True)
    assert places is not None
    assert places.source is not None
    assert not places.source.blocks
    assert "may hold secrets" in places.source.notes[0]


def test_a_trace_without_a_mapping_has_nothing_and_says_so_where_source_was_asked_for(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", [("kernel", "k", 1, 2, "stream 7")]) as trace:
        assert places_of(trace) == (None, "")
        assert places_of(trace, source=True) == (None, NO_SOURCE)
