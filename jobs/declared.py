"""Tables made from dataclasses: the fields that are declared with ``contract.options.option`` are the keys.

The profilers' options and the ``cluster`` block come this way; reading such a table gives the dataclass.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from profrun.contract import options
from profrun.jobs.kinds import Flag, Kind, OneOf, Regex, Text, Whole, Word, is_word, seconds
from profrun.jobs.tables import UNSET, Field, ListOf, Table


def table_of(made: type[Any], what: str) -> Table:
    """The table whose reading gives this dataclass; inherited keys come last.

    Args:
        made: a dataclass; its fields that are not made with ``option`` are no keys.
        what: what a message calls its keys.
    """
    own = vars(made).get("__annotations__", {})
    fields = sorted(dataclasses.fields(made), key=lambda item: item.name not in own)
    return Table(
        {
            item.name: Field(kind_of(told["kind"]), UNSET, told["doc"], told["default"])
            for item in fields
            if "kind" in (told := item.metadata)
        },
        what,
        makes=made,
    )


def kind_of(declared: object) -> Kind:
    """How a job's value of a declared kind is read and checked."""
    if isinstance(declared, Kind):
        return declared
    if isinstance(declared, options.Flag):
        return Flag()
    if isinstance(declared, options.Word):
        return Word(declared.known, declared.what)
    if isinstance(declared, options.Text):
        return Text(declared.what, declared.pattern, raw=declared.unquoted)
    if isinstance(declared, options.Pattern):
        return Regex()
    if isinstance(declared, options.Whole):
        return Whole(declared.low, declared.high)
    if isinstance(declared, options.Duration):
        return seconds(declared.low)
    if isinstance(declared, options.Many):
        return _many(declared)
    raise TypeError(f"no kind of option: {declared!r}")


def _many(declared: options.Many) -> Kind:
    found = ListOf(kind_of(declared.kind), declared.low, declared.unique, declared.example)
    if declared.or_word is None:
        return found
    return OneOf((Word((declared.or_word,), "write a list, or one of"), found), (is_word, lambda node: True))
