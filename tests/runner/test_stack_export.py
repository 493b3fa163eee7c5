"""Stacks of a trace as files: with the lines that the mapping of its run tells, and without any."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.denominator import STEP
from profrun.contract.line_names import line_name
from profrun.errors import InconclusiveError, UnavailableError, UsageError
from profrun.runner.stack_export import export_stacks
from profrun.traces.trace import Trace
from tests.analysis.trace.test_addresses import A
from tests.reports.protobuf_reader import fields
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

SPEC = "name: t\ncommand: python x.py\ncollectors: [none, torch]\nranges: {lines: true}\n"
CLEAN: list[Any] = [
    ("step", "ProfilerStep#0", 0, 1000, "main"),
    ("op", "aten::mm", 90, 40, "main", {"parent": 0, "depth": 1}),
    ("api", "cudaLaunchKernel", 100, 5, "main", {"parent": 1, "depth": 2}),
    ("kernel", "gemm", 200, 50, "stream 7", {"launch": 2}),
]
MAPPING: list[Any] = [
    ("step", "ProfilerStep#0", 0, 1000, "main"),
    ("range", line_name(A), 90, 40, "main", {"parent": 0, "depth": 1}),
    ("api", "cudaLaunchKernel", 100, 5, "main", {"parent": 1, "depth": 2}),
    ("kernel", "gemm", 200, 90, "stream 7", {"launch": 2}),
]


def names(path: Path) -> list[list[str]]:
    """The names of each stack of a file for speedscope."""
    document = json.loads(path.read_text())
    frames = [one["name"] for one in document["shared"]["frames"]]
    return [[frames[at] for at in stack] for one in document["profiles"] for stack in one["samples"]]


def test_a_trial_has_the_lines_of_the_mapping_beside_it(tmp_path: Path) -> None:
    """The time is that of the trial, not that of the mapping."""
    run, plan = new_run(tmp_path / "runs", SPEC)
    by_collector = {}
    for trial in plan.trials:
        paths = begin(run.trial(trial.id))
        run.log().append("started", trial.id, attempt=1, handle={"backend": "local", "data": {}})
        make_trace(paths.trace, MAPPING if trial.collector == "mapping" else CLEAN).close()
        leave(paths)
        by_collector[trial.collector] = paths.trace
    with Trace(by_collector["torch"]) as trace:
        result = export_stacks(trace, tmp_path / "x.json", "speedscope", name="t")
    assert names(tmp_path / "x.json") == [["model.py:3 forward", "aten::mm", "gemm"]]
    assert (result.gpu_ns, result.resolved_ns, result.without_lines) == (50, 50, None)
    assert (result.stacks, result.frames, result.launches, result.steps, result.of) == (1, 3, 1, 1, STEP)


def test_a_trace_without_a_mapping_has_stacks_without_lines(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", CLEAN) as trace:
        result = export_stacks(trace, tmp_path / "x.json", "speedscope", name="t")
    assert names(result.path) == [["aten::mm", "gemm"]]
    assert (result.gpu_ns, result.resolved_ns) == (50, None)
    assert "`ranges: {lines: true}`" in str(result.without_lines)


def test_a_profile_for_pprof_is_compressed_where_its_name_says_so(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", CLEAN) as trace:
        export_stacks(trace, tmp_path / "x.pb.gz", "pprof", name="t")
        export_stacks(trace, tmp_path / "x.pb", "pprof", name="t")
    plain = (tmp_path / "x.pb").read_bytes()
    assert gzip.decompress((tmp_path / "x.pb.gz").read_bytes()) == plain
    assert len(fields(plain)[2]) == 1


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", CLEAN) as trace:
        (tmp_path / "x").write_text("mine")
        with pytest.raises(UsageError, match="x exists already"):
            export_stacks(trace, tmp_path / "x", "pprof", name="t")
        assert (tmp_path / "x").read_text() == "mine"
        with pytest.raises(UnavailableError, match="y cannot be written"):
            export_stacks(trace, tmp_path / "no/y", "pprof", name="t")
        with pytest.raises(UsageError, match="unknown format of stacks 'svg'"):
            export_stacks(trace, tmp_path / "y", "svg", name="t")  # type: ignore[arg-type]
    for folder, rows, why in (
        ("host", CLEAN[:3], "no kernel, copy or memset that a step launched is recorded"),
        ("none", CLEAN[1:2], "no kernel, copy or memset is recorded"),
    ):
        kept = [(*row[:5], {}) for row in rows]
        with (
            make_trace(tmp_path / folder, kept) as trace,
            pytest.raises(InconclusiveError, match=f"t has no stacks of GPU work: {why}; .*--to perfetto"),
        ):
            export_stacks(trace, tmp_path / "y", "pprof", name="t")
