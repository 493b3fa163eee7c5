"""``profrun completion``: the scripts; ``tests/real/shells`` runs them in the shells."""

from __future__ import annotations

import pytest

from tests.cli.running import Capture, call


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str, capsys: Capture) -> None:
    done = call(capsys, "completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_PROFRUN_COMPLETE=complete_{shell}" in done.out


def test_another_shell_is_64(capsys: Capture) -> None:
    assert call(capsys, "completion", "tcsh").code == 64
