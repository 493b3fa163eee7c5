"""Changes of files: of bytes, and of values inside JSON, CSV and SQLite.

Every function is given ``dice``, the only source of chance, so that a seed says which damage is made.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import gzip
import io
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

BYTES = b'{}[],:"\\ \n\t\x00\xff0a-.eE'
"""Bytes that mean something to some parser."""

HOSTILE_TEXT = (
    "",
    " ",
    "\x00",
    "\ud800",
    "a\udfffb",
    "a\nb\r\nc",
    "k_\x1b]0;pwn\x07\x1b[2J",
    "\u202eabc",
    "\x9b31m",
    '"',
    "'; DROP TABLE slices; --",
    "../../../etc/passwd",
    "{}",
    "%s%n",
    "NaN",
    "1e999",
    "0x10",
    "-",
    "stream 7",
    "2024-13-45",
    "ü" * 50,
    "x" * 100_000,
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1),
    *(10**30, 0.5, -0.0, 1e18, 1e308, float("nan"), float("inf"), float("-inf")),
    *([], {}, [[[]]], {"a": {"b": []}}, [1, "x", None], {"": 0}),
    *HOSTILE_TEXT,
)


def cut(data: bytes, dice: random.Random) -> bytes:
    """The beginning."""
    return data[: dice.randrange(len(data) + 1)]


def flip(data: bytes, dice: random.Random) -> bytes:
    """Some bytes replaced."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 3, 30, 300))):
        changed[dice.randrange(len(changed))] = (
            dice.choice(BYTES) if dice.random() < 0.7 else dice.randrange(256)
        )
    return bytes(changed)


def remove(data: bytes, dice: random.Random) -> bytes:
    """A part gone."""
    start = dice.randrange(len(data))
    return data[:start] + data[start + dice.choice((1, 2, 40, 5000)) :]


def repeat(data: bytes, dice: random.Random) -> bytes:
    """A part twice."""
    start = dice.randrange(len(data))
    stop = start + dice.choice((1, 40, 5000))
    return data[:stop] + data[start:]


def insert(data: bytes, dice: random.Random) -> bytes:
    """Foreign bytes in between."""
    start = dice.randrange(len(data))
    foreign = bytes(dice.choices(BYTES, k=dice.choice((1, 4, 300))))
    return data[:start] + foreign + data[start:]


OF_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (cut, flip, remove, repeat, insert)


def of_bytes(data: bytes, dice: random.Random, most: int = 2) -> bytes:
    """One to ``most`` changes of bytes."""
    for _ in range(dice.randint(1, most)):
        if data:
            data = dice.choice(OF_BYTES)(data, dice)
    return data


def odd_value(dice: random.Random) -> Any:
    """A value that does not belong anywhere; sometimes lists in lists, thousands deep."""
    if dice.random() < 0.02:
        return Deep(dice.choice((100, 5_000, 200_000)))
    return copy.deepcopy(dice.choice(ODD_VALUES))


class Deep:
    """Lists in lists, which ``json.dumps`` cannot write itself."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


def dumped(value: Any) -> bytes:
    """JSON of a value with ``Deep`` in it; NaN, infinity and lone surrogates as Python writes them."""
    found: list[int] = []

    def mark(deep: object) -> str:
        assert isinstance(deep, Deep)
        found.append(deep.depth)
        return f"@deep{len(found) - 1}@"

    text = json.dumps(value, default=mark)
    for number, depth in enumerate(found):
        text = text.replace(f'"@deep{number}@"', "[" * depth + "]" * depth)
    return text.encode()


def _somewhere(value: Any, dice: random.Random) -> tuple[Any, Any] | None:
    """A container inside ``value`` and one of its keys or indices; None where there is nothing."""
    place = None
    while isinstance(value, dict | list) and value:
        key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
        place = (value, key)
        if dice.random() < 0.25:
            break
        value = value[key]
    return place


def of_json(data: bytes, dice: random.Random) -> bytes:
    """Values replaced, keys renamed or gone, elements twice; text that is no JSON is damaged as bytes."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return of_bytes(data, dice)
    for _ in range(dice.choice((1, 1, 2, 5, 30))):
        place = _somewhere(value, dice)
        if place is None:
            return dumped(odd_value(dice))
        holder, key = place
        how = dice.random()
        if how < 0.6:
            holder[key] = odd_value(dice)
        elif how < 0.75:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(dice.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
        else:
            holder[dice.choice(HOSTILE_TEXT)] = holder.pop(key)
    if dice.random() < 0.3:
        value = _in_all(value, dice)
    return dumped(value)


def _in_all(document: Any, dice: random.Random) -> Any:
    """The same key odd in many objects of the longest list of objects."""
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists += [value for value in document.values() if isinstance(value, list)]
    rows = [row for row in max(lists, key=len, default=[]) if isinstance(row, dict)]
    keys = sorted({key for row in rows[:50] for key in row if isinstance(key, str)})
    if keys:
        key, value = dice.choice(keys), odd_value(dice)
        for row in rows:
            if dice.random() < 0.5:
                row[key] = value
    return document


def of_csv(data: bytes, dice: random.Random) -> bytes:
    """Odd cells in the header or the rows, columns gone, twice or renamed, rows of another length."""
    rows = list(csv.reader(io.StringIO(data.decode("utf-8", "replace"))))
    rows = [row for row in rows if row]
    if not rows:
        return of_bytes(data, dice)
    for _ in range(dice.choice((1, 1, 2, 5))):
        how, column = dice.randrange(6), dice.randrange(max(1, len(rows[0])))
        if how == 0:
            rows[0][column : column + 1] = [_cell(dice)]
        elif how == 1:
            rows = [row[:column] + row[column + 1 :] for row in rows]
        elif how == 2:
            rows = [row + row[column : column + 1] for row in rows]
        elif how == 3:
            cell = _cell(dice)
            rows[1:] = [
                row[:column] + [cell if dice.random() < 0.3 else one for one in row[column : column + 1]]
                + row[column + 1 :]
                for row in rows[1:]
            ]  # fmt: skip
        elif how == 4:
            row = dice.choice(rows)
            row[dice.randrange(len(row)) :] = [_cell(dice)] * dice.choice((0, 1, 3))
        else:
            rows.insert(dice.randrange(len(rows) + 1), list(dice.choice(rows)))
        rows = [row or [""] for row in rows] or [[""]]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _cell(dice: random.Random) -> str:
    value = dice.choice(ODD_VALUES)
    return value if isinstance(value, str) else str(value)


def of_sqlite(path: Path, dice: random.Random) -> None:
    """Columns renamed or gone, tables gone or empty, values of another type; in place."""
    with contextlib.closing(sqlite3.connect(path)) as con, contextlib.suppress(sqlite3.Error):
        tables = [name for (name,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        full = [name for name in sorted(tables) if con.execute(f"SELECT 1 FROM {_id(name)}").fetchone()]
        for _ in range(dice.choice((1, 1, 2, 4))):
            with contextlib.suppress(sqlite3.Error, UnicodeError, OverflowError):
                _change(con, dice.choice(full or ["none"]), dice)
        con.commit()


def _change(con: sqlite3.Connection, table: str, dice: random.Random) -> None:
    names = [row[1] for row in con.execute(f"PRAGMA table_info({_id(table)})")] or ["none"]
    column, how = dice.choice(names), dice.random()
    chosen = f"abs(random()) % 100 < {dice.choice((2, 30, 101))}"
    if how < 0.5:
        con.create_function("random", 0, lambda: dice.getrandbits(62))
        con.execute(f"UPDATE {_id(table)} SET {_id(column)} = ? WHERE {chosen}", (_stored(dice),))
    elif how < 0.65:
        con.execute(f"ALTER TABLE {_id(table)} RENAME COLUMN {_id(column)} TO {_id(dice.choice(NAMES))}")
    elif how < 0.8:
        con.execute(f"ALTER TABLE {_id(table)} DROP COLUMN {_id(column)}")
    elif how < 0.85:
        con.execute(f"DROP TABLE {_id(table)}")
    elif how < 0.9:
        con.create_function("random", 0, lambda: dice.getrandbits(62))
        con.execute(f"DELETE FROM {_id(table)} WHERE {chosen}")
    elif how < 0.95:
        con.execute(f"ALTER TABLE {_id(table)} RENAME TO {_id(dice.choice(NAMES))}")
    else:
        listed = ", ".join(map(_id, names))
        con.execute(f"INSERT INTO {_id(table)} ({listed}) SELECT {listed} FROM {_id(table)} LIMIT 50")


NAMES = ("x", "start2", "START", "a\nb", 'q"q', "ü", "select", " ", "end_")


def _id(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stored(dice: random.Random) -> Any:
    """A value that SQLite can hold."""
    value = dice.choice(ODD_VALUES)
    if isinstance(value, list | dict):
        return dice.choice((b"", b"\x00\xff\xfe", b"x" * 5000))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return (
        value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if isinstance(value, str) else value
    )


def packed(data: bytes, dice: random.Random) -> bytes:
    """Sometimes gzip, sometimes damaged gzip."""
    if dice.random() < 0.15:
        data = gzip.compress(data, 1, mtime=0)
        if dice.random() < 0.4:
            data = of_bytes(data, dice)
    return data
