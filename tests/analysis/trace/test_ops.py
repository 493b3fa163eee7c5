"""The op table against torch's own key_averages, to the microsecond it prints (0.001 us), for every row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace.ops import OpRow, operators
from profrun.analysis.trace.queue import launch_stats
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, record_here
from tests.conftest import first, shared_data

LAUNCH = "cudaLaunchKernel"


RECORDINGS = (
    "train", "transformer", "mlp_compile", "mlp_blocking", "matmul_add_64",
    "matmul_add_4096", "matmul_add_4096_compile", "mlp", "transformer_blocking", "transformer_optim",
    "train_blocking", "rep1_transformer",
)  # fmt: skip
CUT = 120  # the truth's names are cut


def truth(name: str) -> list[dict[str, Any]]:
    for line in shared_data("h200/truth.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["trace"] == name:
            return list(row["table"])
    raise AssertionError(f"no truth for {name}")


def compare(rows: list[OpRow], table: list[dict[str, Any]]) -> int:
    """Assert equality of every host row; returns how many were compared."""
    mine = {row.name[:CUT]: row for row in rows}
    host = [row for row in table if row["self_cpu_us"] or row["cpu_us"]]
    for want in host:
        row = mine.pop(want["name"])
        found = (row.calls, row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns, row.flops or 0)
        times = [want[key] * 1000 for key in ("self_cpu_us", "cpu_us", "self_cuda_us", "cuda_us")]
        assert found[0] == want["calls"], want["name"]
        assert found[5] == want["flops"], want["name"]
        for ns, us in zip(found[1:5], times, strict=True):
            assert abs(ns - us) < 1, (want["name"], ns, us)
    assert not mine, f"rows torch does not have: {list(mine)}"
    return len(host)


@pytest.mark.parametrize("name", first(5, RECORDINGS))
def test_equal_to_key_averages_of_the_same_profile(name: str, real: Callable[..., Trace]) -> None:
    trace = real(f"h200/torch/{name}.json.gz")
    assert compare(operators(trace), truth(name)) >= 8


@pytest.mark.parametrize("name", ["mlp_compile", "train"])
def test_gpu_rows_are_torchs_kernels_and_annotations_are_not_counted(
    name: str, real: Callable[..., Trace]
) -> None:
    trace = real(f"h200/torch/{name}.json.gz")
    rows = trace.sql(
        "SELECT name, count(*) AS calls, sum(dur_ns) AS ns FROM slices "
        "WHERE kind IN ('kernel', 'memcpy', 'memset') GROUP BY name"
    ).dicts()
    mine: dict[str, list[int]] = {}
    for row in rows:
        both = mine.setdefault(row["name"][:CUT], [0, 0])
        both[0] += row["calls"]
        both[1] += int(row["ns"])
    theirs: dict[str, list[float]] = {}
    annotations = {row["name"] for row in truth(name) if row["cpu_us"]}
    for row in truth(name):
        if not row["cpu_us"] and row["self_cuda_us"] and row["name"] not in annotations:
            both_us = theirs.setdefault(row["name"], [0, 0.0])
            both_us[0] += row["calls"]
            both_us[1] += row["self_cuda_us"] * 1000
    for key, (calls, ns) in theirs.items():
        assert mine[key][0] == calls
        assert abs(mine[key][1] - ns) < 1
    if (
        name == "train"
    ):  # an Inductor kernel and its op share their name, so compiled files miss that row here
        assert theirs.keys() == mine.keys()


RECORD = """
import json, sys
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
batch = torch.randn(16, 64)
with profile(
    activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
    record_shapes=True,
    with_flops=True, profile_memory=True,
) as recording:
    for _ in range(3):
        with record_function("forward"):
            loss = model(batch).to(torch.float64).to(torch.float32).sum()
        loss.backward()
        recording.step()
recording.export_chrome_trace(sys.argv[1] + "/cpu.json")
rows = [
    {"name": row.key[:120], "calls": row.count, "self_cpu_us": row.self_cpu_time_total, "self_cuda_us": 0.0,
     "cpu_us": row.cpu_time_total, "cuda_us": 0.0, "flops": row.flops,
     "cpu_memory": row.cpu_memory_usage}
    for row in recording.key_averages()
]
open(sys.argv[1] + "/truth.json", "w").write(json.dumps(rows))
"""


@pytest.mark.thorough
def test_a_profile_recorded_here_on_the_cpu(tmp_path: Path) -> None:
    table = [row for row in record_here(RECORD, tmp_path) if row["name"] != "[memory]"]
    rows = operators(Trace(tmp_path / "trace"))
    assert compare(rows, table) > 20
    memory = {row["name"]: row["cpu_memory"] for row in table}
    assert {row.name: row.cpu_memory_bytes for row in rows} == memory
    assert any(memory.values())


def test_torchs_rules_of_the_op_table() -> None:
    trace = memory_trace(
        [
            ("step", "ProfilerStep#1", 0, 100, "main"), ("step", "ProfilerStep#2", 100, 100, "main"),
            # the only child, same name: one call
            ("op", "aten::to", 10, 50, "main"), ("op", "aten::to", 12, 40, "main"),
            ("op", "aten::is_leaf", 70, 4, "main"),  # no row; its time stays with the step
            ("op", "aten::add", 110, 20, "main"), ("api", LAUNCH, 115, 5, "main"),
            ("kernel", "k", 150, 8, "stream 7", {"launch": 6}),
            ("api", "cudaStreamIsCapturing", 180, 2, "main"),
        ]
    )  # fmt: skip
    rows = {row.name: (row.kind, row.calls, row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns)
            for row in operators(trace)}  # fmt: skip
    assert rows == {
        "ProfilerStep*": ("step", 2, 100 - 50 + 100 - 20 - 2, 200, 0, 8),
        "aten::to": ("op", 1, 50, 50, 0, 0),
        "aten::add": ("op", 1, 15, 20, 8, 8),
        LAUNCH: ("api", 1, 5, 5, 0, 0),
        "cudaStreamIsCapturing": ("api", 1, 2, 2, 0, 0),
    }


def test_an_op_named_as_the_launch_owns_its_kernel() -> None:
    """Recordings without runtime calls: the tool names the op, and nobody knows when inside it."""
    rows = [
        ("op", "aten::linear", 0, 50, "main"), ("op", "aten::mm", 10, 20, "main"),
        ("kernel", "gemm", 100, 40, "stream 7", {"launch": 1}),
    ]  # fmt: skip
    trace = memory_trace(rows)
    found = {row.name: (row.self_device_ns, row.device_ns) for row in operators(trace)}
    assert found == {"aten::linear": (0, 40), "aten::mm": (40, 40)}
    query = "SELECT name, self_device_ns, device_ns FROM op_summary"
    assert {name: (own, total) for name, own, total in trace.sql(query).rows} == found
    stats = launch_stats(trace)
    assert (stats.latency, stats.unplaced) == (None, 1)
