"""What works on Linux only is refused elsewhere, in one line of its own kind."""

from __future__ import annotations

import pytest

from profrun.errors import UnavailableError
from profrun.runner.linux import need_linux


def test_linux_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    need_linux("running a job")


@pytest.mark.parametrize(
    ("system", "name"), [("win32", "Windows"), ("darwin", "macOS"), ("freebsd14", "freebsd14")]
)
def test_another_system_is_named(system: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", system)
    with pytest.raises(UnavailableError, match=f"^running a job needs Linux: this is {name}, .*; do it on a"):
        need_linux("running a job")
