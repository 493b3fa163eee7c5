"""What the doctor says of a cluster's node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from profrun.backends.node_probe import NodeAnswer
from profrun.cli import doctor
from profrun.contract.finding import Finding
from profrun.contract.preflight import Preflight, Readiness
from profrun.doctor import cluster
from profrun.doctor.cluster import lines, missing
from profrun.errors import UsageError

CLOSED = Finding("closed", "critical", "counters are closed", "the driver", "ask the administrator")
ROWS = {
    "torch": Readiness(True, version="2.9.0"),
    "nsys": Readiness(True, version="2025.1.1"),
    "ncu": Readiness(False, version="2025.1.0", findings=(CLOSED,)),
    "rocprof": Readiness(False, reason="NVIDIA GPUs here"),
}
NODE = NodeAnswer("n1", Preflight("nvidia", "here", collectors=ROWS), 4.2)


def test_neutral_collectors_follow_the_vendor() -> None:
    assert missing(NODE, ["timeline", "counters", "torch"]) == ["counters"]
    amd = NodeAnswer("n2", Preflight("amd", "here", collectors={**ROWS, "rocprof": Readiness(True)}), 1.0)
    assert missing(amd, ["timeline", "counters"]) == []
    with pytest.raises(UsageError, match="no collector 'gprof'"):
        missing(NODE, ["gprof"])


def test_each_finding_is_said() -> None:
    assert lines(NODE) == [
        "node n1, GPUs nvidia, after 4 s",
        "torch 2.9.0: yes",
        "nsys 2025.1.1: yes",
        "ncu 2025.1.0: no",
        "  critical: counters are closed: the driver; ask the administrator",
        "rocprof: no: NVIDIA GPUs here",
    ]


def test_69_only_for_what_must_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def ask(backend: str, root: Path, **more: Any) -> NodeAnswer:
        asked.append((backend, more))
        return NODE

    monkeypatch.setattr(cluster, "ask", ask)
    doctor.command(["nsys"], backend="slurm", partition="gpu", runs=tmp_path)
    assert asked == [("slurm", {"partition": "gpu", "profile": None, "image": None, "gpus": None})]
    with pytest.raises(typer.Exit) as ended:
        doctor.command(["ncu"], backend="slurm", runs=tmp_path, json_=True)
    assert ended.value.exit_code == 69


def test_options_of_a_cluster_need_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="add --backend slurm or --backend kubernetes"):
        doctor.command([], partition="gpu", runs=tmp_path)
    with pytest.raises(UsageError, match="--partition is Slurm's"):
        doctor.command([], backend="kubernetes", partition="gpu", runs=tmp_path)
