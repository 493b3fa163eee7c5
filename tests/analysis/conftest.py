"""Real files, normalised once a session and kept in the session's temporary folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profrun.traces.trace import Trace
from tests.conftest import shared_data

Open = Callable[..., Trace]


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """``real('h200/torch/mlp.json.gz', ...)``: the trace of these files of the shared data."""
    from profrun.collectors.normalize import normalize

    made: dict[tuple[str, ...], Trace] = {}

    def open_(*names: str) -> Trace:
        if names not in made:
            out: Path = tmp_path_factory.mktemp("traces") / "trace"
            normalize([shared_data(name) for name in names], out)
            made[names] = Trace(out)
        return made[names]

    return open_
