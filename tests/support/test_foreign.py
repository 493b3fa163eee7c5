"""Recordings are read on Windows and macOS as on Linux, and programs are run on Linux only.

No such system is here: profrun runs without what Python does not have there (``tests.support.foreign``).
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, unpack
from tests.support.foreign import is_missing, missing_names

RECORDING = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"
RUN = ROOT / "tests/data/h200/programs/pageable.tar.xz"
READ = (
    ["normalize", "plain.json", "-o", "plain"],
    ["normalize", "packed.json.gz", "-o", "packed"],
    ["summary", "plain"],
    ["summary", "plain", "--json"],
    ["diagnose", "plain"],
    ["query", "plain", "SELECT * FROM kernels", "--csv"],
    ["compare", "plain", "vs", "packed"],
    ["export", "plain", "--to", "perfetto", "-o", "exported.pftrace"],
    ["export", "plain", "--to", "chrome", "-o", "exported.json"],
    ["report", "plain", "--out", "trace.html"],
    ["status", "runs/pageable"],
    ["report", "runs/pageable", "--out", "run.html"],
    ["runs", "--runs", "runs"],
    ["job", "check", "work.yaml"],
)
"""Everything that reads: it ends and prints as on Linux."""
RUN_ON_LINUX = (
    ["submit", "work.yaml"],
    ["submit", "work.yaml", "--dry-run"],
    ["run", "--", "true"],
    ["resume", "runs/pageable"],
    ["wrap", "-o", "wrapped", "--", "true"],
    ["doctor"],
)


@dataclass(frozen=True)
class Answer:
    """What a command line answered: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def answers(system: str, folder: Path, commands: tuple[list[str], ...]) -> list[Answer]:
    """Carry out command lines on a system, all in one process and in a folder."""
    folder.mkdir()
    (folder / "packed.json.gz").write_bytes(RECORDING.read_bytes())
    (folder / "plain.json").write_bytes(gzip.decompress(RECORDING.read_bytes()))
    (folder / "work.yaml").write_text("name: work\ncommand: 'true'\n", encoding="utf-8")
    with tarfile.open(RUN) as archive:
        unpack(archive, folder / "runs")
    strict = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]  # UTF-8 is no default there
    done = subprocess.run(
        [sys.executable, *strict, "-m", "tests.support.foreign", system],
        input="".join(json.dumps(words) + "\n" for words in commands),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Answer(**json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def on_linux(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    """What Linux answers."""
    found = answers("linux", tmp_path_factory.mktemp("systems") / "folder", READ)
    assert {one.code for one in found} <= {0, 2}, found
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_recordings_are_read_as_on_linux(system: str, tmp_path: Path, on_linux: list[Answer]) -> None:
    found = answers(system, tmp_path / "folder", READ)
    for words, here, there in zip(READ, on_linux, found, strict=True):
        assert there.code == here.code, f"{words}: {there.err}"
        if words[0] not in ("normalize", "report"):  # these print how long they took
            assert there.out == here.out, words


@pytest.mark.thorough
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_programs_are_run_on_linux_only_and_one_line_says_so(system: str, tmp_path: Path) -> None:
    for words, answer in zip(RUN_ON_LINUX, answers(system, tmp_path / "folder", RUN_ON_LINUX), strict=True):
        assert answer.code == 69, words
        assert "needs Linux: this is " in answer.err, words
        assert answer.err.count("\n") == 1, words


def test_what_python_lacks_elsewhere_is_known() -> None:
    assert {"fork", "pread", "getuid", "fchmod", "posix_spawn"} <= missing_names("os", "win32")
    assert {"SIGKILL", "SIGHUP"} <= missing_names("signal", "win32")
    assert "sched_getaffinity" in missing_names("os", "darwin")
    assert "getuid" not in missing_names("os", "darwin")
    assert [is_missing(name, "win32") for name in ("fcntl", "pwd", "json")] == [True, True, False]
    assert not is_missing("fcntl", "darwin")
    assert missing_names("os", "linux") == frozenset()
