"""Recordings as trials, each read once a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.compare import ComparedTrial, read_trial
from tests.analysis.conftest import Open

Recorded = Callable[[str], ComparedTrial]


@pytest.fixture(scope="session")
def recorded(real: Open) -> Recorded:
    """``recorded('h200/torch/mlp')``: the recording as a trial."""
    found: dict[str, ComparedTrial] = {}

    def read(name: str) -> ComparedTrial:
        if name not in found:
            found[name] = read_trial(real(f"{name}.json.gz"), label=name.rsplit("/", 1)[-1])
        return found[name]

    return read
