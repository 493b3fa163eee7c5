"""Real recordings of an H200 through the whole reader.

Counts and times are held against the raw JSON, against Proton's own viewer, against the tree of the same
kernels, and against torch.profiler of the same program.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
import re
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest

from profrun.analysis.kernel_names.text import normalise
from profrun.analysis.rules.diagnose import diagnose
from profrun.collectors.normalize import normalize
from profrun.collectors.proton.demangle import demangle
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsDevice, StepsFile
from profrun.errors import InputError
from profrun.traces.trace import Trace
from tests.collectors.proton.files import DATA, issues, raw_kernels, raw_nodes, read
from tests.conftest import THOROUGH

TRACES = sorted(path.name for path in DATA.glob("*.chrome_trace") if not path.name.startswith("intra"))
TREES = sorted(
    path.name for path in DATA.glob("*.hatchet") if path.name.split("_")[0] not in ("empty", "intra")
)
VIEWED = sorted(path.name.removesuffix(".viewer.txt") for path in DATA.glob("*.viewer.txt"))
KERNELS = (
    "SELECT t.native_id, s.ts_ns, s.dur_ns, s.name FROM slices s JOIN tracks t USING (track) "
    "WHERE s.kind = 'kernel'"
)
PER_NAME = "SELECT name, count(*), sum(dur_ns)::BIGINT FROM slices WHERE kind = 'kernel' GROUP BY name"


def clear(name: str) -> str:
    found = demangle(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", TRACES)
def test_each_kernel_of_a_trace_has_its_stream_and_its_exact_times(tmp_path: Path, name: str) -> None:
    trace = read(tmp_path, name)
    raw = raw_kernels(name)
    assert Counter(trace.sql(KERNELS).rows) == Counter(
        (kernel.stream, kernel.ts, kernel.dur, clear(kernel.name)) for kernel in raw
    )
    assert min(kernel.ts for kernel in raw) == 0
    assert trace.meta["source"] == "proton-trace"
    assert (trace.meta["collector"], trace.meta["vendor"]) == ("proton", "nvidia")
    assert (trace.meta["epoch_ns"], trace.meta["clock"], trace.meta["replayed"]) == (None, "session", False)


@pytest.mark.parametrize("name", TRACES)
def test_each_kernel_lies_in_a_range_of_every_name_of_its_path(tmp_path: Path, name: str) -> None:
    trace = read(tmp_path, name)
    ranges = trace.sql(
        "SELECT t.native_id, s.ts_ns, s.ts_ns + s.dur_ns, s.name, s.depth, s.launch FROM slices s "
        "JOIN tracks t USING (track) WHERE s.kind = 'range' AND t.device IS NOT NULL"
    ).rows
    assert {(depth, launch) for *_, depth, launch in ranges} <= {(None, None)}
    for kernel in raw_kernels(name):
        around = Counter(
            scope
            for stream, start, end, scope, *_ in ranges
            if stream == kernel.stream and start <= kernel.ts and kernel.ts + kernel.dur <= end
        )
        assert around == Counter(clear(scope) for scope in kernel.path)
    if ranges:
        assert issues(trace)["scope_times_from_kernels"] == len(ranges)


@pytest.mark.parametrize("name", TREES)
def test_each_node_of_a_tree_keeps_its_calls_and_its_time(tmp_path: Path, name: str) -> None:
    trace = read(tmp_path, name)
    calls, times = Counter[str](), Counter[str]()
    for node in raw_nodes(name):
        if "count" in node.metrics:
            calls[clear(node.path[-1])] += int(node.metrics["count"])
            times[clear(node.path[-1])] += int(node.metrics["time (ns)"])
    assert {row[0]: row[1:] for row in trace.sql(PER_NAME).rows} == {
        key: (calls[key], times[key]) for key in calls
    }
    assert trace.meta["source"] == "proton-tree"
    assert trace.meta["replayed"] is True, "a tree has no timeline"
    assert issues(trace)["no_launch_order"] == sum(calls.values())
    device = trace.sql("SELECT vendor, ordinal, name, arch, sm_count FROM devices").rows
    assert device == [("nvidia", 0, "unknown", "sm_90", 132)]


def test_calls_of_a_tree_share_its_time_evenly_and_lie_end_to_end(tmp_path: Path) -> None:
    trace = read(tmp_path, "tree_shadow.hatchet")
    rows = trace.sql("SELECT ts_ns, dur_ns FROM slices WHERE kind = 'kernel' ORDER BY ts_ns").rows
    assert rows[0][0] == 0
    assert all(start + dur == after for (start, dur), (after, _) in pairwise(rows))
    spread = (
        "SELECT max(dur_ns) - min(dur_ns) FROM slices WHERE kind = 'kernel' AND name = 'scaled_relu_back'"
    )
    assert trace.sql(spread).scalar() <= 1
    assert issues(trace)["durations_averaged"] == len(rows)


@pytest.mark.parametrize("name", ["both", "both_python", "thread"])
def test_tree_and_trace_of_the_same_kernels_agree_to_the_nanosecond(tmp_path: Path, name: str) -> None:
    trace = read(tmp_path, f"{name}_trace.chrome_trace")
    tree = read(tmp_path, f"{name}_tree.hatchet")
    assert sorted(trace.sql(PER_NAME).rows) == sorted(tree.sql(PER_NAME).rows)


@pytest.mark.parametrize("name", VIEWED)
def test_every_line_of_protons_own_viewer_is_found(tmp_path: Path, name: str) -> None:
    """The viewer prints, for each node, time and calls with everything below it."""
    lines = [
        re.fullmatch(r"[│├└─ ]*(\d+)\.000 (\d+)\.000 (.+)", line)
        for line in (DATA / f"{name}.viewer.txt").read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.endswith(" ROOT") and "nan nan" not in line  # nan: without a kernel
    ]
    seen = Counter((clear(found[3]), int(found[2]), int(found[1])) for found in lines if found)
    assert seen.total() == len(lines)
    trace = read(tmp_path, f"{name}.hatchet")
    ranges = trace.sql(
        "SELECT r.name, count(k.slice), coalesce(sum(k.dur_ns), 0)::BIGINT, r.dur_ns FROM slices r "
        "LEFT JOIN slices k ON k.kind = 'kernel' AND k.dur_ns > 0 AND k.ts_ns >= r.ts_ns "
        "AND k.ts_ns < r.ts_ns + r.dur_ns WHERE r.kind = 'range' GROUP BY r.slice, r.name, r.dur_ns"
    ).rows
    assert all(time == dur for *_, time, dur in ranges)
    nodes = Counter((name, calls, time) for name, calls, time, _ in ranges if calls)
    nodes += Counter(
        (clear(node.path[-1]), node.metrics["count"], node.metrics["time (ns)"])
        for node in raw_nodes(f"{name}.hatchet")
        if "count" in node.metrics
    )
    assert seen == nodes


def test_metrics_of_scopes_and_of_the_triton_hook_are_kept(tmp_path: Path) -> None:
    rows = read(tmp_path, "tree_shadow.hatchet").sql(
        "SELECT s.kind, s.name, m.name, sum(m.value), m.unit, count(*) FROM metrics m "
        "JOIN slices s USING (slice) GROUP BY ALL"
    )
    raw = {node.path[-1]: node.metrics for node in raw_nodes("tree_shadow.hatchet")}
    relu = "scaled_relu_1048576"
    assert sorted(rows.rows) == [
        ("kernel", relu, "bytes", raw[relu]["bytes"], "byte", 4),
        ("kernel", relu, "flops32", raw[relu]["flops32"], "1", 4),
        ("range", "forward", "examples", raw["forward"]["examples"], "1", 1),
        ("range", "forward", "flops16", raw["forward"]["flops16"], "1", 1),
    ]


def test_samples_of_stalls_are_metrics_of_their_kernels(tmp_path: Path) -> None:
    rows = read(tmp_path, "pcsampling.hatchet").sql(
        "SELECT s.name, sum(m.value) FROM metrics m JOIN slices s USING (slice) WHERE m.name = 'num_samples' "
        "GROUP BY ALL"
    )
    wanted = {
        clear(node.path[-1]): node.metrics["num_samples"]
        for node in raw_nodes("pcsampling.hatchet")
        if "num_samples" in node.metrics
    }
    assert {name: pytest.approx(value) for name, value in rows.rows} == wanted


def test_a_tree_in_cycles_has_metrics_and_no_kernel(tmp_path: Path) -> None:
    trace = read(tmp_path, "intra_tree.hatchet")
    assert trace.sql("SELECT name, dur_ns FROM slices WHERE kind = 'range' ORDER BY slice").rows == [
        ("loads", 0),
        ("store", 0),
        ("add", 0),
    ]
    assert trace.sql("SELECT count(*), min(unit), sum(value) FROM metrics WHERE name = 'cycles'").rows == [
        (2, "cycle", 5843 + 19380)
    ]


def test_the_same_program_under_torch_has_the_same_kernels_and_times(tmp_path: Path) -> None:
    """Two processes; names, streams and counts are the same, mean times differ by what a repeat differs."""
    per_stream = (
        "SELECT s.name, t.native_id, count(*), avg(s.dur_ns) FROM slices s JOIN tracks t USING (track) "
        "WHERE s.kind = 'kernel' GROUP BY ALL"
    )
    found = {}
    for name in ("trace_shadow_nohook.chrome_trace", "torch_alone.pt.trace.json.gz"):
        found[name] = {tuple(row[:3]): row[3] for row in read(tmp_path, name).sql(per_stream).rows}
    proton, torch = found.values()
    assert proton.keys() == torch.keys()
    assert sum(calls for *_, calls in proton) == 84
    for kernel, duration in proton.items():
        assert duration == pytest.approx(torch[kernel], rel=0.1, abs=200), kernel


def test_names_in_clear_are_those_that_torch_writes(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "torch_alone.pt.trace.json.gz").read_bytes())
    torch = {e["name"] for e in json.loads(text)["traceEvents"] if e.get("cat") == "kernel"}
    raw = {kernel.name for kernel in raw_kernels("trace_shadow_nohook.chrome_trace")}
    assert {clear(name) for name in raw} == torch
    assert any(name.startswith("_Z") for name in raw)


def test_the_hooks_steps_file_says_which_process_and_gpu_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "rank3"
    folder.mkdir()
    shutil.copy(DATA / "trace_shadow.chrome_trace", folder / "host_77.1.chrome_trace")
    device = StepsDevice(vendor="nvidia", ordinal=1, name="NVIDIA H200", arch="sm_90", sm_count=132)
    steps = StepsFile(3, 77, "optimizer", "cuda_event", Anchor(1, 2, 3), host="node1", device=device)
    (folder / "steps.json").write_text(json.dumps(to_json(steps)), encoding="utf-8")
    normalize([folder / "host_77.1.chrome_trace"], tmp_path / "trace")
    trace = Trace(tmp_path / "trace")
    assert trace.sql("SELECT pid, rank, host FROM processes").rows == [(77, 3, "node1")]
    assert trace.sql("SELECT ordinal, name, sm_count FROM devices").rows == [(1, "NVIDIA H200", 132)]
    assert issues(trace).keys() == {"scope_times_from_kernels"}


def test_what_no_file_says_is_an_issue(tmp_path: Path) -> None:
    found = issues(read(tmp_path, "trace_shadow.chrome_trace", "both_trace.chrome_trace"))
    assert {key: found[key] for key in ("pid_unknown", "device_guessed", "files_not_aligned")} == {
        "pid_unknown": 2,
        "device_guessed": 2,
        "files_not_aligned": 2,
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("intra_trace.chrome_trace", "holds times inside of kernels, in cycles of single SMs"),
        ("empty_tree.hatchet", "no kernel ran while Proton recorded"),
    ],
)
def test_what_has_no_kernel_times_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path, name)
    assert "; " in str(error.value), "says what to do"


def test_a_trace_that_was_cut_keeps_its_whole_kernels(tmp_path: Path) -> None:
    whole = (DATA / "trace_shadow.chrome_trace").read_bytes()
    (tmp_path / "cut.chrome_trace").write_bytes(whole[: len(whole) // 2])
    normalize([tmp_path / "cut.chrome_trace"], tmp_path / "trace")
    trace = Trace(tmp_path / "trace")
    rows = trace.sql(KERNELS).rows
    assert 0 < len(rows) < 84
    kept = raw_kernels("trace_shadow.chrome_trace")[: len(rows)]
    assert Counter((k.stream, k.ts, k.dur, clear(k.name)) for k in kept) == Counter(rows)
    assert issues(trace)["truncated"] == 1


def test_packed_files_are_read(tmp_path: Path) -> None:
    for name in ("trace_shadow.chrome_trace", "tree_shadow.hatchet"):
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress((DATA / name).read_bytes()))
        normalize([packed], tmp_path / f"{name}-trace")
        assert Trace(tmp_path / f"{name}-trace").sql("SELECT count(*) FROM kernels").scalar() == 84


def damaged(whole: bytes, dice: random.Random) -> bytes:
    """Cut, overwritten, shortened in the middle, or with foreign bytes in it."""
    data = bytearray(whole)
    at = dice.randrange(len(data))
    how = dice.randrange(4)
    if how == 0:
        return bytes(data[: at + 1])
    if how == 1:
        for _ in range(dice.choice([1, 5, 50])):
            data[dice.randrange(len(data))] = dice.randrange(256)
    elif how == 2:
        del data[at : at + dice.randrange(1, 3000)]
    else:
        data[at:at] = dice.randbytes(dice.randrange(1, 300))
    return bytes(data)


@pytest.mark.parametrize("name", ["trace_shadow.chrome_trace", "tree_shadow.hatchet"])
def test_a_damaged_file_becomes_a_checked_trace_or_one_line(tmp_path: Path, name: str) -> None:
    dice = random.Random(name)
    said = []
    for number in range(500 if THOROUGH else 5):
        path = tmp_path / "damaged"
        path.write_bytes(damaged((DATA / name).read_bytes(), dice))
        try:
            normalize([path], tmp_path / str(number))
        except InputError as error:
            said.append(str(error))
    assert not [text for text in said if "\n" in text]


def test_no_rule_speaks_of_what_followed_what_in_a_tree(tmp_path: Path) -> None:
    def found(name: str) -> list[str]:
        return [finding.code for finding in diagnose(read(tmp_path, name))]

    assert "pointwise-chains" in found("both_trace.chrome_trace")
    assert "pointwise-chains" not in found("both_tree.hatchet")


def profiled(tmp_path: Path, trial: str) -> Trace:
    """The trace of a trial that profrun made on an H200."""
    (found,) = (path for path in (DATA / "profrun" / trial / "rank0").iterdir() if path.name != "steps.json")
    folder = tmp_path / trial / "rank0"
    folder.mkdir(parents=True)
    shutil.copy(found.with_name("steps.json"), folder)
    file = folder / found.name.removesuffix(".xz")
    file.write_bytes(lzma.decompress(found.read_bytes()) if found.suffix == ".xz" else found.read_bytes())
    normalize([file], tmp_path / f"{trial}-trace")
    return Trace(tmp_path / f"{trial}-trace")


IN_RANGES = (
    "SELECT r.name, k.name, k.dur_ns FROM slices k JOIN slices r ON r.track = k.track AND r.kind = 'range' "
    "AND r.name LIKE 'profrun.step#%' AND k.ts_ns >= r.ts_ns AND k.ts_ns + k.dur_ns <= r.ts_ns + r.dur_ns "
    "WHERE k.kind = 'kernel'"
)
IN_STEPS = (
    "SELECT 'profrun.step#' || l.step, s.name, s.dur_ns FROM step_launches l JOIN slices s USING (slice) "
    "WHERE s.kind = 'kernel' AND l.step IS NOT NULL"
)


@pytest.mark.thorough
def test_a_profrun_trial_has_in_each_step_what_torch_and_nsys_have(tmp_path: Path) -> None:
    """One program, three profilers, on an H200: the same kernels in the same steps, of the same durations."""
    proton = profiled(tmp_path, "proton-nohook")
    rows = {"proton": proton.sql(IN_RANGES).rows}
    rows |= {name: profiled(tmp_path, name).sql(IN_STEPS).rows for name in ("torch", "nsys")}
    counts = {
        name: Counter((step, normalise(kernel)) for step, kernel, _ in found) for name, found in rows.items()
    }
    assert counts["proton"] == counts["torch"] == counts["nsys"]
    assert Counter(step for step, *_ in rows["proton"]) == {f"profrun.step#{n}": 21 for n in range(12, 16)}
    assert issues(proton) == {"scope_times_from_kernels": 12, "step_of_thread_repaired": 27}
    for kernel in {normalise(name) for _, name, _ in rows["proton"]}:
        means = {
            tool: mean(dur for _, name, dur in found if normalise(name) == kernel)
            for tool, found in rows.items()
        }
        assert means["proton"] == pytest.approx(means["torch"], rel=0.1), kernel
        assert means["proton"] == pytest.approx(means["nsys"], rel=0.1), kernel


@pytest.mark.parametrize("trial", ["proton", "proton-modules"])
def test_each_step_of_a_profrun_trial_has_its_kernels(tmp_path: Path, trial: str) -> None:
    rows = profiled(tmp_path, trial).sql(IN_RANGES).rows
    assert Counter(step for step, *_ in rows) == {f"profrun.step#{n}": 21 for n in range(12, 16)}


def test_graph_replays_of_a_profrun_trial_are_torchs_kernels_and_in_no_step(tmp_path: Path) -> None:
    proton, torch = profiled(tmp_path, "proton-graph"), profiled(tmp_path, "torch-graph")
    names = "SELECT name, count(*) FROM slices WHERE kind = 'kernel' GROUP BY name"
    assert sorted(proton.sql(names).rows) == sorted(torch.sql(names).rows)
    assert proton.sql(IN_RANGES).rows == []
    assert issues(proton) == {"scope_times_from_kernels": 1, "graph_step_unknown": 9}


def test_the_gpu_of_a_profrun_trial_is_known(tmp_path: Path) -> None:
    rows = profiled(tmp_path, "proton").sql("SELECT name, arch, sm_count, ordinal FROM devices").rows
    assert rows == [("NVIDIA H200", "sm_90", 132, 0)]
