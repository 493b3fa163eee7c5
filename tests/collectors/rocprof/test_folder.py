"""A folder given instead of files."""

from __future__ import annotations

from pathlib import Path

from profrun.collectors.rocprof.folder import inside
from profrun.collectors.sniff import make_source


def test_readable_files_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x.csv").write_text("a,b\n")
    (tmp_path / "a.csv").write_text("a,b\n")
    (tmp_path / "empty.csv").touch()
    found = [source.path for source in inside(make_source(tmp_path))]
    assert found == [tmp_path / "a.csv", tmp_path / "b/x.csv"]
    assert [one.path for one in inside(make_source(tmp_path / "a.csv"))] == [tmp_path / "a.csv"]
