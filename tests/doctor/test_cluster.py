"""The doctor's words about a cluster's node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from profrun.cli import doctor
from profrun.doctor import cluster
from profrun.doctor.cluster import Node, missing, words
from profrun.errors import UsageError

FINDING = {
    "severity": "critical",
    "what": "counters are closed",
    "why": "the driver",
    "fix": "ask the administrator",
}
ROWS: dict[str, Any] = {
    "torch": {"usable": True, "version": "2.9.0", "findings": []},
    "nsys": {"usable": True, "version": "2025.1.1", "findings": []},
    "ncu": {"usable": False, "version": "2025.1.0", "findings": [FINDING]},
    "rocprof": {"usable": False, "findings": [], "reason": "NVIDIA GPUs here"},
}
NODE = Node("slurm", "n1", 4.2, {"vendor": "nvidia", "gpus": [], "collectors": ROWS})


def test_neutral_collectors_follow_the_vendor() -> None:
    assert missing(NODE, ["timeline", "counters", "torch"]) == ["counters"]
    amd = Node("slurm", "n2", 1.0, {"vendor": "amd", "collectors": {**ROWS, "rocprof": {"usable": True}}})
    assert missing(amd, ["timeline", "counters"]) == []
    with pytest.raises(UsageError, match="no collector 'gprof'"):
        missing(NODE, ["gprof"])


def test_each_finding_is_said() -> None:
    assert words(NODE) == [
        "node n1, GPUs nvidia, after 4 s",
        "torch 2.9.0: yes",
        "nsys 2025.1.1: yes",
        "ncu 2025.1.0: no",
        "  critical: counters are closed; the driver; ask the administrator",
        "rocprof: no: NVIDIA GPUs here",
    ]


def test_69_only_for_what_must_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def ask(backend: str, root: Path, **more: Any) -> Node:
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
