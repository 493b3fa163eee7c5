"""The call tree in the page: the script's data is the tree, and the tables show it per step."""

from __future__ import annotations

import json

from tests.analysis.kit import memory_trace, step
from tests.reports.documents import page, rows_of

ROWS = [
    step(0, 0, 1000),
    step(1, 1000, 1000),
    ("range", "nn.Module: h.0 (Block)", 5, 200, "main"),
    ("range", "nn.Module: h.1 (Block)", 1005, 200, "main"),
    ("op", "aten::</script>", 10, 100, "main"),  # 4
    ("op", "aten::mm", 1010, 100, "main"),  # 5
    ("kernel", "k", 2000, 6, "stream 7", {"launch": 4}),
    ("kernel", "k", 2020, 4, "stream 7", {"launch": 5}),
]


def test_the_flame_graph_gets_every_node_and_names_stay_text() -> None:
    document = page(memory_trace(ROWS))
    (script,) = [one for one in document.every("script") if one.attributes.get("id") == "t0-calls-data"]
    data = json.loads(script.text)
    assert [tree["label"] for tree in data["trees"]] == ["module", "range and op"]
    calls = data["trees"][1]
    assert (calls["steps"], calls["gpu"]) == (2, 10)
    assert {data["names"][node[1]]: node[4] for node in calls["nodes"] if node[0] == 0} == {
        "aten::</script>": 6,
        "aten::mm": 4,
    }


def test_the_tables_are_per_step() -> None:
    document = page(memory_trace(ROWS))
    module = next(row for row in rows_of(document, "modules") if row[1] == "Block")
    assert [module[0], *module[2:6]] == ["h.*", "2", "1", "100.0 %", "5"]
    call = rows_of(document, "calls")[0]
    assert [call[0], call[2], call[3], call[4]] == ["nn.Module: h.* (Block)", "2", "100.0 %", "5"]


def test_a_trace_without_calls_has_no_section() -> None:
    document = page(memory_trace([("kernel", "k", 0, 6, "stream 7")]))
    assert "Call tree" in document.text.split("Not in this recording: ")[1]
    assert not document.every("div", class_="flame")
