"""The planting does what it says: on a small recording in memory, and through the files of every family."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import pytest

from planted_damage.files import FILES, RealFile, located
from planted_damage.kinds import KINDS, MS, S
from planted_damage.model import MARK, GpuRecord, HostRecord, Recording, Truth
from planted_damage.slack import Slack, slack

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PROFRUN_SHARED", ROOT.parent / "shared"))
SMALL = ("h200-matmul_add_64_blocking", "event-sync", "mi250", "nsys-4-streams", "nsys-saxpy-2022")
OF_EACH_FAMILY = (*SMALL, "rocpd-ck", "rpd-matmul", "rocprof-v1", "rocprof-v3-csv")
REAL = {real.name: real for real in FILES}
BY_NAME = {kind.name: kind for kind in KINDS}


class Made(Recording):
    """Two ranks, two streams each, six launches per stream; a wait at the end of each rank."""

    family = "made"

    def __init__(self) -> None:
        super().__init__()
        for rank in (0, 1):
            for number in range(12):
                call, lane = 1000 * number * 1000, number % 2
                ref = (rank, number)
                self.host.append(HostRecord("api", "launch", call, call + 4000, rank, 1, number, ref))
                start = call + 7000
                self.gpu.append(
                    GpuRecord("kernel", f"k{number}", start, start + 500, rank, lane, number, ref)
                )
            self.host.append(
                HostRecord("api", "cudaDeviceSynchronize", 11_005_000, 11_012_000, rank, 1, 99, ("w", rank))
            )
            for step in range(2):
                begin = step * 6 * MS
                row = HostRecord(
                    "step", f"step {step}", begin, begin + 5 * MS, rank, 1, None, ("s", rank, step)
                )
                self.host.append(row)

    def save(self, folder: Path) -> list[Path]:
        raise NotImplementedError


def planted(name: str, recording: Recording, seed: int = 1) -> Truth | None:
    return BY_NAME[name].plant(recording, random.Random(seed))


def test_there_are_at_least_forty_files_of_all_families_and_twenty_kinds() -> None:
    assert len(FILES) >= 40
    assert len(REAL) == len(FILES)
    assert {real.family.family for real in FILES} >= {"kineto", "nsys", "rocpd", "rpd", "rocprofv1-db"}
    assert len(KINDS) >= 20
    assert len(BY_NAME) == len(KINDS)


def test_the_slack_of_a_clean_recording() -> None:
    """Launch to start is 7 us everywhere; the last kernel ends at 11 007.5 us, and its wait at 11 012 us."""
    assert slack(Made()) == {0: Slack(-4500, 7000), 1: Slack(-4500, 7000)}


@pytest.mark.parametrize(
    ("name", "low", "high", "shown"),
    [
        ("offset -1us", -5500, 6000, False),
        ("offset +1us", -3500, 8000, False),
        ("offset -10us", -14_500, -3000, True),
        ("offset +10us", 5500, 17_000, True),
        ("offset +10s", 10 * S - 4500, 10 * S + 7000, True),
    ],
)
def test_an_offset_moves_the_bounds_by_itself(name: str, low: int, high: int, shown: bool) -> None:
    recording = Made()
    truth = planted(name, recording)
    assert truth is not None
    assert truth.offset_ns is not None
    bounds = slack(recording)[0]
    assert bounds == Slack(low, high)
    assert bounds.holds(truth.offset_ns)
    assert bounds.shows_displacement is shown


def test_a_drift_grows_from_the_first_record() -> None:
    recording = Made()
    truth = planted("drift +500 ppm", recording)
    assert truth == Truth(24, drift_ppm=500, anchor_ns=7000)
    assert [record.start for record in recording.gpu[:3]] == [7000, 1_007_500, 2_008_000]
    assert recording.gpu[11].start == 11_007_000 + 5500


def test_a_jump_moves_the_later_half() -> None:
    recording = Made()
    planted("clock jumps -5ms", recording)
    assert [record.start - Made().gpu[i].start for i, record in enumerate(recording.gpu[:12])] == [
        *[0] * 6,
        *[-5 * MS] * 6,
    ]


def test_one_stream_moves_and_the_others_stay() -> None:
    recording = Made()
    truth = planted("one stream -5ms", recording)
    assert truth is not None
    moved = {
        (record.process, record.lane): record.start - old.start
        for record, old in zip(recording.gpu, Made().gpu, strict=True)
    }
    assert Counter(moved.values()) == {0: 3, -5 * MS: 1}
    assert moved[truth.process, truth.lane] == -5 * MS


def test_one_rank_moves_as_a_whole() -> None:
    recording = Made()
    truth = planted("one rank +100ms", recording)
    assert truth is not None
    for row, old in zip(recording.rows, Made().rows, strict=True):
        assert row.start - old.start == (100 * MS if row.process == truth.process else 0)
    assert slack(recording) == slack(Made())


def test_the_gpu_records_of_two_ranks_change_places() -> None:
    recording = Made()
    planted("rank GPU records swapped", recording)
    assert [record.process for record in recording.gpu] == [1] * 12 + [0] * 12


def test_duplicates_are_a_tenth() -> None:
    recording = Made()
    assert planted("10 % duplicates", recording) == Truth(2)
    assert Counter(record.copies for record in recording.gpu) == {1: 22, 2: 2}


@pytest.mark.parametrize(
    ("name", "length"), [("durations x1000", 500_000), ("durations /1000", 0), ("durations all 0", 0)]
)
def test_durations_change_and_starts_do_not(name: str, length: int) -> None:
    recording = Made()
    planted(name, recording)
    assert {record.end - record.start for record in recording.gpu} == {length}
    assert [record.start for record in recording.gpu] == [record.start for record in Made().gpu]


def test_times_in_another_unit_count_from_the_start_of_the_recording() -> None:
    recording = Made()
    planted("GPU times x1000", recording)
    assert (recording.gpu[1].start, recording.gpu[1].end) == (1_007_000_000, 1_007_500_000)


def test_a_lost_block_is_one_after_the_other_and_not_at_an_end() -> None:
    for seed in range(20):
        recording = Made()
        assert planted("a third lost, block", recording, seed) == Truth(8, visible=True)
        ordered = sorted(recording.gpu, key=lambda record: record.start)
        text = "".join(str(record.copies) for record in ordered)
        assert text.strip("1") == "0" * 8
        assert text[0] == text[-1] == "1"


def test_a_random_third_is_lost() -> None:
    recording = Made()
    assert planted("a third lost, random", recording) == Truth(8, visible=True)
    assert Counter(record.copies for record in recording.gpu) == {1: 16, 0: 8}


def test_steps_end_in_the_middle_of_the_next() -> None:
    recording = Made()
    assert planted("steps overlap", recording) == Truth(2)
    steps = [(row.start, row.end) for row in recording.host if row.kind == "step"]
    assert steps == [(0, 8.5 * MS), (6 * MS, 11 * MS)] * 2


def test_neighbours_on_a_stream_change_their_launches() -> None:
    recording = Made()
    assert planted("launch against stream order", recording) == Truth(2)
    changed = [record for record, old in zip(recording.gpu, Made().gpu, strict=True) if record != old]
    assert len(changed) == 2
    assert len({(record.process, record.lane) for record in changed}) == 1
    assert changed[0].correlation == changed[1].correlation + 2  # type: ignore[operator]


def test_one_event_goes_far_away() -> None:
    recording = Made()
    first, last = recording.span()
    planted("one event 100 windows away", recording)
    moved = [record.start - old.start for record, old in zip(recording.gpu, Made().gpu, strict=True)]
    assert sorted(moved) == [0] * 23 + [100 * (last - first)]


def test_a_shuffle_keeps_the_set_of_correlations() -> None:
    recording = Made()
    truth = planted("correlations shuffled", recording)
    assert truth is not None
    found = [record.correlation for record in recording.gpu[:12]]
    assert sorted(found) == list(range(12))  # type: ignore[type-var]
    assert truth.count == sum(
        record.correlation != old.correlation for record, old in zip(recording.gpu, Made().gpu, strict=True)
    )


def test_the_same_seed_changes_the_same() -> None:
    for kind in KINDS:
        one, other = Made(), Made()
        assert kind.plant(one, random.Random(7)) == kind.plant(other, random.Random(7))
        assert one.gpu == other.gpu
        assert one.host == other.host


# --- through files


def read(real: RealFile, paths: list[Path]) -> Recording:
    return real.family(paths)  # type: ignore[call-arg]


def original(name: str, tmp: Path) -> Recording:
    return read(REAL[name], located(REAL[name], SHARED, tmp / "unpacked"))


def rows(recording: Recording) -> list[tuple[Hashable, ...]]:
    return [(r.kind, r.start, r.end, r.process, r.correlation, r.name) for r in recording.rows]


@pytest.mark.parametrize("name", OF_EACH_FAMILY)
def test_a_file_that_was_not_damaged_reads_as_before(name: str, tmp_path: Path) -> None:
    recording = original(name, tmp_path)
    saved = recording.save(tmp_path)
    assert rows(read(REAL[name], saved)) == rows(recording)


@pytest.mark.parametrize("name", OF_EACH_FAMILY)
def test_an_offset_in_a_file_is_exact(name: str, tmp_path: Path) -> None:
    recording, before = original(name, tmp_path), original(name, tmp_path)
    planted("offset +1us", recording)
    after = read(REAL[name], recording.save(tmp_path))
    assert rows(after) == rows(recording)
    assert {new.start - old.start for new, old in zip(after.gpu, before.gpu, strict=True)} == {1000}
    assert {
        new.end - new.start - old.end + old.start for new, old in zip(after.gpu, before.gpu, strict=True)
    } == {0}
    assert [(row.start, row.end) for row in after.host] == [(row.start, row.end) for row in before.host]


@pytest.mark.parametrize("name", OF_EACH_FAMILY)
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_kind_goes_through_the_files(name: str, kind: str, tmp_path: Path) -> None:
    recording = original(name, tmp_path)
    if planted(kind, recording) is None:
        pytest.skip("this recording cannot have this damage")
    after = read(REAL[name], recording.save(tmp_path))
    if kind.startswith("second session"):
        assert len(after.gpu) == len(recording.gpu)
        return
    expected = Counter({(r.start, r.end, r.process, r.correlation, r.name): 0 for r in recording.gpu})
    for record in recording.gpu:
        expected[record.start, record.end, record.process, record.correlation, record.name] += record.copies
    found = Counter((r.start, r.end, r.process, r.correlation, r.name) for r in after.gpu)
    assert found == +expected


def test_the_text_of_a_json_file_differs_only_in_what_was_moved(tmp_path: Path) -> None:
    """Checked without this package: by json."""
    name = "h200-matmul_add_64_blocking"
    recording = original(name, tmp_path)
    planted("offset -10us", recording)
    (saved,) = recording.save(tmp_path)
    (source,) = located(REAL[name], SHARED, tmp_path)
    old, new = (json.loads(gzip.decompress(path.read_bytes())) for path in (source, saved))
    assert {key: new[key] for key in new if key != "traceEvents"} == {
        key: old[key] for key in old if key != "traceEvents"
    }
    tracks = {
        (e["pid"], e["tid"])
        for e in old["traceEvents"]
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
    }
    moved = 0
    for was, now in zip(old["traceEvents"], new["traceEvents"], strict=True):
        delta = now.get("ts", 0) - was.get("ts", 0)
        assert was | {"ts": 0} == now | {"ts": 0}
        on_gpu = (was.get("pid"), was.get("tid")) in tracks and was["ph"] in "Xf"
        assert delta == pytest.approx(-10 if on_gpu else 0, abs=1e-3)
        moved += on_gpu
    assert moved >= 6


def test_ranks_of_two_files_are_exchanged(tmp_path: Path) -> None:
    recording = original("mi300-ranks", tmp_path)
    truth = planted("rank labels swapped", recording)
    assert truth is not None
    assert truth.visible
    saved = recording.save(tmp_path)
    ranks = [json.loads(gzip.decompress(path.read_bytes()))["distributedInfo"]["rank"] for path in saved]
    assert ranks == [1, 0]


def test_gpu_records_of_two_processes_of_one_nsys_file_are_exchanged(tmp_path: Path) -> None:
    recording, before = original("nsys-2-gpus", tmp_path), original("nsys-2-gpus", tmp_path)
    planted("rank GPU records swapped", recording)
    after = read(REAL["nsys-2-gpus"], recording.save(tmp_path))
    counts = Counter(record.process for record in before.work)
    one, other = counts
    assert Counter(record.process for record in after.work) == {one: counts[other], other: counts[one]}


def test_a_second_session_is_a_second_file_with_its_own_displacement(tmp_path: Path) -> None:
    recording, before = original("mi250", tmp_path), original("mi250", tmp_path)
    planted("second session +100ms", recording)
    first, second = (read(REAL["mi250"], [path]) for path in recording.save(tmp_path))
    assert rows(first) == rows(before)
    begin, end = before.span()
    later = end - begin + 2 * S
    assert {new.start - old.start for new, old in zip(second.host, before.host, strict=True)} == {later}
    gpu = {new.start - old.start for new, old in zip(second.gpu, before.gpu, strict=True)}
    assert gpu == {later + 100 * MS}
    assert not {r.correlation for r in first.work} & {r.correlation for r in second.work}


def test_a_rank_of_an_nsys_file_moves_with_all_its_tables(tmp_path: Path) -> None:
    import sqlite3

    recording = original("nsys-2-gpus", tmp_path)
    process = recording.processes[-1]
    (source,) = located(REAL["nsys-2-gpus"], SHARED, tmp_path)
    planted("one rank +100ms", recording)
    (saved,) = recording.save(tmp_path)
    tables = ("KERNEL", "MEMCPY", "RUNTIME", "SYNCHRONIZATION")
    for table in tables:
        owner = "globalTid" if table == "RUNTIME" else "globalPid"
        sql = (
            f"SELECT sum(start), count(*) FROM CUPTI_ACTIVITY_KIND_{table} WHERE ({owner} >> 24) << 24 {{}} ?"
        )
        for sign, delta in (("=", 100 * MS), ("!=", 0)):
            (was, count), (now, _) = (
                sqlite3.connect(path).execute(sql.format(sign), (process,)).fetchone()
                for path in (source, saved)
            )
            assert now - was == delta * count


def test_annotations_of_the_gpu_move_with_the_clock_and_are_never_lost(tmp_path: Path) -> None:
    recording = original("h200-matmul_add_64_blocking", tmp_path)
    marks = [record for record in recording.gpu if record.kind == MARK]
    assert marks
    planted("a third lost, random", recording)
    assert all(record.copies == 1 for record in marks)
