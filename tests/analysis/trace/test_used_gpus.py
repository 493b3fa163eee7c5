"""Two GPUs, of which another program drives one to its power cap: only the GPU of the trial counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.compare import read_trial
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.used_gpus import UsedGpus, used_devices, used_gpus
from profrun.contract.provenance import GpuStates, Provenance
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.tracekit import make_trace

ZERO = {
    "index": 0,
    "name": "GPU X",
    "uuid": "GPU-606d",
    "clocks_sm": 1500,
    "clocks_max_sm": 2000,
    "throttled_by": ["sw_power_cap"],
}
ONE = ZERO | {"index": 1, "uuid": "GPU-6ea3", "clocks_sm": 1980, "throttled_by": []}
AMD = {"by": "amd-smi", "gpu": 0}
STEPS = [("step", "profrun.step#0", 0, 100, "main"), ("kernel", "k", 10, 50, "stream 7")]
UNKNOWN = {"uuid": None, "host_ordinal": None}


def machine(*rows: dict[str, Any], **environment: str) -> Provenance:
    """Equal states before and after the trial."""
    return Provenance("t", vendor="nvidia", gpus=GpuStates(rows, rows), environment=environment)


@pytest.mark.parametrize(
    ("device", "rows", "environment", "used"),
    [
        ({"uuid": "6ea3", "host_ordinal": 1}, (ZERO, ONE), {}, [1]),
        ({"uuid": "GPU-606D"}, (ZERO, ONE), {}, [0]),
        ({"host_ordinal": 1}, (ZERO, ONE), {}, [1]),
        # numbers are CUDA's, which counts the fastest GPU first where it is not told to count by bus
        ({"host_ordinal": 1}, (ZERO, ONE | {"name": "GPU Y"}), {}, None),
        ({"host_ordinal": 1}, (ZERO, ONE | {"name": "GPU Y"}), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [1]),
        ({"uuid": "6ea3", "host_ordinal": 0}, (ZERO, ONE | {"name": "GPU Y"}), {}, [1]),
        # the trace says nothing: the trial saw no GPUs but these
        (UNKNOWN, (ZERO, ONE), {"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        (UNKNOWN, (ZERO, ONE), {"CUDA_VISIBLE_DEVICES": "GPU-6e"}, [1]),
        (UNKNOWN, (ZERO, ONE, ONE | {"index": 2, "uuid": "GPU-7"}), {"CUDA_VISIBLE_DEVICES": "2,0"}, [0, 2]),
        # nothing tells: all of the machine
        (UNKNOWN, (ZERO, ONE), {}, None),
        (UNKNOWN, (ZERO, ONE), {"CUDA_VISIBLE_DEVICES": "-1"}, None),
        ({"uuid": "a MIG instance"}, (ZERO, ONE), {"CUDA_VISIBLE_DEVICES": "MIG-1"}, None),
        (
            {"uuid": "1a2b", "host_ordinal": 0},
            ({"by": "amd-smi", "gpu": 0}, {"by": "amd-smi", "gpu": 1}),
            {},
            None,
        ),
    ],
)
def test_the_gpus_of_a_trial(
    tmp_path: Path,
    device: dict[str, Any],
    rows: tuple[dict[str, Any], ...],
    environment: dict[str, str],
    used: list[int] | None,
) -> None:
    found = used_gpus(make_trace(tmp_path / "t", STEPS, device=device), machine(*rows, **environment))
    expected = rows if used is None else tuple(rows[place] for place in used)
    assert found == UsedGpus(GpuStates(expected, expected), told=used is not None)


@pytest.mark.parametrize(("host_ordinal", "used"), [(None, ONE), (0, ZERO)])
def test_a_uuid_that_may_be_a_guess_does_not_count_against_the_environment(
    tmp_path: Path, host_ordinal: int | None, used: dict[str, Any]
) -> None:
    """Old traces have the first GPU of the machine as the first that the process saw.

    A program that selects another GPU itself has a number on the host.
    """
    trace = make_trace(tmp_path / "t", STEPS, device={"uuid": "606d", "host_ordinal": host_ordinal})
    assert used_gpus(trace, machine(ZERO, ONE, CUDA_VISIBLE_DEVICES="1")).states.after == (used,)


def test_a_device_without_gpu_work_counts_only_where_there_is_no_gpu_work(tmp_path: Path) -> None:
    seen = {"device": 1, "process": 0, "vendor": "nvidia", "ordinal": 1, "name": "GPU X", "uuid": "606d"}
    for name, rows, numbers in (("worked", STEPS, [0]), ("timed", STEPS[:1], [0, 1])):
        trace = make_trace(tmp_path / name, rows, device={"uuid": "6ea3"}, side={"devices": [seen]})
        assert [device["device"] for device in used_devices(trace)] == numbers
        assert len(used_gpus(trace, machine(ZERO, ONE)).states.after) == len(numbers)


def test_a_trace_without_devices_has_the_gpus_that_the_environment_selects(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        writer.meta.update({"source": "synthetic", "collector": "none", "vendor": "nvidia"})
        writer.finish()
    trace = Trace(tmp_path / "t")
    assert used_gpus(trace, machine(ZERO, ONE, CUDA_VISIBLE_DEVICES="1")).states.before == (ONE,)


def test_another_program_on_another_gpu_throttles_no_trial(tmp_path: Path) -> None:
    """Comparability and the rule ``throttled``: on GPU 1 nothing, on GPU 0 the power cap and its clock."""
    for uuid, reasons, clock in (("6ea3", (), 1980), ("606d", ("sw_power_cap",), 1500)):
        trace = make_trace(tmp_path / uuid, STEPS, device={"uuid": uuid})
        conditions = read_trial(trace, provenance=machine(ZERO, ONE)).conditions
        assert (conditions.throttled, conditions.sm_mhz) == (reasons, clock)
        found = [one for one in diagnose(trace, provenance=machine(ZERO, ONE)) if one.code == "throttled"]
        assert [one.evidence["clock_share"] for one in found] == ([0.75] if reasons else [])
