"""What SQL over a trace may touch: the trace's own files, a bounded share of memory and of the disk.

The engine's own settings hold this, and they are locked: no statement can take them back.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

import duckdb

from profrun.traces.engine_path import sql_path

MEMORY = 2_000_000_000
"""Most bytes that the engine holds; what exceeds them goes to files. Less on a machine with less memory."""
SPILL = "10GB"
"""Most that these files may hold together."""

_SIZE = re.compile(r"(?P<number>[\d.]+) *(?P<unit>[KMGT]?)i?B|(?P<bytes>\d+) bytes", re.IGNORECASE)


def confine(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> Path | None:
    """Lock the engine of a connection: from now on it opens only these files, and no extension.

    Args:
        connection: any of the engine's connections; the settings hold for all of them.
        files: what may be read. The engine can write them, too: which statements run is the business of
            ``statements.one_select``.

    Returns:
        The folder that the engine makes for what exceeds the memory. It has an unguessable name, and the
        caller removes it. None where this machine has no folder for temporary files.
    """
    spill = _spill_folder()
    allowed = ", ".join(sql_path(file.absolute()) for file in files)
    settings = {
        "allowed_paths": f"[{allowed}]",
        "temp_directory": sql_path(spill) if spill else "''",
        "memory_limit": f"'{min(MEMORY, _limit(connection))}B'",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "enable_external_access": "false",
        "lock_configuration": "true",
    }
    if _current(connection, "enable_progress_bar"):
        # It would be printed into the answer. In a notebook without ipywidgets it is off, and the engine
        # refuses every statement about it.
        settings = {"enable_progress_bar": "false", **settings}
    if spill:
        settings = {"max_temp_directory_size": f"'{SPILL}'", **settings}
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()))
    return spill


def _spill_folder() -> Path | None:
    try:
        return Path(tempfile.gettempdir()) / f"profrun-{os.getpid()}-{secrets.token_hex(8)}"
    except FileNotFoundError:
        return None


def _current(connection: duckdb.DuckDBPyConnection, name: str) -> object:
    """The value that one of the engine's settings has."""
    return connection.execute("SELECT current_setting(?)", [name]).fetchall()[0][0]


def _limit(connection: duckdb.DuckDBPyConnection) -> int:
    """The limit on memory that the engine would use, bytes: it knows of the limits of containers."""
    found = _SIZE.match(str(_current(connection, "memory_limit")))
    if found is None:
        return MEMORY
    if found["bytes"]:
        return int(found["bytes"])
    return int(float(found["number"]) * 1024 ** " KMGT".index(found["unit"].upper() or " "))
