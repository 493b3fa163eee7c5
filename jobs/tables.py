"""Kinds of compound values: lists, mappings with free keys, tables with known keys, and values of any shape.

A table that has a ``model`` gives an object of it: the model's fields then hold the defaults. ``table_of``
makes the whole table of a dataclass whose fields are declared with ``contract.options.option``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword

from profrun.contract import options
from profrun.contract.codec import own_annotations
from profrun.contract.options import REQUIRED
from profrun.jobs.kinds import BAD, Bad, Flag, Json, Kind, OneOf, Regex, T, T_co, Text, Word, is_word, wrong
from profrun.jobs.nodes import Node, shorten, typed
from profrun.jobs.number_kinds import Whole, seconds, size
from profrun.jobs.problems import Problems, suggest


def is_null(node: Node) -> bool:
    """Is it an explicit or empty null?"""
    return node.kind == "scalar" and typed(node).type == "null"


def is_scalar(node: Node) -> bool:
    """For OneOf: neither a list nor a mapping."""
    return node.kind == "scalar"


@dataclass(frozen=True)
class Alone(Kind[tuple[T, ...]]):
    """One value, read as a tuple that has nothing else: the short form of ``ListOf``."""

    kind: Kind[T]

    def read(self, node: Node, at: str, problems: Problems) -> tuple[T, ...] | Bad:
        """See ``Kind.read``."""
        value = self.kind.read(node, at, problems)
        return BAD if value is BAD else (value,)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return self.kind.schema()

    def words(self) -> str:
        """See ``Kind.words``."""
        return self.kind.words()


@dataclass(frozen=True)
class ListOf(Kind[tuple[T, ...]]):
    """A list of one kind, as a tuple.

    Attributes:
        low: the fewest values that it may have.
        unique: no value may be given twice.
        example: what a message shows.
    """

    kind: Kind[T]
    low: int = 0
    unique: bool = False
    example: str = ""

    def read(self, node: Node, at: str, problems: Problems) -> tuple[T, ...] | Bad:
        """See ``Kind.read``."""
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
        good = [value for value in values if value is not BAD]
        if len(good) < len(values):
            return BAD
        for i, value in enumerate(good):
            if self.unique and any(type(value) is type(other) and value == other for other in good[:i]):
                problems.bad(node.items[i].where, f"{at}: '{value}' is given twice", "keep one of them")
                return BAD
        return tuple(good)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        schema: Json = {"type": "array", "items": self.kind.schema()}
        if self.low:
            schema["minItems"] = self.low
        return {**schema, "uniqueItems": True} if self.unique else schema

    def words(self) -> str:
        """See ``Kind.words``."""
        return f"a list of: {self.kind.words()}"


@dataclass(frozen=True)
class MapOf(Kind[dict[str, T]]):
    """A mapping with free keys of one form.

    Attributes:
        key: regular expression of a key.
        key_words: what a key is, in words.
        example: what a message shows.
        low: the fewest keys that it may have.
    """

    kind: Kind[T]
    key: str
    key_words: str
    example: str = "{name: value}"
    low: int = 0

    def read(self, node: Node, at: str, problems: Problems) -> dict[str, T] | Bad:
        """See ``Kind.read``."""
        if node.kind != "map":
            return wrong(node, at, problems, f"write a mapping like {self.example}, or {{}}")
        if len(node.pairs) < self.low:
            problems.bad(node.where, f"{at}: the mapping is empty", f"write one like {self.example}")
            return BAD
        values: dict[str, T] = {}
        for key, item in node.pairs:
            if not re.fullmatch(self.key, key.text):
                problems.bad(
                    key.where, f"{at}: the name '{shorten(key.text)}' cannot be used", f"use {self.key_words}"
                )
                continue
            value = self.kind.read(item, f"{at}.{key.text}", problems)
            if value is not BAD:
                values[key.text] = value
        return values if len(values) == len(node.pairs) else BAD

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        schema: Json = {"type": "object", "propertyNames": {"pattern": f"^(?:{self.key})$"}}
        schema["additionalProperties"] = self.kind.schema()
        return {**schema, "minProperties": self.low} if self.low else schema

    def words(self) -> str:
        """See ``Kind.words``."""
        return f"a mapping `{self.example}`"


@dataclass(frozen=True)
class AnyMap(Kind[dict[str, object]]):
    """A mapping whose keys and values only its reader knows: values may be mappings, lists, scalars and null.

    Attributes:
        example: what a message shows.
    """

    example: str

    def read(self, node: Node, at: str, problems: Problems) -> dict[str, object] | Bad:
        """See ``Kind.read``."""
        if node.kind != "map":
            return wrong(node, at, problems, f"write a mapping like {self.example}")
        values = {key.text: _any(item, f"{at}.{key.text}", problems) for key, item in node.pairs}
        return BAD if BAD in values.values() else values

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "object"}

    def words(self) -> str:
        """See ``Kind.words``."""
        return f"a mapping `{self.example}`"


def _any(node: Node, at: str, problems: Problems) -> object:
    """A value of any shape, or BAD where YAML readers would differ in what it is."""
    if node.kind == "map":
        return AnyMap("{}").read(node, at, problems)
    if node.kind == "list":
        values = [_any(item, f"{at}[{i}]", problems) for i, item in enumerate(node.items)]
        return BAD if BAD in values else values
    found = typed(node)
    return wrong(node, at, problems, found.fix) if found.type == "odd" else found.value


@dataclass(frozen=True)
class Field:
    """One key of a table.

    Attributes:
        doc: one or two sentences for the reference and the schema.
        default: its value when it is not given; REQUIRED when it must be.
        default_words: how the reference shows the default, when its value does not say it.
        nullable: ``null`` may be written, for None.
    """

    kind: Kind[object]
    doc: str
    default: object = None
    default_words: str = ""
    nullable: bool = False


@dataclass(frozen=True)
class Table(Kind[T_co]):
    """A mapping with known keys; an unknown one is an error.

    Attributes:
        fields: the keys.
        what: what a message calls them.
        model: is given the values of the keys that a spec has, by name, and makes the table's value.
        more: gives the field of a key that is not among ``fields``, or None where there is no such key.
    """

    fields: Mapping[str, Field]
    what: str
    model: Callable[..., T_co]
    more: Callable[[str], Field | None] = lambda _: None

    def read(self, node: Node, at: str, problems: Problems) -> T_co | Bad:
        """See ``Kind.read``."""
        prefix = f"{at}: " if at else ""
        if node.kind != "map":
            example = next(iter(self.fields), None)
            return wrong(
                node,
                at or "the spec",
                problems,
                f"write a mapping like {example}: ..." if example else "write {}",
            )
        values: dict[str, object] = {}
        for key, item in node.pairs:
            found = self.fields.get(key.text) or self.more(key.text)
            if found is None:
                word = shorten(key.text)
                fix = suggest(word, self.fields, self.what)
                problems.bad(key.where, f"{prefix}unknown key '{word}'", fix)
                values[key.text] = BAD
            elif found.nullable and is_null(item):
                values[key.text] = None
            else:
                values[key.text] = found.kind.read(item, f"{at}.{key.text}" if at else key.text, problems)
        for name, wanted in self.fields.items():
            if wanted.default is REQUIRED and name not in values:
                problems.bad(node.where, f"{prefix}the key '{name}' is missing", f"add '{name}: ...'")
                values[name] = BAD
        if BAD in values.values():
            return BAD
        return self.model(
            **{f"{name}_" if iskeyword(name) else name: value for name, value in values.items()}
        )

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        properties: Json = {}
        for name, item in self.fields.items():
            schema = item.kind.schema()
            if item.nullable:
                schema = {"anyOf": [schema, {"type": "null"}]}
            schema = {**schema, "description": item.doc}
            if isinstance(item.default, (str, int, float, bool)):
                schema["default"] = item.default
            properties[name] = schema
        whole: Json = {"type": "object", "additionalProperties": False, "properties": properties}
        required = [name for name, item in self.fields.items() if item.default is REQUIRED]
        return {**whole, "required": required} if required else whole

    def words(self) -> str:
        """See ``Kind.words``."""
        return "a mapping"


@dataclass(frozen=True)
class Short(Kind[T_co]):
    """A table, or the value of its most important key alone.

    Attributes:
        table: the table. key: the key whose value may stand for the whole mapping.
    """

    table: Table[T_co]
    key: str

    def read(self, node: Node, at: str, problems: Problems) -> T_co | Bad:
        """See ``Kind.read``."""
        if is_scalar(node):
            key = Node("scalar", node.where, text=self.key)
            node = Node("map", node.where, pairs=((key, node),), size=node.size)
        return self.table.read(node, at, problems)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"anyOf": [self.table.fields[self.key].kind.schema(), self.table.schema()]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return f"{self.table.fields[self.key].kind.words()}, or a mapping"


def table_of(model: type[T], what: str) -> Table[T]:
    """The table whose value is this dataclass. Inherited keys come last.

    Args:
        model: a dataclass; its fields that are not made with ``option`` are no keys. A field whose name
            would be a word of Python's ends with ``_``, which its key does not have (``as_``).
        what: what a message calls its keys.
    """
    own = own_annotations(model)
    items = sorted(dataclasses.fields(model), key=lambda item: item.name not in own)  # type: ignore[arg-type]
    declared = [item for item in items if "kind" in item.metadata]
    return Table({item.name.rstrip("_"): _field(item) for item in declared}, what, model)


def _field(item: dataclasses.Field[object]) -> Field:
    told = item.metadata
    default = item.default if item.default_factory is dataclasses.MISSING else item.default_factory()
    return Field(kind_of(told["kind"]), told["doc"], default, told["default"], told["null"])


def kind_of(declared: object) -> Kind[object]:
    """How a value of a declared kind (``contract.options``) is read and checked."""
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
        return _whole(declared)
    if isinstance(declared, options.Duration):
        return seconds(declared.low)
    if isinstance(declared, options.Size):
        return size(declared.low)
    if isinstance(declared, options.Many):
        return _many(declared)
    raise TypeError(f"no kind of option: {declared!r}")


def _whole(declared: options.Whole) -> Kind[object]:
    number = Whole(declared.low, declared.high)
    if declared.or_word is None:
        return number
    word = Word((declared.or_word,), "write a number, or one of")
    return OneOf[object]((word, number), (is_word, lambda node: True))


def _many(declared: options.Many) -> Kind[object]:
    found = ListOf(kind_of(declared.kind), declared.low, declared.unique, declared.example)
    if declared.or_word is None:
        return found
    word = Word((declared.or_word,), "write a list, or one of")
    return OneOf[object]((word, found), (is_word, lambda node: True))
