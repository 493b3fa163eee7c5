"""Which names are steps, of which family, and with which number: in Python and in DuckDB."""

from __future__ import annotations

import re

import duckdb
import pytest

from profrun.contract.step_names import ANY_STEP, FAMILIES


@pytest.mark.parametrize(
    ("name", "family", "number"),
    [
        ("profrun.run", 0, None),
        ("profrun.step#12", 1, "12"),
        ("ProfilerStep#3", 2, "3"),
        ("step 7", 3, "7"),
        ("Step#7", 3, "7"),
        ("step7", 3, "7"),
        ("profrun.runs", None, None),
        ("profrun_run", None, None),
        ("profrun.step#", None, None),
        ("Optimizer.step#AdamW.step", None, None),
        ("step 7 of 9", None, None),
    ],
)
def test_families(name: str, family: int | None, number: str | None) -> None:
    found = [(place, hit) for place, pattern in enumerate(FAMILIES) if (hit := re.search(pattern, name))]
    assert [place for place, _ in found] == ([] if family is None else [family])
    assert [hit[1] if hit.re.groups else None for _, hit in found] == ([] if family is None else [number])
    assert duckdb.execute(f"SELECT regexp_matches(?, '{ANY_STEP}')", [name]).fetchone() == (bool(found),)
