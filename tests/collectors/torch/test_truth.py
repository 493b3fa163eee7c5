"""The trace allows torch's own key_averages: calls, self CPU and self device time, recorded on an H200."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.conftest import first, shared_data

# torch's table: a thread's ops, annotations and API calls; self CPU = duration less its direct children;
# device time belongs to the op (or API call) round the launch; an op that is the only child of one of the
# same name is counted once (EventList._remove_dup_nodes); ProfilerStep#n is one name.
TABLE = """
WITH host AS (SELECT s.* FROM slices s JOIN tracks t USING (track)
              WHERE t.kind = 'thread' AND s.kind IN ('op', 'range', 'step', 'api')),
kids AS (SELECT parent AS slice, sum(dur_ns) AS ns, count(*) AS n FROM host
         WHERE parent IS NOT NULL GROUP BY ALL),
device AS (SELECT coalesce(p.slice, h.slice) AS slice, sum(g.dur_ns) AS ns
           FROM slices g JOIN slices h ON g.launch = h.slice LEFT JOIN slices p ON h.parent = p.slice
           WHERE g.kind IN ('kernel', 'memcpy', 'memset') GROUP BY ALL),
twin AS (SELECT h.slice FROM host h JOIN host p ON h.parent = p.slice JOIN kids k ON k.slice = p.slice
         WHERE h.name = p.name AND k.n = 1)
SELECT regexp_replace(name, '^ProfilerStep#[0-9]+$', 'ProfilerStep*') AS name,
  count(*) FILTER (twin.slice IS NULL) AS calls,
  sum(dur_ns - coalesce(kids.ns, 0)) AS self_cpu_ns, sum(coalesce(device.ns, 0)) AS self_device_ns
FROM host LEFT JOIN kids USING (slice) LEFT JOIN device USING (slice) LEFT JOIN twin USING (slice)
GROUP BY ALL
"""
TRACES = (
    "matmul_add_64",
    "matmul_add_4096_compile",
    "mlp_blocking",
    "rep1_mlp_compile",
    "transformer_optim",
    "train",
    "train_blocking",
)


def torch_table(name: str) -> dict[str, tuple[int, int, int]]:
    """name -> (calls, self CPU ns, self device ns) as torch printed; rows of the GPU side left out."""
    for line in shared_data("h200/truth.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["trace"] == name:
            return {
                entry["name"]: (entry["calls"], _ns(entry["self_cpu_us"]), _ns(entry["self_cuda_us"]))
                for entry in row["table"]
                if entry["self_cpu_us"] or entry["cpu_us"] or not entry["self_cuda_us"]
            }
    raise AssertionError(name)


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


@pytest.mark.parametrize("name", first(3, TRACES))
def test_calls_and_self_times_equal_torchs_own_table(name: str, tmp_path: Path) -> None:
    normalize([shared_data(f"h200/torch/{name}.json.gz")], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        ours = {row[0]: tuple(int(value) for value in row[1:]) for row in trace.sql(TABLE).rows}
    for op, expected in torch_table(name).items():
        assert ours[op] == expected, op
