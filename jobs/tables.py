"""Compound kinds: lists, mappings with free keys, and tables with known keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from profrun.jobs.kinds import BAD, Json, Kind, wrong
from profrun.jobs.nodes import Node, shorten, typed
from profrun.jobs.problems import Problems, suggest

REQUIRED: Final = object()
"""The default of a key that must be given."""
UNSET: Final = object()
"""The default of a key that is left out of the result when it is not given."""


def is_null(node: Node) -> bool:
    """Is it an explicit or empty null?"""
    return node.kind == "scalar" and typed(node).type == "null"


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of one kind, as a tuple."""

    kind: Kind
    low: int = 0
    unique: bool = False
    example: str = ""

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        if node.kind != "list":
            lone = node.kind == "scalar" and not is_null(node)
            example = f"[{shorten(node.text, 30)}]" if lone else self.example or "[]"
            return wrong(node, at, problems, f"write a list: {example}")
        if len(node.items) < self.low:
            what = "is empty" if not node.items else f"has {len(node.items)} values"
            fix = self.example or f"at least {self.low}"
            problems.bad(node.where, f"{at}: the list {what}", f"write {fix}")
            return BAD
        values = [
            self.kind.read(item, at if self.unique else f"{at}[{i}]", problems)
            for i, item in enumerate(node.items)
        ]
        if any(value is BAD for value in values):
            return BAD
        for i, value in enumerate(values):
            if self.unique and any(type(value) is type(other) and value == other for other in values[:i]):
                problems.bad(node.items[i].where, f"{at}: '{value}' is given twice", "keep one of them")
                return BAD
        return tuple(values)

    def schema(self) -> Json:
        schema: Json = {"type": "array", "items": self.kind.schema()}
        if self.low:
            schema["minItems"] = self.low
        return {**schema, "uniqueItems": True} if self.unique else schema

    def words(self) -> str:
        return f"a list of: {self.kind.words()}"


@dataclass(frozen=True)
class MapOf(Kind):
    """A mapping with free keys of one form."""

    kind: Kind
    key: str
    key_words: str
    example: str = "{name: value}"
    low: int = 0

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        if node.kind != "map":
            return wrong(node, at, problems, f"write a mapping like {self.example}, or {{}}")
        if len(node.pairs) < self.low:
            problems.bad(node.where, f"{at}: the mapping is empty", f"write one like {self.example}")
            return BAD
        values: dict[str, Any] = {}
        for key, item in node.pairs:
            if not re.fullmatch(self.key, key.text):
                problems.bad(
                    key.where, f"{at}: the name '{shorten(key.text)}' cannot be used", f"use {self.key_words}"
                )
                values[key.text] = BAD
                continue
            values[key.text] = self.kind.read(item, f"{at}.{key.text}", problems)
        return BAD if any(value is BAD for value in values.values()) else values

    def schema(self) -> Json:
        schema: Json = {"type": "object", "propertyNames": {"pattern": f"^(?:{self.key})$"}}
        schema["additionalProperties"] = self.kind.schema()
        return {**schema, "minProperties": self.low} if self.low else schema

    def words(self) -> str:
        return f"a mapping `{self.example}`"


@dataclass(frozen=True)
class Field:
    """One key of a table.

    Attributes:
        default: its value when it is not given; REQUIRED, or UNSET (then the key is absent). A default of
            None also lets ``null`` be written.
        doc: one or two sentences for the reference and the schema.
        default_words: how the reference shows the default, when its value does not say it.
        nullable: ``null`` may be written although the default is something else.
    """

    kind: Kind
    default: Any
    doc: str
    default_words: str = ""
    nullable: bool = False

    @property
    def takes_null(self) -> bool:
        """May ``null`` be written?"""
        return self.nullable or self.default is None


@dataclass(frozen=True)
class Table(Kind):
    """A mapping with known keys; an unknown one is an error."""

    fields: Mapping[str, Field]
    what: str = "keys"
    makes: Callable[..., Any] | None = None
    """Given the values by key it makes what ``read`` returns; None: that is a dict."""

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        prefix = f"{at}: " if at else ""
        if node.kind != "map":
            example = next(iter(self.fields), None)
            return wrong(
                node,
                at or "the spec",
                problems,
                f"write a mapping like {example}: ..." if example else "write {}",
            )
        values: dict[str, Any] = {}
        for key, item in node.pairs:
            found = self.fields.get(key.text)
            if found is None:
                word = shorten(key.text)
                problems.bad(
                    key.where, f"{prefix}unknown key '{word}'", suggest(word, self.fields, self.what)
                )
                continue
            if found.takes_null and is_null(item):
                values[key.text] = None
                continue
            values[key.text] = found.kind.read(item, f"{at}.{key.text}" if at else key.text, problems)
        for name in self.missing(node):
            problems.bad(node.where, f"{prefix}the key '{name}' is missing", f"add '{name}: ...'")
            values[name] = BAD
        if self.makes is None:
            return self.filled(values)
        return BAD if BAD in values.values() else self.makes(**values)

    def missing(self, node: Node) -> Iterator[str]:
        """Required keys that are not there."""
        given = {key.text for key, _ in node.pairs}
        return (name for name, item in self.fields.items() if item.default is REQUIRED and name not in given)

    def filled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values with defaults, in the table's order."""
        done: dict[str, Any] = {}
        for name, item in self.fields.items():
            if name in values:
                done[name] = values[name]
            elif item.default is not UNSET and item.default is not REQUIRED:
                done[name] = item.default
        return done

    def schema(self) -> Json:
        properties: Json = {}
        for name, item in self.fields.items():
            schema = item.kind.schema()
            if item.takes_null:
                schema = {"anyOf": [schema, {"type": "null"}]}
            properties[name] = {**schema, "description": item.doc}
            if item.default not in (None, REQUIRED, UNSET) and isinstance(
                item.default, (str, int, float, bool)
            ):
                properties[name]["default"] = item.default
        schema = {"type": "object", "additionalProperties": False, "properties": properties}
        required = [name for name, item in self.fields.items() if item.default is REQUIRED]
        return {**schema, "required": required} if required else schema

    def words(self) -> str:
        return "a mapping"
