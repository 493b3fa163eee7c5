"""``profrun bundle``: what is handed on can be opened, and holds no secret."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tarfile
from pathlib import Path

import pytest

from profrun.store.improvement import Improvement, write_improvement
from profrun.store.runs import Run
from tests.cli.running import call
from tests.conftest import unpack
from tests.contract.planted import PLANTED, R

PROGRAM = """
import profrun
for _ in range(6):
    with profrun.range("part"):
        profrun.step()
print("done")
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finished run whose job has a secret."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("work.py").write_text(PROGRAM)
    spec = {
        "name": "t",
        "image": "none",
        "command": f"python work.py --api-key {R}",
        "collectors": ["none"],
        "sample": "off",
    }
    Path("job.yaml").write_text(json.dumps(spec))
    done = call(capsys, "submit", "job.yaml")
    assert done.code == 0, done.err
    (found,) = Path("runs").iterdir()
    return found.absolute()


def test_what_is_packed_opens_as_a_run_and_holds_no_secret(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_improvement(Run(run), Improvement(run.name, "default", done=True))
    done = call(capsys, "bundle", "last", "--json")
    assert done.code == 0, done.err
    archive = Path(f"{run.name}.tar.gz")
    assert done.json["size"] == archive.stat().st_size
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        unpack(packed, Path("there"))
    inside = {name.partition("/")[2] for name in names}
    assert {"MANIFEST.json", "job.yaml", "plan.json", "report.html", "comparison.json"} <= inside
    assert "improvement.json" in inside
    assert any(name.endswith("/summary.json") for name in inside)
    assert any(name.endswith("/trace/meta.json") for name in inside)
    assert not [
        name for name in inside if name.endswith((".log", "private.json")) or name.startswith("bundle/")
    ]
    there = Path("there") / run.name
    sums = json.loads((there / "MANIFEST.json").read_text())["sha256"]
    assert len(sums) == len(names) - 1 == done.json["files"] - 1
    for name, digest in sums.items():
        data = (there / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        assert R.encode() not in data
    for words in (["status"], ["report"], ["summary"]):
        again = call(capsys, *words, f"{there}/000" if words == ["summary"] else there)
        assert again.code == 0, again.err
    resumed = call(capsys, "submit", there / "resolved.yaml")
    assert resumed.code == 64
    assert "in the place of a secret" in resumed.err


@pytest.mark.thorough
def test_the_same_run_gives_the_same_bytes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        assert call(capsys, "bundle", run, "--out", name).code == 0
    assert Path("a.tar.gz").read_bytes() == Path("b.tar.gz").read_bytes()
    assert call(capsys, "bundle", run, "--out", "a.tar.gz").code == 64


@pytest.mark.parametrize("kind", ["known", "GitHub token"])
def test_a_secret_in_a_file_refuses_the_archive_and_is_not_shown(
    run: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    (log,) = run.glob("trials/*/stdout.log")
    log.write_text(f"one\ntwo {R if kind == 'known' else PLANTED[kind]}\n")
    assert call(capsys, "bundle", run, "--out", "plain.tar.gz").code == 0
    done = call(capsys, "bundle", run, "--raw", "--out", "raw.tar.gz")
    assert done.code == 65
    assert "stdout.log, line 2" in done.err
    assert R not in done.err
    assert not Path("raw.tar.gz").exists()


@pytest.mark.thorough
def test_a_folder_of_an_older_profrun_is_packed_without_its_secrets(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = json.loads((run / "private.json").read_text())
    (run / "job.yaml").write_text(private["job"])
    (run / "resolved.yaml").write_text(private["resolved"])
    (run / "private.json").unlink()
    for path in (run / "plan.json", next(run.glob("trials/*/command.json"))):
        path.write_text(path.read_text().replace("<redacted>", R))
    done = call(capsys, "bundle", run, "--out", "old.tar.gz")
    assert done.code == 0, done.err
    with tarfile.open("old.tar.gz") as packed:
        for member in packed.getmembers():
            file = packed.extractfile(member)
            assert file is not None
            assert R.encode() not in file.read(), member.name
