"""What the script that draws the flame graph is given: the tree of lines first, each node as a list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profrun.contract.denominator import STEP
from profrun.reports.flame_data import BY_LINE, flame_data
from profrun.runner.report import trace_content
from profrun.traces.trace import Trace
from tests.reports.mapped_run import mapped_run


def data_of(root: Path, *, source: bool = False) -> tuple[dict[str, Any], Path]:
    """(data of the clean trial of a mapped run, folder of the program)."""
    run, folder = mapped_run(root)
    with Trace(run.trial("001-default-torch-r1").trace) as trace:
        content = trace_content(trace, name="t", source=source)
    return flame_data(content.calls, content.places, "t0", STEP), folder


def test_the_lines_are_the_first_tree_and_their_paths_are_short(tmp_path: Path) -> None:
    data, folder = data_of(tmp_path)
    first, *others = data["trees"]
    assert (first["label"], [tree["label"] for tree in others]) == (BY_LINE, ["module", "range and op"])
    assert (data["per"], data["whole"], first["steps"]) == (" per step", "3 steps", 3)
    assert {tree["gpu"] for tree in data["trees"]} == {first["gpu"]}
    kinds, names = data["kinds"], data["names"]
    lines = {names[node[1]]: first["lines"][node[9]] for node in first["nodes"] if kinds[node[2]] == "line"}
    assert lines["model.py:20 forward"] == [f"{folder}/model.py:20 forward", None]
    assert all(node[9] == -1 for node in first["nodes"] if kinds[node[2]] != "line")
    backward = {names[node[1]] for node in first["nodes"] if node[8] == node[5] > 0}
    assert backward
    assert all(name.endswith("_bwd") or "<add>" in name for name in backward)


def test_work_has_the_time_of_its_nodes(tmp_path: Path) -> None:
    data, _ = data_of(tmp_path)
    first = data["trees"][0]
    own = [0] * len(first["nodes"])
    for *_, parts in ((*one[:4], one[4:]) for one in first["work"]):
        for node, ns in parts:
            own[node] += ns
    assert own == [node[5] for node in first["nodes"]]
    assert sum(own) == first["gpu"]


def test_a_line_names_its_source_where_the_page_has_it(tmp_path: Path) -> None:
    data, folder = data_of(tmp_path, source=True)
    ids = dict(data["trees"][0]["lines"])
    assert ids[f"{folder}/model.py:20 forward"] == "t0-source-0-20"
    assert ids[f"{folder}/train.py:14 main"] == "t0-source-1-14"
