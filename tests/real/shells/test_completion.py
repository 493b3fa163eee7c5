"""The completion scripts in the shells themselves: a user types a word and presses the tabulator."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import need_tool
from tests.runner.test_removal import ended_run

pytestmark = pytest.mark.shells
PATIENCE_S = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run of which trial 0 has a trace, with a trace file and a folder."""
    run = ended_run(tmp_path / "runs")
    run.path.rename(run.path.with_name("mlp-20260102T030405Z-00ff"))
    (tmp_path / "recording.json.gz").touch()
    (tmp_path / "subfolder").mkdir()
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    """The shell finds this profrun, and no start files of the user."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(home), "TERM": "dumb", "PROFRUN_RUNS": "runs"}


def bash(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word: the function that it calls at the tabulator."""
    script = (
        'source <(profrun completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        'complete -p profrun | grep -q -- "-o default" || exit 9\n'
        '_profrun_completion profrun; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return offered([need_tool("bash"), "--norc", "-c", script, "bash", "profrun", *words], folder)


def fish(folder: Path, *words: str) -> list[str]:
    """What fish offers for the last word, without the lines beside the words."""
    script = "profrun completion fish | source; complete -C $argv[1]"
    line = " ".join(["profrun", *words])
    return [word.partition("\t")[0] for word in offered([need_tool("fish"), "-c", script, line], folder)]


def offered(command: list[str], folder: Path) -> list[str]:
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if line]


CASES = [
    (["su"], ["submit", "summary"]),
    (["baseline", "s"], ["save"]),
    (["submit", "--det"], ["--detach"]),
    (["status", ""], ["last", "mlp-20260102T030405Z-00ff"]),
    (["logs", "last", "00"], ["000-a-none-r1"]),
    (["logs", "last", "0"], ["000-a-none-r1"]),
    (["summary", "ml"], ["mlp-20260102T030405Z-00ff/000-a-none-r1"]),
    (["summary", "last/"], ["last/000-a-none-r1"]),
    (["open", "--runs", "runs", "mlp"], ["mlp-20260102T030405Z-00ff"]),
    (["compare", "last/a"], ["last/a-none"]),
    (["compare", "last/a-none", "v"], ["vs"]),
    (["submit", "--backend", "s"], ["slurm"]),
    (["export", "--to", "c"], ["chrome"]),
    (["doctor", "nc"], ["ncu"]),
    (["blocking", "--variant", ""], ["a", "b"]),
]


@pytest.mark.parametrize(("words", "wanted"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_bash_and_fish_offer_the_same(words: list[str], wanted: list[str], folder: Path) -> None:
    assert sorted(bash(folder, *words)) == wanted
    assert sorted(fish(folder, *words)) == wanted


def test_where_no_word_fits_files_are_offered(folder: Path) -> None:
    assert bash(folder, "summary", "rec") == []  # then bash itself completes: `complete -o default`
    assert fish(folder, "summary", "rec") == ["recording.json.gz"]
    assert fish(folder, "normalize", "rec") == ["recording.json.gz"]


def test_a_mistake_before_the_word_says_nothing(folder: Path) -> None:
    for words in (
        ["no-such-command", "x"],
        ["summary", "--no-such-option", "x"],
        ["status", "--runs", "/no", "x"],
    ):
        assert bash(folder, *words) == []


class Terminal:
    """An interactive shell on a pseudo-terminal."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.ours, theirs = pty.openpty()
        self.child = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def type(self, text: str, until: str) -> str:
        """Type, and wait for a text on the screen.

        Returns:
            What the screen showed since.
        """
        start = len(self.seen)
        os.write(self.ours, text.encode())
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(until, self.seen[start:]):
            assert time.monotonic() < deadline, self.seen
            if select.select([self.ours], [], [], 1)[0]:
                self.seen += os.read(self.ours, 4096).decode(errors="replace")
        return self.seen[start:]

    def close(self) -> None:
        """End the shell."""
        self.child.kill()
        self.child.wait()
        os.close(self.ours)


def test_zsh_completes_what_is_typed(folder: Path) -> None:
    zsh = Terminal([need_tool("zsh"), "-f", "-i"], folder)
    try:
        zsh.type(
            "PS1='READY> '; source <(profrun completion zsh); echo lo''aded\n", r"(?s)loaded\r?\n.*READY> "
        )
        zsh.type("profrun summ\t", r"summary ")
        zsh.type("ml\t", r"mlp-20260102T030405Z-00ff/000-a-none-r1 ")
        zsh.type("\x15profrun status la\t", r"status last ")
        zsh.type("\x15profrun baseline \t", r"(?s)compare .*list .*save ")
        zsh.type("\x15profrun normalize rec\t", r"recording\.json\.gz ")
    finally:
        zsh.close()


def test_bash_completes_what_is_typed(folder: Path) -> None:
    """Also files, which bash adds itself."""
    bash = Terminal([need_tool("bash"), "--norc", "-i"], folder)
    try:
        bash.type(
            "PS1='READY> '; source <(profrun completion bash); echo lo''aded\n", r"(?s)loaded\r?\n.*READY> "
        )
        bash.type("profrun summ\t", "summary ")
        bash.type("ml\t", "mlp-20260102T030405Z-00ff/000-a-none-r1 ")
        bash.type("\x15profrun summary rec\t", r"recording\.json\.gz ")
    finally:
        bash.close()
