"""The names in a trial's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.paths import OutsideError, TrialPaths, found_in, inside, is_plain_name


def test_steps_are_those_of_the_ranks_that_wrote_them(tmp_path: Path) -> None:
    trial = TrialPaths(tmp_path)
    for rank in (1, 0, 2):
        trial.rank(rank).mkdir(parents=True)
    for rank in (1, 0):
        (trial.rank(rank) / "steps.json").touch()
    assert trial.steps() == [tmp_path / "raw/rank0/steps.json", tmp_path / "raw/rank1/steps.json"]


MOVED_WHILE_READ = """
import sys
from pathlib import Path
from profrun.contract.paths import TrialPaths

folder = Path(sys.argv[1])

def move(event, arguments):  # before a folder is listed
    if event == "os.scandir" and folder.exists():
        folder.rename(folder.with_name("attempts"))

sys.addaudithook(move)
print(TrialPaths(folder).steps(), folder.exists())
"""
"""A program, since an audit hook stays. ``os.scandir`` cannot be replaced for pathlib in every Python."""


def test_a_folder_that_is_moved_while_it_is_read_has_no_files(tmp_path: Path) -> None:
    folder = tmp_path / "a[1]"
    (folder / "raw/rank0").mkdir(parents=True)
    (folder / "raw/rank0/steps.json").touch()
    assert found_in(folder, "raw/rank*/*") == [folder / "raw/rank0/steps.json"]
    command = [sys.executable, "-c", MOVED_WHILE_READ, str(folder)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[] False\n"


def test_no_two_files_share_a_name() -> None:
    trial = TrialPaths(Path("/t"))
    names = [name for name, found in vars(TrialPaths).items() if isinstance(found, property)]
    assert len({getattr(trial, name) for name in names}) == len(names) == 13


def test_samples_are_those_of_the_hosts_that_wrote_them(tmp_path: Path) -> None:
    trial = TrialPaths(tmp_path)
    for host in ("n2", "n1.cluster"):
        trial.samples_of(host).touch()
    assert trial.samples() == [tmp_path / "samples.n1.cluster.jsonl", tmp_path / "samples.n2.jsonl"]


NAMES = st.text(max_size=12) | st.lists(
    st.sampled_from(["..", ".", "", "a", "raw", "link", "/", "~", "a b", "\0", "\\", "C:"]), max_size=5
).map("/".join)


@given(NAMES)
def test_no_path_of_a_document_leads_out_of_its_folder(
    tmp_path_factory: pytest.TempPathFactory, named: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "home" / "trial"
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "a").mkdir()
        (folder / "link").symlink_to("/etc")
    try:
        found = inside(folder, named)
    except OutsideError:
        return
    assert found.resolve().is_relative_to(folder.resolve())
    assert ".." not in found.parts


@pytest.mark.parametrize(
    "named", ["../../../victim", "/etc/passwd", "raw/../../x", "", "link/passwd", "a\0b", "x" * 5000]
)
def test_paths_that_lead_out_are_refused(tmp_path: Path, named: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(OutsideError, match=r"is no path inside of|is a symbolic link out of"):
        inside(tmp_path, named)


def test_paths_that_stay_inside_are_joined(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for named in ("raw/rank0/a.json", "link/x", "..x", "a..b/c"):
        assert inside(tmp_path, named) == tmp_path / named


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\n", "\x1b[2J", "a/", "\0"])
def test_a_name_is_no_path(name: str) -> None:
    assert not is_plain_name(name)
    assert is_plain_name("000-base-none-r1")
