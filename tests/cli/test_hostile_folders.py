"""Folders of somebody else: each file of a run and of a trace is replaced by what should not be there, and
every command that looks at runs, carries them on or removes them is called.

No command may end in exit code 70 or wait, change a file outside of the folder, or run anything.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profrun.cli.bugs import BUG
from tests.cli.programs import STEPS, last_run, write_job
from tests.cli.running import Capture, call, program
from tests.conftest import first

PROGRAM = STEPS + "\nopen('ran', 'a').write('x')\n"

RUN_FILES = (
    "job.yaml",
    "resolved.yaml",
    "plan.json",
    "events.jsonl",
    "lock",
    "cancel",
    "driver.log",
    "comparison.json",
    "report.html",
    "bundle",
    "bundle/run.py",
    "bundle/site/sitecustomize.py",
    "trials",
    "TRIAL",
    "TRIAL/command.json",
    "TRIAL/exit.json",
    "TRIAL/provenance.json",
    "TRIAL/phase",
    "TRIAL/cancel",
    "TRIAL/live",
    "TRIAL/wrapper.log",
    "TRIAL/stdout.log",
    "TRIAL/stderr.log",
    "TRIAL/samples.h.jsonl",
    "TRIAL/hook",
    "TRIAL/raw",
    "TRIAL/raw/rank0",
    "TRIAL/raw/rank0/steps.json",
    "TRIAL/attempts",
    "TRIAL/trace",
)
TRACE_FILES = tuple(
    f"TRIAL/trace/{name}"
    for name in ("meta.json", "slices.parquet", "tracks.parquet", "step_times.parquet", "processes.parquet")
)


def _link(path: Path, victims: Path) -> None:
    path.symlink_to(victims / "file")


def _link_to_folder(path: Path, victims: Path) -> None:
    path.symlink_to(victims / "folder")


def _hard_link(path: Path, victims: Path) -> None:
    path.hardlink_to(victims / "file")


def _pipe(path: Path, victims: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path, victims: Path) -> None:
    path.mkdir()


def _deep(path: Path, victims: Path) -> None:
    path.write_text("[" * 200_000)


def _empty(path: Path, victims: Path) -> None:
    path.touch()


def _huge(path: Path, victims: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 33)


def _types(path: Path, victims: Path) -> None:
    """JSON of the same keys, with values of other types."""
    path.write_text(json.dumps(dict.fromkeys(("format", "trials", "state", "steps", "event", "ts"), "x")))


Damage = Callable[[Path, Path], None]
DAMAGES: tuple[Damage, ...] = (
    _link,
    _link_to_folder,
    _hard_link,
    _pipe,
    _folder,
    _deep,
    _empty,
    _huge,
    _types,
)
WORST = [("lock", _link), ("events.jsonl", _pipe)]
"""Two that are always tried; of all others, in an order drawn by a seed, a tenth with ``-m thorough``."""
REST = [
    (name, damage) for name in RUN_FILES + TRACE_FILES for damage in DAMAGES if (name, damage) not in WORST
]
random.Random(17).shuffle(REST)
LONG = os.environ.get("PROFRUN_FUZZ") == "thorough"
"""All of them, which takes half an hour of a core; otherwise a tenth."""

COMMANDS = (
    ("status", "RUN"),
    ("status", "RUN", "--json"),
    ("runs",),
    ("logs", "RUN"),
    ("report", "RUN"),
    ("summary", "RUN/0"),
    ("summary", "TRACE"),
    ("compare", "RUN/0", "RUN/0"),
    ("cancel", "RUN", "--now"),
    ("resume", "RUN"),
    ("rm", "RUN", "--raw", "--yes"),
    ("resume", "RUN", "--yes"),
    ("rm", "RUN", "--yes"),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a trace, as it is sent."""
    here = tmp_path_factory.mktemp("sender")
    done = program("submit", write_job(here, PROGRAM), cwd=here)
    assert done.code == 0, done.err
    return last_run(here).path


@pytest.fixture
def victims(tmp_path: Path) -> Iterator[Path]:
    """Files of the user; after the test they are as they were."""
    folder = tmp_path / "victims"
    for name in ("file", "folder/run.py", "folder/meta.json", "folder/rank0/steps.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"mine": true}\n')
    before = _content(folder)
    yield folder
    assert _content(folder) == before


def _content(folder: Path) -> dict[str, tuple[bytes, int] | None]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def _received(finished: Path, here: Path, name: str, damage: Damage, victims: Path) -> Path:
    """The run as it is received, with one thing in it replaced."""
    run = Path(shutil.copytree(finished, here / "runs" / finished.name))
    (trial,) = (run / "trials").iterdir()
    path = run / name.replace("TRIAL", f"trials/{trial.name}")
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    damage(path, victims)
    return run


@pytest.mark.parametrize(("name", "damage"), first(len(WORST), [*WORST, *(REST if LONG else REST[:30])]))
def test_no_folder_breaks_a_command_or_reaches_out_of_itself(
    finished: Path, here: Path, victims: Path, capsys: Capture, name: str, damage: Damage
) -> None:
    run = _received(finished, here, name, damage, victims)
    trace = next(finished.glob("trials/*/trace"))
    words = {"RUN": run, "RUN/0": f"{run}/0", "TRACE": run / trace.relative_to(finished)}
    for command in COMMANDS:
        done = call(capsys, *(words.get(word, word) for word in command))
        said = f"{' '.join(command)}: {done.err[-2000:]}"
        assert done.code != BUG, said
        assert "Traceback" not in done.err, said
        assert len(done.err) < 20_000, said
        if "--yes" not in command or "rm" in command:
            assert not (here / "ran").exists(), said


DOCUMENTS = (
    "TRIAL/exit.json",
    "plan.json",
    "TRIAL/trace/meta.json",
    "TRIAL/command.json",
    "TRIAL/provenance.json",
    "TRIAL/raw/rank0/steps.json",
    "comparison.json",
)
VALUES: tuple[object, ...] = (
    None,
    "x",
    [],
    {},
    -1,
    [[{}]],
    {"a": {"b": 1}},
    True,
    10**18,
    10**30,
    "\ud800",
    "../../../victims/file",
)
LOOKS = (
    ("status", "RUN"),
    ("status", "RUN", "--json"),
    ("report", "RUN"),
    ("summary", "TRACE"),
    ("logs", "RUN"),
)


def _places(document: Any) -> list[tuple[str | int, ...]]:
    """Where values of a document are: its keys, and those of what lies one level deeper."""
    found: list[tuple[str | int, ...]] = [(key,) for key in document]
    for key, value in document.items():
        if isinstance(value, dict):
            found += [(key, inner) for inner in value]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found += [(key, 0, inner) for inner in value[0]]
    return found


@pytest.mark.parametrize(
    ("count", "name"), first(1, [(4, DOCUMENTS[0]), *((60 if LONG else 6, name) for name in DOCUMENTS)])
)
def test_no_value_of_a_document_breaks_a_command(
    finished: Path, here: Path, capsys: Capture, count: int, name: str
) -> None:
    run = Path(shutil.copytree(finished, here / "runs" / finished.name))
    (trial,) = (run / "trials").iterdir()
    path = run / name.replace("TRIAL", f"trials/{trial.name}")
    words = {"RUN": run, "TRACE": trial / "trace"}
    sound = path.read_text()
    tried = [(place, value) for place in _places(json.loads(sound)) for value in VALUES]
    for place, value in random.Random(f"{name} {count}").sample(tried, min(count, len(tried))):
        document = json.loads(sound)
        holder = document
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
        path.write_text(json.dumps(document))
        for command in LOOKS:
            done = call(capsys, *(words.get(word, word) for word in command))
            assert done.code != BUG, f"{place} = {value!r}: {command}: {done.err[-2000:]}"
    assert not (here / "ran").exists()
