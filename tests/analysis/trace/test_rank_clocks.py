"""Clocks of ranks from their collectives: which count, and how they are matched."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.rank_clocks import members, mutual, rank_clocks, trace_rank_clocks
from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import normalize
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsFile
from profrun.reports.terminal import summary_text
from profrun.traces.labels import labels
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace
from tests.conftest import SHARED, missing


def collectives(
    *spans: tuple[int, int], rank: int, op: str = "allreduce", sizes: tuple[int, ...] = ()
) -> list[Row]:
    """Collectives of a rank as (start, end) in us."""
    rows: list[Row] = []
    for place, (start, end) in enumerate(spans):
        columns = {
            "collectives.op": op, "collectives.group": "0", "collectives.group_size": 2,
            "collectives.bytes": sizes[place] if sizes else 4096,
        }  # fmt: skip
        name = "ncclDevKernel_Generic"
        rows.append(("kernel", name, start * 1000, (end - start) * 1000, f"r{rank}:stream 9", columns))
    return rows


def bounds(rows: list[Row], **meta: object) -> tuple[int | None, int | None]:
    found = trace_rank_clocks(memory_trace(rows, ranks=2, meta=meta))
    assert found is not None
    return found.clocks[1].low_ns, found.clocks[1].high_ns


def test_bounds_by_hand() -> None:
    """Rank 1 ends 30 us after rank 0 began, and began 5 us before rank 0 ended; tolerance 2 us, twice."""
    rows = [*collectives((0, 20), rank=0), *collectives((15, 30), rank=1)]
    assert bounds(rows) == (-34_000, 9_000)


@pytest.mark.parametrize("op", ["broadcast", "reduce", "send", "recv", "alltoallv", "unknown"])
def test_collectives_in_which_a_rank_need_not_wait_for_all_say_nothing(op: str) -> None:
    rows = [*collectives((0, 20), rank=0, op=op), *collectives((15, 30), rank=1, op=op)]
    assert bounds(rows) == (None, None)
    assert not mutual(op)


@pytest.mark.parametrize("op", ["allreduce", "_allgather_base", "reduce_scatter", "all_to_all", "barrier"])
def test_collectives_in_which_every_rank_waits_for_all(op: str) -> None:
    assert mutual(op)


def test_collectives_of_different_sizes_were_matched_wrongly() -> None:
    """The first collective of rank 1 is the second of rank 0."""
    rows = [
        *collectives((0, 20), (100, 120), rank=0, sizes=(64, 128)),
        *collectives((115, 130), (200, 220), rank=1, sizes=(128, 64)),
    ]
    assert bounds(rows) == (None, None)


def test_another_number_of_collectives_leaves_open_which_belong_together() -> None:
    rows = [*collectives((0, 20), (100, 120), rank=0), *collectives((115, 130), rank=1)]
    assert bounds(rows) == (None, None)


def test_files_of_two_hosts_are_compared_on_the_axis_of_the_epoch() -> None:
    """The clock of the second host is 7 s ahead."""
    one = memory_trace(collectives((0, 20), rank=0), meta={"epoch_ns": 10**18})
    rows = [(*row[:4], "stream 9", row[5]) for row in collectives((15, 30), rank=0)]
    other = memory_trace(rows, meta={"epoch_ns": 10**18 + 7 * 10**9})
    found = rank_clocks(members([one, other]))
    low, high = found.clocks[1].low_ns, found.clocks[1].high_ns
    assert (low, high) == (-7_000_034_000, -7_000_000_000 + 9_000)
    assert not found.comparable


_USED = "SELECT DISTINCT device FROM tracks WHERE kind = 'stream'"


def two_nodes(folder: Path) -> Path:
    """The trace of a trial: torch.profiler's real files of two ranks, with the hook's note beside each. The
    second is from a node n2 whose clock is a second ahead."""
    files = []
    for rank, ahead_ns in ((0, 0), (1, 10**9)):
        name = f"h200/ddp/ddp_rank{rank}.json.gz"
        if not (SHARED / "data" / name).exists():
            missing(name)
        text = gzip.decompress((SHARED / "data" / name).read_bytes()).decode()
        (base,) = re.findall(r'"baseTimeNanoseconds": (\d+)', text)
        here = folder / f"rank{rank}"
        here.mkdir()
        (here / "x.pt.trace.json").write_text(text.replace(base, str(int(base) + ahead_ns)))
        note = StepsFile(rank, 1, "explicit", "wall", Anchor(1, 2, 3), host=f"n{rank + 1}")
        (here / "steps.json").write_text(json.dumps(to_json(note)))
        files.append(here / "x.pt.trace.json")
    normalize(files, folder / "trace", steps=[file.parent / "steps.json" for file in files])
    return folder / "trace"


def test_torch_traces_of_two_nodes_say_which_node(tmp_path: Path) -> None:
    """GPUs are named by their node, the clock that is ahead is that of n2, and the late rank runs on n2."""
    with Trace(two_nodes(tmp_path)) as trace:
        assert trace.sql("SELECT rank, host FROM processes ORDER BY rank").rows == [(0, "n1"), (1, "n2")]
        used = {labels(trace).gpus[device] for (device,) in trace.sql(_USED).rows}
        assert used == {"n1, GPU 0 (rank 0)", "n2, GPU 1 (rank 1)"}
        found = trace_rank_clocks(trace)
        assert found is not None
        assert [clock.host for clock in found.clocks] == ["n1", "n2"]
        assert not found.comparable
        assert round(found.clocks[1].offset_ns / 1e9, 3) == -1.0
        said = {one.code: one.what for one in data_quality(trace)}
        assert said["rank_clock_offset"].startswith("the clock of rank 1 on n2 is not that of rank 0 on n1: ")
        (late,) = [one for one in diagnose(trace) if one.code == "straggler"]
        assert "for rank 1 on n2" in late.what
        shown = summary_text(summarize(trace))
        assert re.search(r"rank +host +compute", shown)
        assert re.search(r"^ *1 +n2 ", shown, re.MULTILINE)


def test_two_gpus_of_one_host_have_one_clock(real: Callable[..., Trace]) -> None:
    pair = [real("h200/ddp/ddp_rank0.json.gz"), real("h200/ddp/ddp_rank1.json.gz")]
    found = rank_clocks(members(pair))
    assert found.consistent
    assert found.clocks[1].agrees
    assert found.clocks[1].collectives == 15
