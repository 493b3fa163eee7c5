"""Real traces to report on."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from tests.analysis.compare.conftest import recorded
from tests.analysis.conftest import real
from tests.conftest import ROOT

__all__ = ["real", "recorded"]
H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer layer on an H200 under torch.profiler."""
    out = tmp_path_factory.mktemp("trace") / "t"
    normalize([H200], out)
    return out
