"""The top of the command line: exit codes, messages, lazy commands, speed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import profrun.cli as cli
from profrun import __version__
from profrun.cli.app import COMMANDS, load_command
from profrun.errors import (
    FailedError,
    InconclusiveError,
    InputError,
    ProfrunError,
    UnavailableError,
    UsageError,
)
from profrun.store.runs import Run
from tests.cli.cost import JOB, quiet, times_the_smallest
from tests.cli.running import Capture, call
from tests.conftest import ROOT

NAMES = [name for section in COMMANDS.values() for name in section]


def test_help_lists_every_command_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = call(capsys, "--help")
    assert done.code == 0
    for name in NAMES:
        assert f"\n  {name} " in done.out
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_a_command_says_of_itself_what_the_list_says(name: str) -> None:
    said = next(section[name] for section in COMMANDS.values() if name in section)
    assert (load_command(name).help or "").strip().splitlines()[0] == said


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_is_in_the_docs(name: str) -> None:
    page = (ROOT / "docs/cli.md").read_text()
    assert f"profrun {name}" in page
    command = load_command(name)
    for part in [command, *getattr(command, "commands", {}).values()]:
        for parameter in part.params:
            for option in getattr(parameter, "opts", []):
                if option.startswith("--") and option not in ("--help", "--json", "--runs"):
                    assert option in page, f"docs/cli.md does not know {option} of {name}"


def test_alone_it_says_what_to_do_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    assert "profrun run -- python train.py" in call(capsys).out
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/x.yaml").touch()
    (tmp_path / "runs/x-1").mkdir(parents=True)
    (tmp_path / "runs/x-1/events.jsonl").touch()
    out = call(capsys).out
    assert "profrun submit jobs/x.yaml" in out
    assert "profrun status last" in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version").out == f"profrun {__version__}\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["statuss"], "no command 'statuss'; did you mean 'status'?"),
        (["xyzzy"], "no command 'xyzzy'; see `profrun --help`"),
        (["submit"], "Missing argument 'JOB'"),
        (["submit", "--frobnicate"], "No such option: --frobnicate"),
        (["job"], "Missing command"),
        (["submit", "nowhere.yaml"], "there is no job spec at nowhere.yaml"),
        (["submit", "nowhere.yaml", "--backend", "moon"], "there is no job spec"),
        (["--frobnicate"], "No such option: --frobnicate"),
    ],
)
def test_wrong_usage_is_64_and_words_on_stderr(
    capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    done = call(capsys, *args)
    assert done.code == 64
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FailedError, 1),
        (InconclusiveError, 2),
        (UsageError, 64),
        (InputError, 65),
        (UnavailableError, 69),
    ],
)
def test_every_error_has_its_code_and_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: type[ProfrunError], code: int
) -> None:
    def fail(args: object) -> int:
        raise error("it broke", why="because", fix="mend it")

    monkeypatch.setattr(cli, "_run", fail)
    done = call(capsys, "x")
    assert (done.code, done.out, done.err) == (code, "", "profrun: it broke: because; mend it\n")


def test_a_bug_is_one_line_and_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(args: object) -> int:
        raise KeyError("surprise")

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = call(capsys, "x")
    assert done.code == 70
    assert done.err.count("\n") == 1
    assert "bug in profrun (KeyError: 'surprise')" in done.err
    (crash,) = (tmp_path / "profrun").iterdir()
    assert str(crash) in done.err
    assert "Traceback" in crash.read_text()


def test_too_few_descriptors_are_one_line_and_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none_left(*args: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def fails(args: object) -> int:
        monkeypatch.setattr(os, "open", none_left)
        raise FileNotFoundError(
            errno.ENOENT, "No usable temporary directory found"
        )  # of tempfile, for want of one

    monkeypatch.setattr(cli, "_run", fails)
    code = cli.run(["runs"])
    monkeypatch.undo()
    assert code == 69
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("profrun: no further file can be opened: Too many open files; raise the limit")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("args", ["job schema", "--version"], ids=["long", "short"])
def test_a_full_disk_under_stdout_is_one_line_and_no_bug(args: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m profrun.cli {args} > /dev/full",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 69
    assert done.stderr == (
        "profrun: what is printed cannot be written: No space left on device; free some space, or write to "
        "another place\n"
    )


def test_a_limit_on_the_size_of_files_is_one_line_and_no_bug(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 0; {sys.executable} -m profrun.cli job schema > schema.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 69
    assert done.stderr.startswith("profrun: a file would be larger than this process may write; raise")
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m profrun.cli job schema | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "{\n"
    assert done.stderr == ""


def test_help_and_import_load_nothing_heavy() -> None:
    program = (
        "import sys, profrun; from profrun.cli import run; run(['--help']); "
        "heavy = {'torch', 'duckdb', 'docker', 'numpy', 'rich', 'yaml', 'msgspec', 'kubernetes'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("args", "limit"), [(["--help"], 0.8), (["submit", "JOB", "--dry-run"], 2.0)])
def test_it_answers_fast(args: list[str], limit: float, tmp_path: Path) -> None:
    """In no repository: in a fresh clone git reads every file when it is asked what has changed."""
    shutil.copytree(ROOT / "jobs", tmp_path / "jobs")
    words = [str(tmp_path / "jobs" / Path(JOB).name) if word == "JOB" else word for word in args]
    assert times_the_smallest(lambda: quiet("-m", "profrun.cli", *words), limit) < limit


def test_ctrl_c_is_one_word_and_not_a_success(
    run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes: here while a command reads the runs."""

    def pressed(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("profrun.store.runs.all_runs", pressed)
    done = call(capsys, "runs")
    assert (done.code, done.out.strip(), done.err.split()) == (1, "", ["profrun:", "interrupted"])
