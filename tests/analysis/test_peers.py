"""The numbers of peers on the same files: torch_tb_profiler 0.4.3 and TraceLens, run once, kept here.

The plugin's figures come from running its own code (``RunProfileData``) on these files, without the GPU
copies of annotations that it does not know (it would count each step twice). TraceLens's are from its
``gpu_timeline``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from profrun.analysis.trace.gpu import devices
from profrun.analysis.trace.steps import steps
from profrun.analysis.trace.wall_time import WALL_ROLES
from profrun.traces.trace import Trace
from tests.conftest import shared_data

pytestmark = pytest.mark.thorough

# file: utilization, est. SM efficiency, est. achieved occupancy / 100, window in us
PLUGIN = {
    "nvidia/kineto-tb/resnet50_nw0.pt.trace.json.gz": (
        0.5551408517455255, 0.546790410706937, 0.49128004909286396, 1065553),
    "nvidia/kineto-tb/gpu_metrics_input.json": (0.0035794183445190158, 5.499627143922443e-05, None, 13410),
    "nvidia/tracelens/h100_owlv2.json.gz": (
        0.4553002745269326, 0.44921918821529244, 0.57871722452901, 1211182.252),
    "h200/torch/transformer.json.gz": (
        0.11058340241318965, 0.10995368130680667, 0.4141026127960038, 3975.952),
    "nvidia/kineto-tb/resnet50_autograd_api_nw0.pt.trace.json.gz": (
        0.18218781513081114, None, None, 5295420),
    "nvidia/hta/trace_diff_control.json.gz": (
        0.7938091583525199, 0.5920521304123595, 0.3246431951917049, 465171),
}  # fmt: skip
FLOATS = 5e-6
"""The plugin keeps newer traces' times as float us and libkineto rounds blocks per SM to six places."""


@pytest.mark.parametrize("name", PLUGIN)
def test_the_tensorboard_plugins_three_numbers(name: str, real: Callable[..., Trace]) -> None:
    (row,) = devices(real(name))
    utilization, efficiency, occupancy, window = PLUGIN[name]
    assert row.window_ns == int(Decimal(str(window)) * 1000)
    for mine, theirs in (
        (row.utilization, utilization),
        (row.est_sm_efficiency, efficiency),
        (row.est_achieved_occupancy, occupancy),
    ):
        assert mine == (None if theirs is None else pytest.approx(theirs, rel=FLOATS))


def test_the_tensorboard_plugins_step_breakdown(real: Callable[..., Trace]) -> None:
    rows = steps(real("nvidia/kineto-tb/resnet50_nw0.pt.trace.json.gz"))
    means = [sum(row.wall_ns[role] for row in rows) / len(rows) / 1000 for role in WALL_ROLES]
    theirs = [98588.667, 1915.333, 89.0, 0.0, 2907.5, 59261.833, 13674.167, 1155.667]
    assert means == pytest.approx(theirs, abs=0.001)
    assert [row.span_ns for row in rows[:3]] == [187948000, 175153000, 179733000]


@pytest.mark.parametrize(
    ("name", "busy_us", "span_us"),
    [
        ("nvidia/tracelens/h100_owlv2.json.gz", 566759, 1078288),
        (
            "amd/kineto-rocm-tracelens/mi300/google_owlv2-large-patch14-ensemble__1016001.json.gz",
            331816,
            908338,
        ),
    ],
)
def test_tracelens_busy_time(name: str, busy_us: int, span_us: int, real: Callable[..., Trace]) -> None:
    (row,) = devices(real(name))
    assert row.busy_ns // 1000 == busy_us
    assert row.span_ns // 1000 == span_us
    assert row.idle_ns == row.span_ns - row.busy_ns


def test_busy_time_again_with_decimals_from_the_raw_file(real: Callable[..., Trace]) -> None:
    import gzip
    import json

    raw = json.loads(
        gzip.decompress(shared_data("h200/torch/transformer_optim.json.gz").read_bytes()), parse_float=Decimal
    )
    rows = sorted(
        (Decimal(event["ts"]), Decimal(event["ts"]) + Decimal(event["dur"]))
        for event in raw["traceEvents"]
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    busy, reach = Decimal(0), rows[0][0]
    for start, end in rows:
        busy += max(Decimal(0), end - max(start, reach))
        reach = max(reach, end)
    (row,) = devices(real("h200/torch/transformer_optim.json.gz"))
    assert row.busy_ns == busy * 1000
