"""Which SQL from outside may run: one SELECT that changes nothing.

Files that the engine may read it may also write, and a SELECT can hold a statement that writes: a COPY in a
common table expression, or a table function that runs SQL or moves the engine's log. So the statement's own
tree is looked at, as the engine parses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import duckdb

from profrun.errors import UsageError

NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Parts of a statement that only read."""
TABLE_FUNCTIONS = frozenset(
    (
        *("duckdb_columns", "duckdb_constraints", "duckdb_databases", "duckdb_functions", "duckdb_keywords"),
        *("duckdb_schemas", "duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_views"),
        *("generate_series", "histogram", "histogram_values", "json_each", "json_tree", "query_table"),
        *("parquet_file_metadata", "parquet_metadata", "parquet_scan", "parquet_schema", "read_parquet"),
        *("pragma_table_info", "pragma_version", "range", "repeat", "repeat_row", "summary"),
        *("test_all_types", "unnest"),
    )
)
"""Table functions that change nothing and run no text."""
_WRITES = frozenset({"copy", "insert", "update", "delete", "merge"})
"""First words of statements that a SELECT may hold."""


def one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse what is not one statement that only reads.

    Args:
        connection: the engine that will run it; its version decides what the text means.

    Raises:
        UsageError: it is nothing, several statements, or one that could change something.
        duckdb.Error: it cannot be parsed.
    """
    statements = connection.extract_statements(sql)
    if not statements:
        raise UsageError(
            "there is no query",
            why="a query is one SELECT",
            fix="e.g. profrun query last 'SELECT * FROM steps'",
        )
    kinds = [statement.type.name for statement in statements]
    if _is_pivot(kinds, [statement.query for statement in statements]):
        found = sorted(_words_that_write(connection, sql))
        if found:
            raise _refused(f"{found[0]} beside a PIVOT", fix="name the columns: PIVOT ... ON x IN (1, 2)")
        return
    if kinds != ["SELECT"]:
        raise _refused("several statements" if len(kinds) > 1 else kinds[0])
    rows = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    try:
        tree = json.loads(rows[0][0])
        changing = list(_changing(tree))
    except RecursionError:
        raise _refused("hundreds of parts inside each other", fix="divide it") from None
    if tree.get("error", True):
        raise _refused(str(tree.get("error_message")))
    if changing:
        raise _refused(changing[0])


def _is_pivot(kinds: list[str], texts: list[str]) -> bool:
    """Whether it is a PIVOT whose columns come from the data, which the engine divides into two statements.

    DuckDB 1 shows both, without a text, because the user wrote neither of them.
    """
    return kinds == ["MULTI"] or (kinds == ["CREATE", "SELECT"] and not any(texts))


def _words_that_write(connection: duckdb.DuckDBPyConnection, sql: str) -> frozenset[str]:
    """Words of a text that could write, wherever they stand: the engine shows no tree of such a PIVOT."""
    rows = connection.execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type LIKE 'table%'"
    ).fetchall()
    banned = _WRITES | ({str(name) for (name,) in rows} - TABLE_FUNCTIONS)
    return banned & set(re.findall(r"\w+", sql.lower()))


def _changing(tree: object) -> Iterator[str]:
    """Names of the parts of a statement that are not known to change nothing."""
    if isinstance(tree, dict):
        kind = str(tree.get("type", ""))
        if kind.endswith("_NODE") and kind not in NODES:
            yield kind.split("_", maxsplit=1)[0]
        if kind == "TABLE_FUNCTION":
            name = str(tree["function"].get("function_name", "")).lower()
            if name not in TABLE_FUNCTIONS:
                yield f"the table function {name}"
        for value in tree.values():
            yield from _changing(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _changing(value)


def _refused(found: str, fix: str = "see docs/trace-format.md for tables and views") -> UsageError:
    return UsageError("a query is one SELECT that changes nothing", why=f"this one has {found}", fix=fix)
