"""What all tests of the kineto reader share."""

from __future__ import annotations

import pytest

from profrun.collectors.torch.events import library
from tests.conftest import missing


@pytest.fixture(params=["compiled", pytest.param("duckdb", marks=pytest.mark.thorough)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading; by default the compiled parser, which must be there."""
    if request.param == "compiled" and library() is None:
        missing("the compiled parser")
    monkeypatch.setenv("PROFRUN_COMPILED", "1" if request.param == "compiled" else "0")
    return str(request.param)
