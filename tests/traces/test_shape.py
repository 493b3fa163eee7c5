"""Opening a trace whose columns or meta.json are not what the format says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from profrun.errors import InputError
from profrun.traces.shape import meta_problem
from profrun.traces.trace import Trace
from tests.tracekit import make_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_trace(tmp_path / "t", [("kernel", "gemm", 0, 5, "stream 7")]).close()
    return tmp_path / "t"


def test_a_table_in_place_of_another_is_refused_by_name(folder: Path) -> None:
    shutil.copy(folder / "tracks.parquet", folder / "ops.parquet")
    with pytest.raises(InputError, match=r"breaks the trace format: ops\.slice is missing .* and \d+ more"):
        Trace(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("files", 5),
        ("counts", []),
        ("job", "x"),
        ("job", {"variant": 5}),
        ("vendor", None),
        ("clocks", [1]),
        ("\udfff", 1),
    ],
)
def test_meta_of_another_shape_is_refused(folder: Path, key: str, value: Any) -> None:
    meta = json.loads((folder / "meta.json").read_text()) | {key: value}
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match=r"meta\.json cannot be read") as caught:
        Trace(folder)
    assert "\n" not in str(caught.value)


def test_deep_values_are_a_problem_and_no_error() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = [value]
    assert meta_problem({"extra": {"a": value}}) == "its values are nested too deeply"


def test_an_unexpected_error_is_the_fault_of_a_trace_that_breaks_its_format(folder: Path) -> None:
    with Trace(folder) as trace:
        trace.tables.execute("CREATE OR REPLACE VIEW kernels AS SELECT 1 AS slice")
    (folder / "tracks.parquet").write_bytes((folder / "tracks.parquet").read_bytes()[:-9] + b"damaged!!")
    with pytest.raises(InputError):
        Trace(folder)


def test_an_unexpected_error_with_a_sound_trace_stays_what_it_is(folder: Path) -> None:
    with pytest.raises(IndexError, match="a bug"), Trace(folder):
        raise IndexError("a bug")


def test_a_page_that_cannot_be_unpacked_is_damage(folder: Path) -> None:
    import duckdb

    file = folder / "kernels.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + b"\xff\xff" + whole[6:])  # the first page, which follows the magic bytes
    duckdb.execute(f"DESCRIBE SELECT * FROM '{file}'")
    with pytest.raises(duckdb.Error):
        duckdb.execute(f"SELECT * FROM '{file}'").fetchall()
    with pytest.raises(InputError, match="is damaged"), Trace(folder) as trace:
        trace.tables.execute("SELECT * FROM kernels").fetchall()


def test_rows_that_point_nowhere_are_told_when_something_fails_by_them(folder: Path) -> None:
    import duckdb

    file = folder / "slices.parquet"
    moved = f"COPY (SELECT * REPLACE (99 AS track) FROM read_parquet('{file}')) TO '{folder / 'new'}'"
    duckdb.execute(moved + " (FORMAT parquet)")
    (folder / "new").replace(file)
    with pytest.raises(InputError, match=r"is damaged: .*track that is not in tracks"), Trace(folder):
        raise IndexError("index 99 is out of bounds")


def test_a_column_whose_name_is_no_text_is_refused(folder: Path) -> None:
    file = folder / "slices.parquet"
    file.write_bytes(file.read_bytes().replace(b"ts_ns", b"ts\xff\xfes"))
    with pytest.raises(InputError, match="cannot be read"):
        Trace(folder)
