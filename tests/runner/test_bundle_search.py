"""Secrets are found in texts, in packed files and in columns of traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pytest

from profrun.errors import InputError
from profrun.runner.bundle_search import KNOWN, Place, Search
from tests.contract.planted import PLANTED


@pytest.mark.parametrize("kind", PLANTED)
def test_every_planted_kind_is_found_in_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    text = f"a\nb\nc {PLANTED[kind]} d\n"
    plain, packed, table = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "a.parquet"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (name VARCHAR, n INTEGER)")
        con.execute("INSERT INTO t VALUES ('plain', 1), (?, 2)", [text])
        con.execute(f"COPY t TO '{table}' (FORMAT parquet)")
    assert Place("f", "line 3", kind) in list(Search().file(plain, "f"))
    assert Place("f", "line 3", kind) in list(Search().file(packed, "f"))
    assert Place("f", "column name", kind) in list(Search().file(table, "f"))


def test_a_known_value_is_found_as_files_spell_it(tmp_path: Path) -> None:
    value = 'ab"c<d>&é/f g'
    path = tmp_path / "f"
    for text in (
        value,
        'ab\\"c<d>&\\u00e9/f g',
        "ab&quot;c&lt;d&gt;&amp;é/f g",
        "ab%22c%3Cd%3E%26%C3%A9/f%20g",
    ):
        path.write_text(f"x {text} y", encoding="utf-8")
        assert [place.kind for place in Search((value,)).file(path, "f")] == [KNOWN], text


def test_a_damaged_file_is_not_passed_as_searched(tmp_path: Path) -> None:
    for name in ("a.gz", "a.parquet"):
        (tmp_path / name).write_bytes(b"no such thing")
        with pytest.raises(InputError, match="cannot be searched"):
            list(Search().file(tmp_path / name, name))
