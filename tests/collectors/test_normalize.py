"""Content decides; what is no profile is one clear line; what is damaged is read as far as it goes."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from profrun.collectors.normalize import normalize
from profrun.errors import InputError, UsageError
from profrun.traces.meta import TrialEntry
from profrun.traces.trace import Trace
from tests.collectors.torch.kineto import api, document, issues, kernel, op
from tests.conftest import first, shared_data

EVENTS = [
    event
    for n in range(20)
    for event in (
        op(f"aten::op{n}", 100 * n, 50, n + 1),
        api("cudaLaunchKernel", 100 * n + 5, 10, n + 1),
        kernel("gemm", 100 * n + 60, 30, n + 1),
    )
]
PRETTY = json.dumps(document(EVENTS), indent=2).encode()
SINGLE = json.dumps(document(EVENTS)).encode()
NATIVE = (
    b'{\n  "schemaVersion": 1,\n  "traceEvents": [\n'
    + b",\n".join(b"  {\n    " + json.dumps(event).encode()[1:-1] + b"\n  }" for event in EVENTS)
    + b'\n  ],\n  "baseTimeNanoseconds": 1000000000000000000,\n  "traceName": "a ] b"\n}\n'
)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", b"", "is empty: the profiler wrote nothing"),
        ("blank.json", b"  \n ", "holds only white space"),
        ("zeros.sqlite", bytes(4096), "begins with 4096 zero bytes"),
        ("pointer.json", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a git-LFS pointer"),
        ("a.json", b"PK\x03\x04rest", "a zip archive; unpack it"),
        ("text.nsys-rep", b"hello", "it is text that begins with 'hello'"),
        ("list.json", b"[1, 2, 3]", "it is JSON, but not a trace"),
        ("chrome.json", b'{"traceEvents": [{"ph": "X", "name": "a"}]}', "a Chrome trace, but of a tool"),
        ("head.sqlite", b"SQLite format 3\0" + bytes(300), "a damaged SQLite database"),
        ("cut.json", PRETTY[:60], "has no traceEvents: the file was cut before its events"),
        ("cut.json.gz", gzip.compress(PRETTY, mtime=0)[:12], "its gzip stream is cut or damaged"),
    ],
)
def test_what_is_no_profile_is_one_clear_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        normalize([tmp_path / name], tmp_path / "trace")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "; " in str(error.value), "says what to do"
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_pipes_folders_and_missing_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "notes.txt").write_text("no profile")
    (tmp_path / "ranks" / "rank0.json").write_bytes(PRETTY)
    for name, said in (
        ("fifo", "is not a regular file"),
        ("folder", "a folder without profiler files"),
        ("ranks", "name the files in it that are one recording, like rank0.json"),
        ("gone", "cannot be read: No such file"),
    ):
        with pytest.raises(InputError, match=said):
            normalize([tmp_path / name], tmp_path / "trace")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ebpf-chrome_trace.json", "a Chrome trace, but of a tool"),
        ("hta-memory_timeline.raw.gz", "it is JSON, but not a trace"),
        ("koshiq-report1-LFSPOINTER.nsys-rep", "a git-LFS pointer"),
        ("koshiq-report1-LFSPOINTER.sqlite", "a git-LFS pointer"),
        ("pipit-test-not-nsys.sqlite", "a SQLite database with tables test"),
        ("sidvijay10-LFSPOINTER.sqlite", "a git-LFS pointer"),
    ],
)
def test_real_files_that_are_no_profiles(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        normalize([shared_data(f"nvidia/negative/{name}")], tmp_path / "trace")


def test_a_wrong_suffix_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_bytes(gzip.compress(SINGLE[:700], mtime=0) + gzip.compress(SINGLE[700:]))
    result = normalize([tmp_path / "a.sqlite"], tmp_path / "trace", job={"trial": "x"})
    assert (result.source, result.vendor, result.counts["kernels"], result.issues) == (
        "kineto",
        "nvidia",
        20,
        [],
    )
    assert Trace(tmp_path / "trace").meta["job"] == {"trial": "x"}
    assert set(result.as_json()) == {
        "trace", "source", "tool_version", "vendor", "counts", "issues", "clocks", "contradictions",
        "seconds",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("events", "job", "stated"),
    [
        ([kernel("k", 10, 5, 1)], {"blocking": True}, True),
        ([kernel("k", 10, 5, 1)], {"blocking": False}, False),
        ([kernel("k", 10, 5, 1)], {"trial": "x"}, None),
        ([kernel("k", 10, 5, 1)], None, None),
        ([op("aten::mm", 10, 5, 1)], {"blocking": True}, None),  # no GPU, so nothing that could block
    ],
)
def test_a_trials_orders_say_whether_launches_blocked_where_the_recording_does_not(
    tmp_path: Path, events: list[Any], job: TrialEntry | None, stated: bool | None
) -> None:
    document_ = document(events) if events[0]["cat"] == "kernel" else {"traceEvents": events}
    (tmp_path / "a.json").write_text(json.dumps(document_))
    normalize([tmp_path / "a.json"], tmp_path / "trace", job=job)
    with Trace(tmp_path / "trace") as trace:
        assert trace.meta["launch_blocking"] is stated


def test_reader_can_be_forced_and_kinds_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown reader 'x'; use one of"):
        normalize([shared_data("h200/truth.jsonl")], tmp_path / "trace", reader="x")
    with pytest.raises(UsageError, match="nothing to normalize"):
        normalize([], tmp_path / "trace")
    (tmp_path / "a.json").write_bytes(SINGLE)
    with pytest.raises(InputError, match=r"are of different kinds: kineto and nsys; normalize each"):
        normalize([tmp_path / "a.json", shared_data("h200/nsys/mlp.sqlite")], tmp_path / "trace")


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(SINGLE)
    seen: list[tuple[int, int | None]] = []
    normalize(
        [tmp_path / "a.json"], tmp_path / "trace", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (len(SINGLE), len(SINGLE))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


LAYOUTS = pytest.mark.parametrize("whole", [PRETTY, SINGLE, NATIVE], ids=["pretty", "single", "native"])


@LAYOUTS
def test_keys_may_stand_before_or_behind_the_events(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(whole)
    result = normalize([tmp_path / "a.json"], tmp_path / "trace")
    assert (result.counts["slices"], result.issues) == (60, [])
    assert Trace(tmp_path / "trace").meta["epoch_ns"] == 10**18


@LAYOUTS
@pytest.mark.parametrize("compressed", [False, True])
def test_a_cut_file_keeps_the_whole_events_before_the_cut(
    whole: bytes, compressed: bool, tmp_path: Path
) -> None:
    at = whole.index(b"aten::op7")
    cut = gzip.compress(whole[:at], mtime=0)[:-9] if compressed else whole[:at]
    (tmp_path / "a.json").write_bytes(cut)
    normalize([tmp_path / "a.json"], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert issues(trace)["truncated"] == 1
        names = [row[0] for row in trace.sql("SELECT name FROM slices WHERE kind = 'op' ORDER BY ts_ns").rows]
    assert names == [f"aten::op{n}" for n in range(7)]


REPAIRS: tuple[tuple[bytes, bytes, dict[str, int]], ...] = (
    (b"aten::op3", b"C:\\Users\\op3", {"repaired_escape": 1}),
    (b"aten::op3", b"aten::\xff\xfeop3", {"invalid_utf8": 1}),
    (b"aten::op3", b"aten::\x01op3", {}),
    (b'"dur": 50', b'"dur": NaN', {"no_duration": 20}),
    (b'"dur": 50', b'"dur": -50', {"negative_duration": 20}),
    (b'"ts": 300,', b'"ts": 1e18,', {"no_timestamp": 1}),
    (b'"ts": 300,', b'"ts": 99999999999999999999999999,', {"no_timestamp": 1}),
    (b'"ts": 300,', b'"ts": null,', {"no_timestamp": 1}),
    (b'"ts": 300,', b'"ts": {"a": [1]},', {"no_timestamp": 1}),
    (b'"ts": 300,', b'"ts": Infinity,', {"no_timestamp": 1}),
    (b'"stream": 7', b'"stream": "7"', {}),
    (b'"grid": ', b'"x": ', {}),
    (b'"External id": 4}', b'"External id": 99999999999999999999}', {"unreadable_value": 1}),
    (b'"args": {"External id": 4}', b'"args": [4]', {"odd_args": 1}),
)
EACH = [
    pytest.param(
        whole,
        *REPAIRS[number],
        id=f"{name}-{number}",
        # By default half of them, each in one layout.
        marks=() if number % 3 == layout and number % 2 else pytest.mark.thorough,
    )
    for layout, (name, whole) in enumerate({"pretty": PRETTY, "single": SINGLE, "native": NATIVE}.items())
    for number in range(len(REPAIRS))
]


@pytest.mark.parametrize(("whole", "old", "new", "said"), EACH)
def test_repairs_are_counted(
    whole: bytes, old: bytes, new: bytes, said: dict[str, int], tmp_path: Path
) -> None:
    damaged = whole.replace(old, new)
    if old.startswith(b'"args"') or old.endswith(b"}"):
        start = whole.index(b'"args"', whole.index(b"aten::op3"))
        stop = whole.index(b"}", start) + 1
        text = b'"args": [4]' if "odd_args" in said else b'"args": {"External id": 99999999999999999999}'
        damaged = whole[:start] + text + whole[stop:]
    (tmp_path / "a.json").write_bytes(damaged)
    result = normalize([tmp_path / "a.json"], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert issues(trace) == said
    assert result.counts["ops"] == 20 - said.get("no_timestamp", 0)
    assert result.counts["kernels"] == 20


@LAYOUTS
def test_text_behind_the_end_is_said(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(whole + b"Segmentation fault\n")
    normalize([tmp_path / "a.json"], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        rows = trace.sql("SELECT code, example FROM issues").rows
    assert rows == [("trailing_text", "Segmentation fault")]


def _displaced(offset: float) -> list[Any]:
    """Twenty launches with a wait at the end; the GPU's times are off by some us."""
    events = [
        event
        for n in range(20)
        for event in (
            api("cudaLaunchKernel", 100 * n + 5.001, 10, n + 1),
            kernel("gemm", 100 * n + 20 + offset, 30, n + 1),
        )
    ]
    return [*events, api("cudaDeviceSynchronize", 1920, 40, 99)]


@pytest.mark.parametrize("offset", [-5000.0, 0.0, 5000.0])
def test_gpu_times_that_cannot_be_true_are_moved(offset: float, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document(_displaced(offset))))
    result = normalize([file], tmp_path / "moved")
    (clock,) = result.clocks
    assert clock["verdict"] == ("consistent" if not offset else "offset")
    assert abs(clock["moved_ns"] + offset * 1000) <= 20_000
    with Trace(tmp_path / "moved") as trace:
        trace.check()
        assert trace.meta["clocks"] == result.clocks
        (late,) = trace.sql("SELECT min(latency_ns) FROM launches").rows
        assert 0 < late[0] < 25_000
        (waited,) = trace.sql(
            "SELECT max(ts_ns + dur_ns) < (SELECT max(ts_ns + dur_ns) FROM slices WHERE kind = 'api') "
            "FROM slices WHERE kind = 'kernel'"
        ).rows
        assert waited[0]


def test_no_repair_leaves_the_times_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document(_displaced(5000.0))))
    (clock,) = normalize([file], tmp_path / "kept", repair=False).clocks
    assert (clock["verdict"], clock["moved_ns"]) == ("offset", 0)
    with Trace(tmp_path / "kept") as trace:
        assert trace.sql("SELECT min(ts_ns) FROM slices WHERE kind = 'kernel'").scalar() == 5_020_000


SHIFTED = {
    "amd/kineto-rocm-tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": (0, -26_638, -7_065),
    "amd/kineto-rocm-tracelens/mi300/google_owlv2-large-patch14-ensemble__1016001.json.gz": (
        0,
        -19_006,
        -276,
    ),
    "amd/rpd/matmul_result_large.rpd": (0, -9_565, -480),
    "nvidia/nsys-ai/mfu_2gpu_before.sqlite": (0, -6_892, -5_688),
}
"""Public recordings whose GPU clock is behind: device, and bounds in ns; docs/clocks.md explains each."""


@pytest.mark.parametrize("name", first(2, sorted(SHIFTED)))
def test_real_recordings_with_a_shifted_clock(name: str, tmp_path: Path) -> None:
    device, low, high = SHIFTED[name]
    result = normalize([shared_data(name)], tmp_path / "t")
    clock = result.clocks[device]
    assert (clock["verdict"], clock["constant_low_ns"], clock["constant_high_ns"]) == ("offset", low, high)
    assert low <= clock["moved_ns"] <= high
    assert [other["verdict"] for other in result.clocks[1:]] in ([], ["consistent"])


SOUND = (
    "h200/torch/train.json.gz",
    "h200/nsys/train.sqlite",
    "nvidia/hta/ns_resolution_rank-0.pt.trace.json.gz",
    "nvidia/hta/trace_diff_control.json.gz",
    "nvidia/kineto-tb/resnet50_nw0_old.pt.trace.json.gz",
    "nvidia/tracelens/b200_eager_trace.json.gz",
    "nvidia/pipit/perlmutter-cloverleaf-cuda.sqlite",
    "amd/rocpd-batched-gemm-mi300x/bmm/37ca13315e70/21_results.db",
    "amd/kineto-rocm-multirank-derived/rank0.json.gz",
    "amd/rocprofv3-json-mi350-aorta/908_results.json.gz",
)


@pytest.mark.parametrize("name", first(3, SOUND))
def test_real_recordings_raise_no_alarm(name: str, tmp_path: Path) -> None:
    result = normalize([shared_data(name)], tmp_path / "t")
    assert {clock["verdict"] for clock in result.clocks} <= {"consistent"}
    assert result.contradictions == []
