"""The bundle beside the trials: made once, and another version's is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profrun.in_job import wrap_bundle
from profrun.in_job.wrap_bundle import place, place_from_file
from profrun.plans.bundle import bundle_files, place_bundle, write_pyz


def fill(text: str, folder: Path) -> None:
    (folder / "run.py").write_text(text)


def test_it_is_made_once(tmp_path: Path) -> None:
    made = []

    def write(folder: Path) -> None:
        made.append(folder)
        fill("a", folder)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: place(tmp_path / "bundle", "d1", write), range(8)))
    assert set(found) == {tmp_path / "bundle"}
    assert place(tmp_path / "bundle", "d1", write) == tmp_path / "bundle"
    assert len(made) == 1, "by one of those that came at the same time"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"], "nothing half is left"


def test_that_of_another_version_is_left_alone(tmp_path: Path) -> None:
    place(tmp_path / "bundle", "d1", lambda folder: fill("a", folder))
    other = place(tmp_path / "bundle", "0123456789", lambda folder: fill("b", folder))
    assert other == tmp_path / "bundle.01234567"
    assert (tmp_path / "bundle/run.py").read_text() == "a"
    assert place(tmp_path / "bundle", "0123456789", lambda folder: fill("c", folder)) == other
    assert (other / "run.py").read_text() == "b"


def test_where_the_first_was_killed_another_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrap_bundle, "PATIENCE_S", 0.2)
    (tmp_path / ".bundle.making").mkdir()
    place(tmp_path / "bundle", "d1", lambda folder: fill("a", folder))
    assert (tmp_path / "bundle/run.py").read_text() == "a"


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        place(tmp_path / "bundle", "d", write)
    assert list(tmp_path.iterdir()) == []


def test_the_file_and_an_installed_profrun_have_the_same_bundle(tmp_path: Path) -> None:
    write_pyz(tmp_path / "wrap.pyz")
    assert place_from_file(tmp_path / "wrap.pyz", tmp_path / "bundle") == tmp_path / "bundle"
    assert place_bundle(tmp_path / "bundle") == tmp_path / "bundle"
    for name, content in bundle_files().items():
        assert (tmp_path / "bundle" / name).read_bytes() == content
    again = tmp_path / "again.pyz"
    write_pyz(again)
    assert again.read_bytes() == (tmp_path / "wrap.pyz").read_bytes(), "the same tree gives the same file"


def test_the_file_alone_records_without_profrun(tmp_path: Path) -> None:
    write_pyz(tmp_path / "wrap.pyz")
    done = subprocess.run(
        [
            *(sys.executable, "-S", str(tmp_path / "wrap.pyz"), "--out", "out", "-c", "none", "--"),
            *(sys.executable, "-S", "-c", "print('it ran')"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr
    ended = json.loads((tmp_path / "out/trials/000-default-none-r1/exit.json").read_text())
    assert ended["state"] == "finished"
