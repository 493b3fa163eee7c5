"""The types of meta.json and of table rows have the keys that the documentation of the format has."""

from __future__ import annotations

import pytest

from profrun.traces.meta import META_KEYS, TraceMeta
from profrun.traces.schema import TABLES, DeviceRow, ProcessRow


def test_the_type_of_meta_has_every_documented_key() -> None:
    assert list(TraceMeta.__annotations__) == [key.name for key in META_KEYS]


@pytest.mark.parametrize(("table", "row"), [("processes", ProcessRow), ("devices", DeviceRow)])
def test_row_types_have_the_columns_of_their_tables(table: str, row: type) -> None:
    assert tuple(row.__annotations__) == TABLES[table].column_names
    optional = {name for name, kind in row.__annotations__.items() if "None" in str(kind)}
    assert optional == {column.name for column in TABLES[table].columns if not column.required}
