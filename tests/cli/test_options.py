"""Where the runs are."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.options import runs_root


@pytest.mark.parametrize(
    ("option", "variable", "root"),
    [
        (Path("/a"), "/b", "/a"),
        (None, "/b", "/b"),
        (None, "", "runs"),
        (None, None, "runs"),
    ],
)
def test_the_option_wins_over_the_variable(
    monkeypatch: pytest.MonkeyPatch, option: Path | None, variable: str | None, root: str
) -> None:
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    if variable is not None:
        monkeypatch.setenv("PROFRUN_RUNS", variable)
    assert runs_root(option) == Path(root)
