"""The same work under torch.profiler, nsys and ncu on an H200 (tests/data/h200): they must agree."""

from __future__ import annotations

import bisect
import gzip
import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from profrun.analysis.kernel_names.text import normalise
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.collectors.nsys.exports import issues
from tests.conftest import ROOT, first, shared_data

H200 = ROOT / "tests" / "data" / "h200"
POINTS = [
    ("baseline", "", 17),
    ("baseline", "-blocking", 17),
    ("optimised", "", 20),
    ("optimised", "-blocking", 20),
]
IN_STEPS = (
    "SELECT l.step, s.name, s.dur_ns FROM step_launches l JOIN slices s USING (slice) "
    "WHERE s.kind = 'kernel' AND l.step IS NOT NULL ORDER BY l.step, s.ts_ns"
)


Opener = Callable[[str], Trace]


@pytest.fixture(scope="module")
def open_trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Gives the trace of what a trial left; each is normalised once."""
    with ExitStack() as stack:
        yield cache(lambda trial: stack.enter_context(trace_of(trial, tmp_path_factory.mktemp("trial"))))


def trace_of(trial: str, folder: Path) -> Trace:
    """Normalise what a trial left, unpacked where it is xz; ranks keep their folders."""
    files = []
    for file in sorted((H200 / trial).glob("rank*/*")):
        if file.name == "report.sqlite.xz":
            place = folder / file.parent.name
            place.mkdir()
            (place / "report.sqlite").write_bytes(lzma.decompress(file.read_bytes()))
            for beside in sorted((H200 / trial).glob("rank*/steps.json")):
                other = folder / beside.parent.name
                other.mkdir(exist_ok=True)
                (other / "steps.json").write_bytes(beside.read_bytes())
            files.append(place / "report.sqlite")
        elif file.name in ("pt.trace.json.gz", "report.csv.gz"):
            files.append(file)
    normalize(files, folder / "trace")
    return Trace(folder / "trace")


def raw_kernels_a_step(trial: str) -> list[int]:
    """Kernels launched inside each ProfilerStep, counted from torch's JSON alone, times as Decimal."""
    text = gzip.decompress((H200 / trial / "rank0" / "pt.trace.json.gz").read_bytes())
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X"]
    steps = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in spans
        if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation"
    )
    called: dict[int, Any] = {
        e["args"]["correlation"]: e["ts"] for e in spans if e.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    counts = [0] * len(steps)
    for event in spans:
        if event.get("cat") != "kernel" or event["args"]["correlation"] not in called:
            continue
        when = called[event["args"]["correlation"]]
        at = bisect.bisect_right(steps, (when, Decimal("Infinity"))) - 1
        if at >= 0 and when < steps[at][1]:
            counts[at] += 1
    return counts


@pytest.mark.parametrize(("variant", "blocking", "kernels"), first(1, POINTS))
def test_torch_and_nsys_agree_on_kernels_a_step_and_their_time(
    open_trial: Opener, variant: str, blocking: str, kernels: int
) -> None:
    trial = f"transformer/{variant}-{{}}{blocking}-r1"
    rows = {tool: open_trial(trial.format(tool)).sql(IN_STEPS).rows for tool in ("torch", "nsys")}
    assert raw_kernels_a_step(trial.format("torch")) == [kernels] * 3
    for found in rows.values():
        assert list(Counter(step for step, _, _ in found).values()) == [kernels] * 3
    names = {tool: [normalise(name) for _, name, _ in found] for tool, found in rows.items()}
    assert names["torch"] == names["nsys"]
    means = {tool: mean(dur for _, _, dur in found) for tool, found in rows.items()}
    assert means["torch"] == pytest.approx(means["nsys"], rel=0.05)
    for name in set(names["torch"]):
        each = {
            tool: mean(dur for (_, other, dur) in found if normalise(other) == name)
            for tool, found in rows.items()
        }
        assert each["torch"] == pytest.approx(each["nsys"], rel=0.1, abs=200)  # 200 ns: the timer's grain


@pytest.mark.parametrize("variant", ["baseline", "optimised"])
def test_ncu_metrics_attach_to_the_same_kernels_in_launch_order(open_trial: Opener, variant: str) -> None:
    nsys = open_trial(f"transformer/{variant}-nsys-r1")
    ncu = open_trial(f"transformer/{variant}-ncu-r1")
    launched = "SELECT s.name FROM slices s LEFT JOIN slices a ON a.slice = s.launch WHERE s.kind = 'kernel' "
    timeline = [normalise(name) for (name,) in nsys.sql(launched + "ORDER BY a.ts_ns, s.ts_ns").rows]
    replayed = [normalise(name) for (name,) in ncu.sql(launched + "ORDER BY s.slice").rows]
    assert replayed == timeline
    assert ncu.meta["replayed"] is True
    measured = ncu.sql(
        "SELECT count(*), count(DISTINCT slice), min(value) FROM metrics "
        "WHERE name = 'gpu__time_duration.sum'"
    ).rows
    assert measured[0][:2] == (len(timeline), len(timeline))
    assert measured[0][2] > 0
    grids = "SELECT grid_x, grid_y, grid_z, block_x, block_y, block_z, registers FROM kernels JOIN slices s "
    order = "USING (slice) LEFT JOIN slices a ON a.slice = s.launch ORDER BY a.ts_ns, s.ts_ns, s.slice"
    assert ncu.sql(grids + order).rows == nsys.sql(grids + order).rows


@pytest.mark.parametrize("blocking", ["", "-blocking"])
def test_launch_blocking_is_known_from_the_report(open_trial: Opener, blocking: str) -> None:
    trace = open_trial(f"transformer/optimised-nsys{blocking}-r1")
    assert (trace.meta["launch_blocking"] is True) == bool(blocking)


def test_a_profiled_step_costs_little_where_the_gpu_is_the_limit() -> None:
    """Median active step, from the hook's CUDA events; the small variant is host-bound and costs twice."""
    steps: dict[str, list[float]] = defaultdict(list)
    for file in sorted((H200 / "transformer").glob("optimised-*-r?/rank0/steps.json")):
        trial = file.parent.parent.name
        collector = trial.split("-")[1]
        if "blocking" not in trial and collector != "ncu":
            found = json.loads(file.read_text(encoding="utf-8"))["steps"]
            steps[collector].append(median(s["dur_ns"] for s in found if s["window"] == "active"))
    assert {name: len(values) for name, values in steps.items()} == {"none": 3, "torch": 3, "nsys": 2}
    for collector in ("torch", "nsys"):
        assert median(steps[collector]) == pytest.approx(median(steps["none"]), rel=0.02)


@pytest.mark.parametrize("tool", ["torch", "nsys"])
def test_two_ranks_are_one_trace_with_aligned_clocks(open_trial: Opener, tool: str) -> None:
    trace = open_trial(f"ddp/{tool}")
    rows = trace.sql(
        "SELECT p.rank, c.op, s.ts_ns + s.dur_ns FROM collectives c JOIN slices s USING (slice) "
        "JOIN tracks t USING (track) JOIN processes p USING (process) WHERE s.kind = 'kernel' ORDER BY 1, 3"
    ).rows
    ends = {rank: [end for other, _, end in rows if other == rank] for rank in (0, 1)}
    assert {op for _, op, _ in rows} == {"allreduce"}
    assert len(ends[0]) == len(ends[1]) == 12
    apart = [abs(a - b) for a, b in zip(ends[0], ends[1], strict=True)]
    assert max(apart) < 100_000  # ns; measured: 28 us


def test_ranks_of_one_report_are_those_that_the_hook_saw(open_trial: Opener) -> None:
    trace = open_trial("ddp/nsys")
    told = {
        json.loads(f.read_text())["pid"]: k for k in (0, 1) for f in (H200 / "ddp/nsys").glob(f"rank{k}/st*")
    }
    found = dict(trace.sql("SELECT pid, rank FROM processes WHERE name = 'python'").rows)
    assert found == told
    assert "rank-guessed" not in issues(trace)
    assert trace.sql(
        "SELECT DISTINCT count(*) FROM slices s JOIN tracks USING (track) WHERE s.kind = 'step' "
        "GROUP BY process"
    ).rows == [(3,)]


def test_steps_lie_where_the_hook_saw_them(open_trial: Opener) -> None:
    """The report's clock against the hook's own: unix ns of each step's start; measured 0.2 ms apart."""
    trial = "transformer/baseline-nsys-r1"
    trace = open_trial(trial)
    told = json.loads((H200 / trial / "rank0" / "steps.json").read_text())["steps"]
    seen = {f"profrun.step#{step['step']}": step["ts_ns"] for step in told}
    for name, ts in trace.sql("SELECT name, ts_ns FROM slices WHERE kind = 'step'").rows:
        assert abs(trace.meta["epoch_ns"] + ts - seen[name]) < 1_000_000


def test_modules_nest_in_steps(open_trial: Opener) -> None:
    trace = open_trial("transformer/baseline-nsys-r1")
    rows = trace.sql(
        "SELECT s.name, p.name FROM slices s LEFT JOIN slices p ON p.slice = s.parent "
        "WHERE s.kind IN ('range', 'step') ORDER BY s.ts_ns LIMIT 5"
    ).rows
    root = "nn.Module: root (TransformerLayer)"
    attention = "nn.Module: attention (SelfAttention)"
    assert rows == [
        ("profrun.step#2", None),
        (root, "profrun.step#2"),
        ("Self-Attention", root),
        (attention, "Self-Attention"),
        ("nn.Module: attention.qkv (Linear)", attention),
    ]


@pytest.mark.thorough
def test_a_graphs_kernels_share_its_launch(open_trial: Opener) -> None:
    nodes = open_trial("graph/nsys-node")
    torch = open_trial("graph/torch")
    launches = (
        "SELECT a.name, count(*) FROM slices k JOIN slices a ON a.slice = k.launch WHERE k.kind = 'kernel' "
        "GROUP BY a.slice, a.name"
    )
    assert nodes.sql(launches).rows == torch.sql(launches).rows == [("cudaGraphLaunch", 3)] * 3
    assert nodes.sql("SELECT count(DISTINCT graph_node) FROM kernels").scalar() == 3
    whole = open_trial("graph/nsys-whole")
    assert whole.meta["counts"]["slices"].get("kernel", 0) == 0
    assert whole.sql("SELECT name FROM slices WHERE name LIKE 'CUDA graph%'").rows == [("CUDA graph 1",)] * 3
    assert issues(whole)["graph-opaque"] == 3


@pytest.mark.thorough
@pytest.mark.parametrize("work", first(1, ["train", "mlp", "transformer"]))
def test_recordings_made_without_profrun_agree_too(tmp_path: Path, work: str) -> None:
    """The same step under torch (3 steps) and nsys (10 steps): the same kernels, times within 5 %."""
    found = {}
    for tool, name in (("torch", f"{work}.json.gz"), ("nsys", f"{work}.sqlite")):
        normalize([shared_data(f"h200/{tool}/{name}")], tmp_path / tool)
        with Trace(tmp_path / tool) as trace:
            found[tool] = trace.sql(IN_STEPS).rows
    kernels = {
        tool: {
            step: Counter(normalise(name) for s, name, _ in rows if s == step)
            for step in {s for s, _, _ in rows}
        }
        for tool, rows in found.items()
    }
    assert (len(kernels["torch"]), len(kernels["nsys"])) == (3, 10)
    every = [*kernels["torch"].values(), *kernels["nsys"].values()]
    assert all(step == every[0] for step in every)
    means = {tool: mean(dur for _, _, dur in rows) for tool, rows in found.items()}
    assert means["torch"] == pytest.approx(means["nsys"], rel=0.05)
