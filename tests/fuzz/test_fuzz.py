"""The short form of the fuzz suite, and every file that broke an earlier version.

``python -m tests.fuzz --seed 1 --count 20000`` is the long form.
"""

from __future__ import annotations

import lzma
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SHARED, missing
from tests.fuzz import child, damage
from tests.fuzz.families import FAMILIES

SECONDS = 60
"""CPU time of a hostile file: one takes 29 s on the machine on which it was found."""


@pytest.mark.thorough
def test_a_hundred_inputs_are_read_or_refused(tmp_path: Path) -> None:
    """In a process of its own: a fork of one with threads may wait for a lock that nobody gives back."""
    words = ["--seed", "20261127", "--count", "100", "--keep", str(tmp_path / "broken")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "100" in done.stdout


def hostile() -> list[Path]:
    folder = SHARED / "hostile"
    return sorted(path for path in folder.iterdir() if path.suffix != ".md") if folder.is_dir() else []


@pytest.mark.thorough
def test_files_that_broke_an_earlier_version_are_read_or_refused(tmp_path: Path) -> None:
    files = hostile() or missing(str(SHARED / "hostile"))
    child.load()
    for number, path in enumerate(files):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = path.read_bytes()
        name = path.name.removesuffix(".xz")
        (folder / name).write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
        lines = (("normalize", name, "-o", "t"), ("summary", "t"), ("diagnose", "t"))
        ended = child.carry_out(lines, folder)
        assert ended.outcome in ("read", "refused"), (path.name, ended)
        assert ended.seconds < SECONDS, (path.name, ended)


def in_child(tmp_path: Path, *words: str) -> child.Ended:
    """One command in a child; the program that runs the tests may have threads, the child needs none."""
    return child.carry_out((words,), tmp_path)


def test_a_child_that_answers_and_one_that_refuses(tmp_path: Path) -> None:
    assert in_child(tmp_path, "--version").outcome == "read"
    assert in_child(tmp_path, "nonsense").outcome == "refused"


def test_an_exception_a_limit_and_a_long_line_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from profrun import cli

    monkeypatch.setattr(cli, "run", lambda words: 1 // 0)
    assert in_child(tmp_path, "x").outcome == "crashed"
    monkeypatch.setattr(cli, "run", lambda words: 70)
    assert in_child(tmp_path, "x").outcome == "crashed"
    monkeypatch.setattr(cli, "run", lambda words: len(bytearray(8 << 30)))
    assert in_child(tmp_path, "x").outcome == "too big"

    def long(words: tuple[str, ...]) -> int:
        import sys

        sys.stderr.write("x" * 5000)
        return 65

    monkeypatch.setattr(cli, "run", long)
    assert in_child(tmp_path, "x").outcome == "crashed"
    monkeypatch.setattr(child, "CPU_SECONDS", 1)

    def endless(words: tuple[str, ...]) -> int:
        while True:
            pass

    monkeypatch.setattr(cli, "run", endless)
    assert in_child(tmp_path, "x").outcome == "too slow"


@pytest.mark.parametrize("change", [damage.of_bytes, damage.of_json, damage.of_csv])
def test_damage_depends_on_the_dice_alone(change: object) -> None:
    data = b'{"traceEvents": [{"name": "a", "ts": 1}, {"name": "b", "ts": 2}]}\n1,2\n3,4\n'
    made = [[change(data, random.Random(seed)) for seed in range(40)] for _ in range(2)]  # type: ignore[operator]
    assert made[0] == made[1]
    assert len(set(made[0])) > 10


def test_damage_of_a_database_depends_on_the_dice_alone(tmp_path: Path) -> None:
    dumps = []
    for seed in (1, 1, 2):
        path = tmp_path / "a.sqlite"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as con:
            con.execute("CREATE TABLE t (a INTEGER, b TEXT)")
            con.executemany("INSERT INTO t VALUES (?, ?)", [(n, str(n)) for n in range(200)])
        con.close()
        damage.of_sqlite(path, random.Random(seed))
        con = sqlite3.connect(path)
        dumps.append("\n".join(con.iterdump()))
        con.close()
    assert dumps[0] == dumps[1] != dumps[2]


def test_the_shares_of_the_families_are_whole() -> None:
    assert sum(share for _, share in FAMILIES.values()) == 100
