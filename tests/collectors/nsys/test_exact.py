"""Real exports of nsys 2022 to 2026: counts and sums equal those that SQLite itself gives."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.errors import InputError
from profrun.traces.trace import Trace
from tests.collectors.nsys.exports import issues
from tests.conftest import first, shared_data

EXPORTS = (
    "h200/nsys/mlp.sqlite",
    "h200/nsys/train.sqlite",
    "h200/nsys/transformer.sqlite",
    "nvidia/nsys-ai/h100_2gpu_1s.sqlite",
    "nvidia/nsys-ai/healthy_1pct.sqlite",
    "nvidia/nsys-ai/mfu_2gpu_before.sqlite",
    "nvidia/nsys-misc/aws_gpu-report2.sqlite",
    "nvidia/nsys-misc/fuser-report1.sqlite",
    "nvidia/nsys-misc/gtls-report1.sqlite",
    "nvidia/nsys-misc/jacc-4e6_async_1_trace.sqlite",
    "nvidia/nsys-misc/lighttransport-gemm-profile.sqlite",
    "nvidia/nsys-misc/python_c_nvidia-report1.sqlite",
    "nvidia/nsys-misc/testcuda-report1.sqlite",
    "nvidia/nsys-misc/weatherbench-report1.sqlite",
    "nvidia/pipit/perlmutter-cloverleaf-cuda.sqlite",
    "nvidia/pipit/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
)
KINDS = {
    "kernel": ("CUPTI_ACTIVITY_KIND_KERNEL", "1"),
    "memcpy": ("CUPTI_ACTIVITY_KIND_MEMCPY", "1"),
    "memset": ("CUPTI_ACTIVITY_KIND_MEMSET", "1"),
    "sync": ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "1"),
    "api": ("CUPTI_ACTIVITY_KIND_RUNTIME", "{eventClass} <> 67"),
}


def counted(path: Path) -> dict[str, tuple[int, int]]:
    """Rows and summed ns a kind, straight from the file."""
    con = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    found: dict[str, tuple[int, int]] = {}
    for kind, (table, where) in KINDS.items():
        columns = {row[1] for row in con.execute(f'PRAGMA table_info("{table}")')}
        if not columns:
            continue
        condition = where.format(eventClass="eventClass") if "eventClass" in columns else "1"
        row = con.execute(f'SELECT count(*), sum("end" - start) FROM "{table}" WHERE {condition}').fetchone()
        if row[0]:
            found[kind] = (int(row[0]), int(row[1]))
    con.close()
    return found


@pytest.mark.parametrize("name", first(3, EXPORTS))
def test_counts_and_sums_are_those_of_the_file(tmp_path: Path, name: str) -> None:
    path = shared_data(name)
    normalize([path], tmp_path / "t", repair=False)
    with Trace(tmp_path / "t") as trace:
        rows = trace.sql(
            "SELECT kind, count(*), sum(dur_ns)::BIGINT FROM slices "
            "WHERE kind IN ('kernel', 'memcpy', 'memset', 'sync', 'api') GROUP BY kind"
        ).rows
        assert {kind: (count, total) for kind, count, total in rows} == counted(path)
        assert "record-unplaced" not in issues(trace)


def test_launches_are_found_by_process_and_correlation(tmp_path: Path) -> None:
    """Two processes share 78 correlation ids here; the file's own join says which kernels have a call."""
    path = shared_data("nvidia/nsys-ai/mfu_2gpu_before.sqlite")
    con = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    linked = con.execute(
        "SELECT count(*), sum(k.start - r.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId "
        "AND (r.globalTid & ~16777215) = k.globalPid"
    ).fetchone()
    normalize([path], tmp_path / "t", repair=False)
    with Trace(tmp_path / "t") as trace:
        ours = trace.sql(
            "SELECT count(*), sum(k.ts_ns - a.ts_ns)::BIGINT FROM slices k JOIN slices a ON a.slice = "
            "k.launch "
            "WHERE k.kind = 'kernel'"
        ).rows[0]
        assert ours == tuple(linked)
        assert issues(trace)["kernel-without-launch"] == 24


def test_nvtx_ranges_are_all_there_with_their_names(tmp_path: Path) -> None:
    """Inline text and registered strings in one table."""
    path = shared_data("nvidia/nsys-ai/mfu_2gpu_before.sqlite")
    con = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    query = (
        "SELECT coalesce(n.text, s.value) AS name, count(*), sum(n.end - n.start) FROM NVTX_EVENTS n "
        "LEFT JOIN StringIds s ON s.id = n.textId WHERE n.eventType = 59 GROUP BY name ORDER BY name"
    )
    wanted = con.execute(query).fetchall()
    normalize([path], tmp_path / "t", repair=False)
    with Trace(tmp_path / "t") as trace:
        ours = trace.sql(
            "SELECT name, count(*), sum(dur_ns)::BIGINT FROM slices WHERE kind = 'range' "
            "GROUP BY name ORDER BY name"
        )
        assert ours.rows == wanted


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("koshiq-report1-LFSPOINTER.sqlite", "git-LFS pointer"),
        ("koshiq-report1-LFSPOINTER.nsys-rep", "git-LFS pointer"),
        ("pipit-test-not-nsys.sqlite", "SQLite database with tables test"),
    ],
)
def test_what_is_no_export_is_said_to_be_none(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        normalize([shared_data(f"nvidia/negative/{name}")], tmp_path / "t")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_export_is_refused_in_one_line(tmp_path: Path, keep: float) -> None:
    whole = shared_data("h200/nsys/mlp.sqlite").read_bytes()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(InputError) as caught:
        normalize([cut], tmp_path / "t")
    assert "\n" not in str(caught.value)
