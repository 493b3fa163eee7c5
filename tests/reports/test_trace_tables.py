"""The tables of a trace: their numbers are the summary's."""

from __future__ import annotations

import re
from pathlib import Path

from profrun.analysis.trace.summary import summarize
from profrun.traces.trace import Trace
from tests.reports.documents import Node, page


def numbers(document: Node, name: str) -> list[list[str]]:
    """Exact values (or texts) of a table's rows."""
    (found,) = document.every("table", data_table=name)
    (body,) = found.every("tbody")
    return [
        [cell.attributes.get("data-v", cell.text) for cell in row.every("td")] for row in body.every("tr")
    ]


def test_every_number_of_the_tables_is_the_summarys(h200: Path) -> None:
    with Trace(h200) as trace:
        summary = summarize(trace)
        document = page(trace)
    kernels = [[row[3], row[4], row[7], row[9], row[10]] for row in numbers(document, "kernels")]
    assert kernels == [
        [str(value) for value in (row.calls, row.share, row.total_ns, row.p50_ns, row.p99_ns)]
        for row in summary.kernels
    ]
    steps = [row[:4] for row in numbers(document, "steps")]
    assert steps == [[str(v) for v in (s.step, s.dur_ns, s.kernels, s.kernel_ns)] for s in summary.steps]
    ops = {row[0]: row[2:7] for row in numbers(document, "ops")}
    for op in summary.ops:
        values = (op.calls, op.self_cpu_ns, op.cpu_ns, op.self_device_ns, op.device_ns)
        assert ops[op.name] == [str(value) for value in values]
    tiles = {
        dd.attributes["data-number"]: dd.attributes["data-v"] for dd in document.every("dd", class_="big")
    }
    assert tiles["devices.utilization"] == str(summary.devices[0].utilization)
    assert tiles["devices.busy_ns"] == str(summary.devices[0].busy_ns)
    assert re.search(r"any kernel running; of [\d.]+ ms, first to last step", document.text)
