"""The screens of commands in real terminals of 80, 120 and 200 columns, against golden text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.store.state import read_state
from tests.cli.programs import last_run, wait_until, write_job
from tests.conftest import need_tool
from tests.real.terminal.golden import FOLDER, golden
from tests.real.terminal.screens import SCREENS, WIDTHS, Screen, prepare
from tests.real.terminal.tmux import Terminal

pytestmark = pytest.mark.tmux


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """Terminals in the folder with the recorded runs."""
    need_tool("tmux")
    with Terminal(prepare(tmp_path_factory.mktemp("home"))) as made:
        yield made


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_screen_is_as_it_was(screen: Screen, terminal: Terminal) -> None:
    """After a wanted change: ``python -m tests.real.terminal.golden``, and read `git diff tests/golden`."""
    assert golden(screen, terminal) == (FOLDER / f"{screen.name}.txt").read_text(encoding="utf-8")


def test_every_file_is_of_a_screen() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {screen.name for screen in SCREENS}


@pytest.mark.parametrize(("name", "most"), [("trainer", 20), ("lightning_loader", 20), ("four", 30)])
def test_the_end_of_a_run_is_short(name: str, most: int, terminal: Terminal) -> None:
    for width in WIDTHS:
        assert terminal.show(f"profrun status {name}", width).count("\n") <= most


def test_colours_are_for_terminals_and_can_be_turned_off(terminal: Terminal) -> None:
    coloured = terminal.show("profrun runs", 80, colours=True)
    assert "\x1b[32mfinished" in coloured
    for command in ("profrun runs | cat", "profrun runs --no-color", "NO_COLOR=1 profrun runs"):
        assert "\x1b" not in terminal.show(command, 80, colours=True), command
    assert "\x1b[32mfinished" in terminal.show("FORCE_COLOR=1 profrun runs | cat", 80, colours=True)


STEPS = """
import time, profrun
for step in range(60):
    time.sleep(0.1)
    profrun.step()
open("ran", "w").close()
while True:
    time.sleep(0.1)
"""


def test_the_live_line_stays_one_line_when_the_terminal_is_resized(tmp_path: Path) -> None:
    """Then Ctrl-C: what happens is said once, without the name of a signal, and the cursor is visible."""
    need_tool("tmux")
    write_job(tmp_path, STEPS, "x", repeats=2)
    with Terminal(tmp_path) as terminal:
        name = terminal.start("profrun submit job.yaml", 120, 40)
        wait_until(lambda: "  step " in terminal.screen(name), seconds=240)
        for width in (60, 120, 50, 80):
            terminal.resize(name, width)
            time.sleep(1.5)  # three times as long as between two drawings
            lines = terminal.screen(name).splitlines()
            assert sum("1/2  none r1" in line for line in lines) == 1, lines
            assert "1/2  none r1" in lines[-1], "nothing stays below"
        wait_until((tmp_path / "ran").exists)
        terminal.press(name, "C-c")
        terminal.wait(name)
        shown = terminal.screen(name)
    assert shown.count("Stopping; saving profiles. Press Ctrl-C again to stop at once.") == 1
    assert shown.count("You cancelled it. Recorded data was kept.") == 1
    assert f"profrun resume {last_run(tmp_path).name}" in " ".join(shown.split())
    assert "SIG" not in shown
    assert "none r1  " not in shown, "the live line is gone"


def test_a_closed_terminal_ends_the_run_well(tmp_path: Path) -> None:
    need_tool("tmux")
    write_job(tmp_path, STEPS, "x", repeats=2)
    with Terminal(tmp_path) as terminal:
        terminal.start("profrun submit job.yaml", 80, 40)
        wait_until((tmp_path / "ran").exists)
    wait_until(lambda: not read_state(last_run(tmp_path)).driven)
    state = read_state(last_run(tmp_path))
    assert (state.phase, state.cancelled_by) == ("cancelled", "SIGHUP")
    assert (state.trials[0].state, state.trials[0].steps.count) == ("cancelled", 60)
