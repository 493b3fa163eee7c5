"""Which source a report embeds: what lies round the lines with most GPU time; why something is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from profrun.analysis.trace.line_table import PlaceRow, PlaceTable
from profrun.contract.redact import Redactor
from profrun.contract.source_digests import digests_of
from profrun.reports.content import Source
from profrun.runner import source_text
from profrun.runner.source_text import source_of


def table(shares: Mapping[tuple[str, int], float]) -> PlaceTable:
    rows = [
        PlaceRow("f", file, line, round(share * 1000), 0, 0, 1, ("k",), share)
        for (file, line), share in shares.items()
    ]
    return PlaceTable("line", 1, 1000, tuple(rows), {})


def source(shares: Mapping[tuple[str, int], float], recorded_ns: int | None = None) -> Source:
    return source_of(table(shares), Redactor(), recorded_ns)


def program(folder: Path, lines: int = 100, name: str = "model.py") -> str:
    path = folder / name
    path.write_text("".join(f"x = {number}\n" for number in range(1, lines + 1)))
    return str(path)


def test_lines_round_those_of_one_per_cent_or_more(tmp_path: Path) -> None:
    """Stretches that touch are one; they end with the file; a line of less is in none of its own."""
    file = program(tmp_path)
    found = source({(file, 2): 0.5, (file, 15): 0.3, (file, 60): 0.009, (file, 98): 0.01})
    assert [(block.first, block.first + len(block.lines) - 1) for block in found.blocks] == [
        (1, 21),
        (92, 100),
    ]
    assert found.blocks[0].lines[:2] == ("x = 1", "x = 2")
    assert not found.notes


def test_at_most_so_many_lines_have_their_source_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_text, "MOST", 1)
    file = program(tmp_path)
    found = source({(file, 50): 0.5, (file, 80): 0.2, (file, 10): 0.1})
    assert [block.first for block in found.blocks] == [44]
    assert found.notes == ("2 further lines of 1.0 % or more not shown",)


def test_what_is_not_shown_is_said(tmp_path: Path) -> None:
    real = program(tmp_path, 3)
    (tmp_path / "link.py").symlink_to(real)
    (tmp_path / "key.pem").write_text("secret")
    (tmp_path / "folder.py").mkdir()
    missing = [str(tmp_path / name) for name in ("gone.py", "link.py", "key.pem", "folder.py")]
    found = source(dict.fromkeys([*((name, 1) for name in missing), ("own.py", 1), (real, 9)], 0.1))
    assert list(found.notes) == [
        f"{tmp_path}/gone.py is not shown: it is not on this machine",
        f"{tmp_path}/link.py is not shown: it is a symbolic link",
        f"{tmp_path}/key.pem is not shown: only files that end in .py are read",
        f"{tmp_path}/folder.py is not shown: it is a folder",
        "own.py is not shown: the recording has no whole path of it",
        f"{real} has 3 lines now: line 9 is not shown",
    ]
    assert not found.blocks


def test_a_file_that_was_changed_after_the_recording_is_shown_and_named(tmp_path: Path) -> None:
    file = program(tmp_path)
    os.utime(file, ns=(10**18, 10**18))
    assert not source({(file, 5): 0.5}, recorded_ns=10**18 + 1).notes
    found = source({(file, 5): 0.5}, recorded_ns=10**18 - 1)
    assert found.notes == (f"{file} was changed after the recording: its lines may be others now",)
    assert len(found.blocks) == 1


def test_a_change_is_told_by_the_lines_where_the_mapping_knows_them(tmp_path: Path) -> None:
    file = program(tmp_path)
    known = digests_of(Path(file).read_text())
    for before, notes in ((known, 0), ((*known[:4], "other", *known[5:]), 1), (known[:-1], 1)):
        found = source_of(table({(file, 5): 0.5}), Redactor(), 0, {file: before})
        assert len(found.notes) == notes


def test_a_program_without_such_a_line_says_so(tmp_path: Path) -> None:
    assert source({(program(tmp_path), 1): 0.001}) == Source((), ("no line has 1.0 % of the GPU time",))


def test_a_long_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"x = '{'y' * 1000}'\n")
    (block,) = source({(str(tmp_path / "a.py"), 1): 1.0}).blocks
    assert (len(block.lines[0]), block.lines[0][-4:]) == (source_text.WIDTH + 4, " ...")
