"""From ``submit`` to ``summary --json``: the numbers are those of torch's own table of that very profile."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import call

WORK = """
import torch

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    with torch.profiler.record_function("forward"):
        loss = model(torch.randn(16, 64)).double().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
"""Six training steps: ops, a user's range, module ranges, backward on torch's own thread."""


def _mine(capsys: pytest.CaptureFixture[str], trial: str) -> dict[str, dict[str, Any]]:
    """Rows of ``profrun summary TRIAL --json`` by name."""
    found = call(capsys, "summary", trial, "--json")
    assert found.code == 0, found.err
    rows = found.json["ops"]
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


def _theirs(trial: Path) -> dict[str, dict[str, Any]]:
    """Rows of key_averages() as the hook kept them beside the trace, by name; times in us."""
    (path,) = trial.glob("raw/rank0/*.key_averages.json")
    table = json.loads(path.read_text())
    assert table["unit"] == "us"
    return {row["key"]: row for row in table["rows"]}


@pytest.mark.thorough
def test_each_op_has_torchs_calls_and_self_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("work.py").write_text(WORK)
    spec = {
        "name": "t",
        "command": "python work.py",
        "collectors": ["torch"],
        "schedule": {"wait": 1, "warmup": 1, "active": 3},
        "ranges": {"modules": 2},
    }
    Path("job.yaml").write_text(json.dumps(spec))
    done = call(capsys, "submit", "job.yaml", "--json")
    assert done.code == 0, done.err
    (trial,) = done.json["trials"]
    mine, theirs = _mine(capsys, "last/0"), _theirs(Path(trial["trace"]).parent)
    assert {"aten::addmm", "forward", "ProfilerStep*", "nn.Module: 0 (Linear)"} <= theirs.keys()
    assert mine.keys() == theirs.keys()
    for name, row in theirs.items():
        assert mine[name]["calls"] == row["count"], name
        assert abs(mine[name]["self_cpu_ns"] - row["self_cpu"] * 1000) < 1, name
        assert abs(mine[name]["cpu_ns"] - row["cpu"] * 1000) < 1, name
