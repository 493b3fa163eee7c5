"""Packed files of every family are read as their content is; names never matter."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import sqlite3
from collections import namedtuple
from itertools import product
from pathlib import Path

import pytest

from profrun.collectors import unpacked
from profrun.collectors.normalize import normalize
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsFile
from profrun.errors import InputError, UnavailableError
from profrun.traces.schema import TABLES
from profrun.traces.trace import Trace
from tests.collectors.test_unpack import NAMES, packed
from tests.collectors.torch.kineto import document, op
from tests.conftest import first, shared_data

FAMILIES = {
    "rpd": "amd/rpd/matmul_result.rpd",
    "rocpd": "amd/rocpd-batched-gemm-mi300x/ck_bmm/37ca13315e70/28_results.db",
    "nsys": "nvidia/nsys-misc/testcuda-report1.sqlite",
    "rocprof csv": "amd/rocprofv3-docs-samples-rocm6_3/kernel_trace.csv",
    "rocprof v1 csv": "amd/rocprofv1-hpctraining/finite-difference/results.csv",
    "ncu csv": "nvidia/ncu-derived/mojo-profile.raw.csv",
    "kineto": "nvidia/hta/backward_thread.json",
    "rocprof json": "amd/rocprofv1-rocm-blogs/HIP_trace/results.json",
}
SUFFIXES = {"gzip": "gz", "xz": "xz", "bzip2": "bz2", "zstd": "zst"}


def rows(trace: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    with Trace(trace) as opened:
        found = {name: opened.sql(f'SELECT * FROM "{name}" ORDER BY ALL').rows for name in TABLES}
    found["issues"] = [row[:3] for row in found["issues"]]  # an example may be the name of a file
    return found


def pairs() -> list[tuple[str, str]]:
    """Every family and every way to pack; each of both comes once among the first four."""
    first_ones = [(family, NAMES[number % len(NAMES)]) for number, family in enumerate(FAMILIES)]
    return first_ones + [pair for pair in product(FAMILIES, NAMES) if pair not in first_ones]


@pytest.mark.parametrize(("family", "how"), first(2, pairs()))
def test_a_packed_file_gives_the_trace_of_its_content(family: str, how: str, tmp_path: Path) -> None:
    path = shared_data(FAMILIES[family])
    normalize([path], tmp_path / "plain")
    file = tmp_path / f"{path.name}.{SUFFIXES[how]}"
    file.write_bytes(packed(how, path.read_bytes()))
    found = normalize([file], tmp_path / "trace")
    assert rows(tmp_path / "trace") == rows(tmp_path / "plain")
    with Trace(tmp_path / "trace") as trace:
        assert trace.meta["files"][0]["name"] == file.name
        assert trace.meta["files"][0]["bytes"] == file.stat().st_size
    assert found.counts["slices"] > 0
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted(["plain", "trace", file.name])


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_a_packed_file_in_a_packed_file(layers: int, tmp_path: Path) -> None:
    content = json.dumps(document([op("aten::mm", 0, 9, 1)])).encode()
    for _ in range(layers):
        content = lzma.compress(content)
    (tmp_path / "x").write_bytes(content)
    if layers <= 3:
        assert normalize([tmp_path / "x"], tmp_path / "trace").counts["ops"] == 1
        return
    with pytest.raises(InputError, match=f"{tmp_path}/x is packed more than 3 times"):
        normalize([tmp_path / "x"], tmp_path / "trace")


def test_a_cut_recording_in_gzip_in_xz_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    content = gzip.compress(json.dumps(document([op("aten::mm", 0, 9, n) for n in range(5000)])).encode())
    (tmp_path / "x").write_bytes(lzma.compress(content[: len(content) // 2]))
    found = normalize([tmp_path / "x"], tmp_path / "trace")
    assert 0 < found.counts["ops"] < 5000
    assert [issue["code"] for issue in found.issues] == ["truncated"]


def test_a_cut_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = shared_data(FAMILIES["nsys"])
    whole = lzma.compress(path.read_bytes())
    (tmp_path / "x.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"x\.xz cannot be unpacked: its xz stream is cut or damaged"):
        normalize([tmp_path / "x.xz"], tmp_path / "trace")
    assert [item.name for item in tmp_path.iterdir()] == ["x.xz"]


def test_a_refusal_names_the_file_that_was_given(tmp_path: Path) -> None:
    """Not the unpacked one, which is gone when a person reads the message."""
    con = sqlite3.connect(tmp_path / "x.db")
    con.execute("CREATE TABLE rocpd_string (id INTEGER)")
    con.close()
    (tmp_path / "x.db.gz").write_bytes(gzip.compress((tmp_path / "x.db").read_bytes()))
    with pytest.raises(InputError) as refused:
        normalize([tmp_path / "x.db.gz"], tmp_path / "trace")
    assert str(tmp_path / "x.db.gz") in str(refused.value)
    assert "scratch" not in str(refused.value)


def test_what_does_not_fit_on_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file may hold a large one: unpacking stops while there is room left."""
    (tmp_path / "bomb").write_bytes(lzma.compress(b"SQLite format 3\0" + bytes(8 << 20)))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(unpacked, "CHECK_BYTES", 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12, unpacked.KEEP_FREE - 1))
    with pytest.raises(UnavailableError, match="bomb does not fit on the disk when it is unpacked"):
        normalize([tmp_path / "bomb"], tmp_path / "trace")
    assert [item.name for item in tmp_path.iterdir()] == ["bomb"]


def test_the_rank_of_a_packed_file_is_that_of_its_folder(tmp_path: Path) -> None:
    path = shared_data(FAMILIES["nsys"])
    (tmp_path / "rank4").mkdir()
    (tmp_path / "rank4" / "report.sqlite.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    normalize([tmp_path / "rank4" / "report.sqlite.gz"], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert trace.sql("SELECT DISTINCT rank, rank_guessed FROM processes").rows == [(4, False)]


def test_the_note_beside_a_packed_file_is_read(tmp_path: Path) -> None:
    content = json.dumps(document([op("aten::mm", 0, 9, 1)])).encode()
    (tmp_path / "x.json.xz").write_bytes(lzma.compress(content))
    note = StepsFile(6, 100, "explicit", "wall", Anchor(1, 2, 3), host="node7")
    (tmp_path / "steps.json").write_text(json.dumps(to_json(note)))
    normalize([tmp_path / "x.json.xz"], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert trace.sql("SELECT rank, host FROM processes").rows == [(6, "node7")]


def test_a_folder_with_packed_files(tmp_path: Path) -> None:
    """As it is written by rocprofv3, and packed file by file to save space."""
    source = shared_data("amd/rocprofv3-csv-strix-halo-llamacpp")
    shutil.copytree(source, tmp_path / "plain")
    (tmp_path / "plain").chmod(0o755)
    shutil.copytree(source, tmp_path / "packed")
    (tmp_path / "packed").chmod(0o755)
    for number, path in enumerate(sorted((tmp_path / "packed").iterdir())):
        if number % 2:
            path.with_name(path.name + ".xz").write_bytes(lzma.compress(path.read_bytes()))
            path.unlink()
    normalize([tmp_path / "plain"], tmp_path / "trace1")
    normalize([tmp_path / "packed"], tmp_path / "trace2")
    assert rows(tmp_path / "trace1") == rows(tmp_path / "trace2")
