"""Looking at this very machine, without an engine: whatever is here, the answer has its shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.contract.profilers import tools
from profrun.doctor import look, report


def test_this_machine_without_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    machine = look(tmp_path / "runs" / "not-yet")
    assert machine.found.engine is None
    assert "no container engine answers" in str(machine.found.problem)
    assert [disk[:2] for disk in machine.disks] == [("runs", str(tmp_path))]
    document = report(machine)
    assert json.loads(json.dumps(document)) == document
    assert list(document["collectors"]) == list(tools())
    assert document["collectors"]["none"]["local"] is True
    assert {row["severity"] for row in document["checks"]} <= {None, "warning", "critical"}
    assert not (tmp_path / "runs").exists()
