"""The header of a CSV file, by its content."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from profrun.collectors.reading import Source
from profrun.collectors.rocprof.csvfile import Header, header


@pytest.mark.parametrize(
    ("head", "names"),
    [
        (b"Kind,Agent_Id\n1,2\n", ("kind", "agent_id")),
        (b'\xef\xbb\xbf"Kind","Name"\r\n', ("kind", "name")),
        (b"a,A,\n", ("a", "a.2", "column")),
        (b"one word\n", None),
        (b'{"a": 1, "b": 2}\n', None),
        (b"a,\xff\n", None),
        (b"", None),
    ],
)
def test_what_starts_like_a_csv(head: bytes, names: tuple[str, ...] | None) -> None:
    found = header(Source(Path("x"), head, False))
    assert (found.names if found else None) == names


def test_a_column_by_any_of_its_names() -> None:
    columns = Header(("start", "end"), ("Start", "End"))
    assert columns.has("start")
    assert not columns.has("start", "name")
    row = "(SELECT ' 12 ' AS start, '' AS \"end\")"
    sql = f"SELECT {columns.int('begin', 'start')}, {columns.text('end')}, {columns.text('name')} FROM {row}"
    assert duckdb.execute(sql).fetchall() == [(12, None, None)]
