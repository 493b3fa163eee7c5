"""The summary as a whole: its JSON, what it withholds, and what it holds for odd traces."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.summary import summarize
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, step


def codes(trace: Trace) -> dict[str, str]:
    return {one.code: one.severity for one in data_quality(trace)}


def test_the_keys_that_others_rely_on(real: Callable[..., Trace]) -> None:
    document = json.loads(json.dumps(summarize(real("h200/torch/mlp.json.gz")).to_json(), allow_nan=False))
    keys = {
        "devices": {
            "device",
            "name",
            "busy_ns",
            "utilization",
            "est_sm_efficiency",
            "est_achieved_occupancy",
        },
        "steps": {"step", "dur_ns", "kernel_ns", "memcpy_ns", "memset_ns", "comm_ns", "idle_ns"},
        "kernels": {"name", "category", "calls", "total_ns", "mean_ns", "p50_ns", "p99_ns"},
        "ops": {"name", "calls", "self_cpu_ns", "cpu_ns", "self_device_ns", "device_ns", "flops"},
    }
    assert isinstance(document["span_ns"], int)
    for table, wanted in keys.items():
        assert wanted <= set(document[table][0])
    for key, value in document["devices"][0].items():
        if key in ("utilization", "est_sm_efficiency", "est_achieved_occupancy", "matrix_core_share"):
            assert value is not None
            assert document["devices"][0][f"{key}_of"]
    assert document["steps"][0]["idle_of"] == "dur_ns"


def test_top_cuts_tables_and_says_so(real: Callable[..., Trace]) -> None:
    whole = summarize(real("h200/torch/train.json.gz"))
    short = summarize(real("h200/torch/train.json.gz"), top=5)
    assert len(short.ops) == 5
    assert short.omitted["ops"] == len(whole.ops) - 5
    assert short.ops == whole.ops[:5]
    assert len(short.steps) == len(whole.steps)


def test_hidden_graph_kernels_withhold_the_gpus_numbers() -> None:
    trace = memory_trace(
        [step(0, 0, 99), ("api", "cudaGraphLaunch", 5, 5, "main"), ("kernel", "k", 1, 2, "stream 7")]
    )
    found = summarize(trace)
    assert codes(trace)["graph_kernels_hidden"] == "critical"
    assert found.devices[0].utilization is None
    assert found.kernels == []
    assert "devices.utilization" in found.withheld
    assert found.quality[0].severity == "critical"


def test_replayed_kernels_keep_their_list_and_lose_the_timeline(real: Callable[..., Trace]) -> None:
    found = summarize(real("h200/ncu/mlp.ncu-rep"))
    assert found.quality[0].code == "replayed"
    assert found.devices[0].utilization is None
    assert found.devices[0].busy_ns is None
    assert found.idle == []
    assert len(found.kernels) > 0
    assert "replayed_durations" in {one.code for one in found.quality}


@pytest.mark.parametrize(
    "rows", [[], [step(0, 0, 0)], [("kernel", "k", 0, 0, "stream 7")], [("sync", "s", 1, 2, "main")]]
)
def test_odd_traces_have_a_summary(rows: list[tuple[object, ...]]) -> None:
    json.dumps(summarize(memory_trace(rows)).to_json(), allow_nan=False)


def test_a_cpu_only_recording(real: Callable[..., Trace]) -> None:
    found = summarize(real("nvidia/hta/cpu_only_rank-34.pt.trace.json.gz"))
    assert found.devices == []
    assert len(found.steps) == 5
    assert found.ops[0].self_device_ns == 0
