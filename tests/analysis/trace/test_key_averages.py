"""torch's own table, field by field: against what torch recorded on an H200, and against torch here."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace.key_averages import key_averages, sorted_as
from profrun.collectors.normalize import normalize
from profrun.errors import UsageError
from profrun.reports.torch_text import torch_text
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, record_here
from tests.conftest import ROOT, first, unpack

H200 = ROOT / "tests/data/h200/transformer"
RUNS = ("baseline-torch-r1", "optimised-torch-r1", "baseline-torch-blocking-r1", "optimised-torch-r2")
EXTENDED = 2
"""ns by which the file has each annotation on the GPU longer than torch's table."""


@pytest.mark.parametrize("run", first(1, RUNS))
def test_every_row_and_field_is_torchs(run: str, tmp_path: Path) -> None:
    folder = H200 / run / "rank0"
    document = json.loads(gzip.decompress((folder / "key_averages.json.gz").read_bytes()))
    compare(folder / "pt.trace.json.gz", document, tmp_path)


@pytest.mark.parametrize("program", first(1, ("compiled", "attention", "trainer", "gan", "small_kernels")))
def test_every_row_and_field_of_whole_programs_is_torchs(program: str, tmp_path: Path) -> None:
    """The profiler's own overhead is a row, too; the GPU work that torch counts for it is not in the file."""
    with tarfile.open(ROOT / f"tests/data/h200/programs/{program}.tar.xz") as packed:
        table = next(one for one in packed.getmembers() if one.name.endswith(".key_averages.json"))
        recorded = packed.getmember(table.name.removesuffix(".key_averages.json"))
        unpack(packed, tmp_path, [table, recorded])
    compare(tmp_path / recorded.name, json.loads((tmp_path / table.name).read_text()), tmp_path)


def compare(recorded: Path, document: dict[str, Any], tmp_path: Path) -> None:
    normalize([recorded], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        table = key_averages(trace)
    mine = {(row.name, row.on_device, row.annotation): row for row in table.rows}
    theirs = {
        (row["key"], row["device_type"] == "CUDA", row["user_annotation"]): row for row in document["rows"]
    }
    assert set(mine) == set(theirs)
    for key, want in theirs.items():
        row = mine[key]
        assert row.calls == want["count"], key
        pairs = [
            (row.self_cpu_ns, want["self_cpu"]), (row.cpu_ns, want["cpu"]),
            (row.self_device_ns, want["self_device"]), (row.device_ns, want["device"]),
        ]  # fmt: skip
        slack = 1 + (EXTENDED * row.calls if row.on_device and row.annotation else 0)
        for value, us in pairs:
            assert value is None or abs(value - us * 1000) <= slack, key


RECORD = """
import json, sys, torch
from torch.profiler import ProfilerActivity, profile, record_function
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
keep = []
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as recording:
    for rows in (8, 8, 16):
        with record_function("forward"):
            out = model(torch.randn(rows, 64))
        torch.cat([out, out]).sum().backward()
        keep.append(out)
        recording.step()
recording.export_chrome_trace(sys.argv[1] + "/cpu.json")
tables = {}
for name, shapes in (("plain", False), ("shapes", True)):
    averages = recording.key_averages(group_by_input_shape=shapes)
    tables[name] = {
        "rows": [
            [row.key, str(row.input_shapes) if shapes else "", row.count, row.self_cpu_time_total,
             row.cpu_time_total, row.self_cpu_memory_usage, row.cpu_memory_usage]
            for row in averages
        ],
        "text": averages.table(sort_by="self_cpu_time_total", row_limit=-1),
    }
open(sys.argv[1] + "/truth.json", "w").write(json.dumps(tables))
"""


@pytest.mark.thorough
def test_memory_and_shapes_are_those_of_torch_here(tmp_path: Path) -> None:
    truth = record_here(RECORD, tmp_path)
    with Trace(tmp_path / "trace") as trace:
        for name, by_shapes in (("plain", False), ("shapes", True)):
            table = sorted_as(key_averages(trace, by_shapes=by_shapes), "self_cpu_time_total")
            assert table.memory
            mine = {
                (row.name, row.shapes): [
                    row.calls,
                    row.self_cpu_ns,
                    row.cpu_ns,
                    row.self_cpu_bytes,
                    row.cpu_bytes,
                ]
                for row in table.rows
            }
            theirs = {
                (key, shapes): [count, self_us * 1000, us * 1000, self_bytes, size]
                for key, shapes, count, self_us, us, self_bytes, size in truth[name]["rows"]
            }
            assert mine.keys() == theirs.keys()
            for key, want in theirs.items():
                assert mine[key] == pytest.approx(want, abs=1), key
            _same_text(torch_text(table, None), truth[name]["text"])


def _same_text(mine: str, theirs: str) -> None:
    """Header, numbers and totals are as torch writes them, but for the widths of columns.

    torch adds floating point microseconds up, so its last digit may be another.
    """

    def rows(text: str) -> list[tuple[list[str], list[float]]]:
        words = sorted(line.split() for line in text.splitlines() if line.strip("- "))
        numbers = [[float(word) for word in re.findall(r"\d+\.\d+", " ".join(line))] for line in words]
        plain = [[re.sub(r"\d+\.\d+", "N", word) for word in line] for line in words]
        return sorted(zip(plain, numbers, strict=True))

    for own, other in zip(rows(mine), rows(theirs), strict=True):
        assert own[0] == other[0]
        assert own[1] == pytest.approx(other[1], abs=0.0011)


def test_torchs_names_sort_and_others_are_refused() -> None:
    rows: list[Any] = [
        ("op", "aten::a", 0, 50, "main"), ("op", "aten::b", 60, 10, "main"),
        ("op", "aten::b", 80, 30, "main"),
    ]  # fmt: skip
    table = key_averages(memory_trace(rows))

    def order(sort: str | None) -> list[str]:
        return [row.name for row in sorted_as(table, sort).rows]

    assert order(None) == order("cpu_time_total") == order("cpu_time") == ["aten::a", "aten::b"]
    assert order("count") == ["aten::b", "aten::a"]
    with pytest.raises(UsageError, match="no column 'speed'; it has self_cpu_time_total"):
        sorted_as(table, "speed")


def test_allocations_outside_of_everything_are_torchs_row_memory() -> None:
    counters = [
        {"track": 0, "ts_ns": ts, "name": "memory change", "value": value, "unit": "byte"}
        for ts, value in ((5, 64.0), (50, 1024.0), (200, -64.0))
    ]
    rows = [("op", "aten::empty", 40, 20, "main"), ("op", "aten::free", 199, 2, "main")]
    found = {row.name: row for row in key_averages(memory_trace(rows, side={"counters": counters})).rows}
    assert (found["[memory]"].calls, found["[memory]"].cpu_bytes) == (1, 64)
    assert (found["aten::empty"].self_cpu_bytes, found["aten::free"].cpu_bytes) == (1024, -64)
