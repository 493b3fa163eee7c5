"""Results print as the command line prints them, and their rows are tables."""

from __future__ import annotations

import dataclasses
import json

import pytest

import profrun
from profrun.analysis.json import to_json
from profrun.errors import UsageError


def values(table: profrun.Table) -> list[dict[str, object]]:
    """Rows as dicts, with what is JSON text read back."""
    return [
        {
            name: json.loads(cell) if isinstance(cell, str) and cell[:1] in ("[", "{") else cell
            for name, cell in row.items()
        }
        for row in table.dicts()
    ]


def test_every_list_of_a_summary_is_a_table_with_its_columns(trace: profrun.Trace) -> None:
    summary = trace.summary()
    rows = [
        name
        for name, value in vars(summary).items()
        if isinstance(value, list) and (not value or dataclasses.is_dataclass(value[0]))
    ]
    assert {"devices", "steps", "kernels", "ops", "copies", "collectives"} <= set(rows)
    for name in rows:
        assert len(summary.table(name).columns) > 2
        assert values(summary.table(name)) == [to_json(row) for row in getattr(summary, name)]


def test_a_table_has_the_numbers_of_its_rows(trace: profrun.Trace) -> None:
    summary = trace.summary()
    kernels = summary.table("kernels").to_polars()
    assert kernels["name"].to_list() == [row.name for row in summary.kernels]
    assert kernels["total_ns"].to_list() == [row.total_ns for row in summary.kernels]
    assert summary.table("steps").to_pandas()["ts_ns"].tolist() == [step.ts_ns for step in summary.steps]
    findings = trace.diagnose().table("findings").dicts()
    assert [row["severity"] for row in findings] == [one.severity for one in trace.diagnose()]


def test_a_table_that_is_not_there_is_refused_with_those_that_are(trace: profrun.Trace) -> None:
    with pytest.raises(UsageError, match=r"there is no table 'kernel' in it; one of .*kernels, ops"):
        trace.summary().table("kernel")


def test_a_result_is_the_value_that_was_found(trace: profrun.Trace) -> None:
    from profrun.analysis.rules.context import Context
    from profrun.analysis.rules.step_use import step_use
    from profrun.analysis.trace.summary import summarize

    found = trace.summary()
    own: dict[str, object] = {
        "step_cost": Context(trace).cost,
        "step_use": step_use(Context(trace)),
        "energy_per_work": {},
    }
    assert vars(found) == vars(summarize(trace)) | own
    assert trace.summary() == trace.summary()


def test_a_notebook_shows_the_text(trace: profrun.Trace) -> None:
    path = trace.critical_path()
    assert path is not None
    for result in (trace.summary(top=3), trace.diagnose(), path):
        assert result._repr_html_().startswith("<pre>")
        assert "<built-in" not in result._repr_html_()
    assert "by kind" in str(path)
    assert "100.0 %" not in str(path)
