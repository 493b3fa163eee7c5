"""The types of meta.json and of table rows have the keys that the documentation of the format has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.errors import InputError
from profrun.traces.meta import META_KEYS, TraceMeta
from profrun.traces.schema import TABLES, DeviceRow, ProcessRow
from profrun.traces.shape import meta_problem
from profrun.traces.trace import Trace


def test_the_type_of_meta_has_every_documented_key() -> None:
    assert list(TraceMeta.__annotations__) == [key.name for key in META_KEYS]


@pytest.mark.parametrize(("table", "row"), [("processes", ProcessRow), ("devices", DeviceRow)])
def test_row_types_have_the_columns_of_their_tables(table: str, row: type) -> None:
    assert tuple(row.__annotations__) == TABLES[table].column_names
    optional = {name for name, kind in row.__annotations__.items() if "None" in str(kind)}
    assert optional == {column.name for column in TABLES[table].columns if not column.required}


CLOCK: dict[str, object] = {
    "process": 0,
    "device": 0,
    "session": 0,
    "begins_ns": None,
    "first_ns": 1,
    "last_ns": 2,
    "launches": 1,
    "waits": 0,
    "verdict": "consistent",
    "constant_low_ns": None,
    "constant_high_ns": None,
    "low_ns": 1,
    "high_ns": 2,
    "last_low_ns": 1,
    "last_high_ns": 2,
    "drift_low_ppm": None,
    "drift_high_ppm": 0.5,
    "outliers": 0,
    "tolerance_ns": 1,
    "moved_ns": 0,
    "last_moved_ns": 0,
}
SOUND: dict[str, object] = {
    "format_version": "1.0",
    "source": "s",
    "vendor": "none",
    "collector": "none",
    "tool_version": None,
    "epoch_ns": 5,
    "clock": "epoch",
    "files": [{"name": "a", "bytes": 1, "sha256": None}],
    "replayed": False,
    "launch_blocking": None,
    "job": None,
    "counts": {},
    "sessions": [{"process": 0, "begin_ns": 1}],
    "extra": {"a": 1},
    "clocks": [CLOCK],
    "contradictions": [],
}


@pytest.mark.parametrize("key", [key.name for key in META_KEYS])
@pytest.mark.parametrize("value", [[[{}]], {"a": 1}, -1.5, "x", [7], [{}], 1 << 63])
def test_a_value_of_another_type_is_named(key: str, value: object, tmp_path: Path) -> None:
    """They ended in exit code 70: KeyError, TypeError, AttributeError."""
    assert meta_problem(SOUND) is None
    changed = {**SOUND, key: value}
    texts = ("format_version", "source", "vendor", "collector", "tool_version", "clock")
    if (value == "x" and key in texts) or (value == {"a": 1} and key in ("job", "counts", "extra")):
        assert meta_problem(changed) is None
        return
    assert f"$.{key}" in str(meta_problem(changed))
    (tmp_path / "meta.json").write_text(json.dumps(changed))
    with pytest.raises(InputError, match=r"meta\.json cannot be read"):
        Trace(tmp_path)


@pytest.mark.parametrize("field", list(CLOCK))
def test_an_entry_without_a_field_is_named(field: str) -> None:
    entry = {name: value for name, value in CLOCK.items() if name != field}
    found = meta_problem({**SOUND, "clocks": [entry]})
    assert found == f"Object missing required field `{field}` - at `$.clocks[0]`"
