"""YAML text as a tree of values, each with its place in the text.

Built from the parser's events, not with ``yaml.load``: every key and value keeps its line and column, a key
given twice is an error instead of the last one winning, aliases and ``<<`` are resolved with a budget, and
plain scalars are told apart by the rules of YAML 1.2, where those of YAML 1.1 differ a value is *odd* and is
refused instead of guessed (``no``, ``010``, ``1e3``, ``1_000``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import yaml

from profrun.jobs.problems import Problems, SpecError, Where

Scalar = str | int | float | bool | None
"""What one value of YAML can be, as Python has it."""

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 50_000  # after aliases are expanded: a few lines of YAML can otherwise ask for 10**9

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = yaml.reader.Reader.NON_PRINTABLE

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_YAML_1_1_BOOL = frozenset(("yes", "no", "on", "off"))
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BARE_EXPONENT = re.compile(r"[-+]?[0-9]+[eE]\+?[0-9]+")  # a number in YAML 1.2, text in 1.1
_ODD_INT = re.compile(r"[-+]?(0[0-9_]+|0o[0-7]+|0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*_[0-9_]*)")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True)
class Node:
    """One value of the file.

    Attributes:
        kind: scalar, list or map.
        where: its first character.
        text: a scalar's text, after quotes and escapes.
        plain: a scalar without quotes, whose text decides its type.
        exact: the scalar stands in the file character by character, so that offsets in it are columns.
        items: a list's values.
        pairs: a map's keys and values, without duplicates, merges resolved.
        size: nodes under it, itself included.
    """

    kind: Literal["scalar", "list", "map"]
    where: Where
    text: str = ""
    plain: bool = False
    exact: bool = False
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[Node, Node], ...] = ()
    size: int = 1

    def get(self, key: str) -> Node | None:
        """The value under a key of a map, or None."""
        return next((value for name, value in self.pairs if name.text == key), None)

    def key(self, key: str) -> Node | None:
        """The key itself as a node, or None."""
        return next((name for name, _ in self.pairs if name.text == key), None)

    def at(self, offset: int) -> Where:
        """Where the character at ``offset`` of a scalar's text stands; its start when that is not known."""
        if not self.exact or self.where.label is not None:
            return self.where
        return Where(self.where.line, self.where.column + offset + (0 if self.plain else 1))


def find(root: Node, *path: str | int) -> Where:
    """Where the value at this path is written, or the last part of the path that is there."""
    node, where = root, root.where
    for part in path:
        if isinstance(part, int):
            below = node.items[part] if part < len(node.items) else None
        else:
            below = node.get(part)
        if below is None:
            break
        node = below
        where = node.where
    return where


class Typed(NamedTuple):
    """A scalar's type and value.

    Attributes:
        type: ``odd``: YAML readers differ in what it is.
        why: of an odd one: what is wrong with it, a sentence that goes on after the value.
        fix: of an odd one: what to write.
        meant: of an odd one: how its most likely meaning is written, so that all readers agree; else empty.
    """

    type: Literal["null", "bool", "int", "float", "text", "odd"]
    value: Scalar
    why: str = ""
    fix: str = ""
    meant: str = ""


def typed(node: Node) -> Typed:
    """The type of a scalar by YAML 1.2's core schema; what YAML 1.1 would read differently is 'odd'."""
    text = node.text
    if not node.plain:
        return Typed("text", text)
    if text in _NULL:
        return Typed("null", None)
    if text in _TRUE or text in _FALSE:
        return Typed("bool", text in _TRUE)
    if text.lower() in _YAML_1_1_BOOL:
        return _ambiguous(
            text,
            "is true or false to some YAML readers and text to others",
            "true" if text.lower() in ("yes", "on") else "false",
        )
    if text[:1] in "+-.0123456789":
        return _number(text)
    return Typed("text", text)


def _ambiguous(text: str, why: str, meant: str) -> Typed:
    return Typed("odd", text, why, f"write {meant} or '{text}'", meant)


def _number(text: str) -> Typed:
    if _NOT_FINITE.fullmatch(text):
        return Typed("odd", text, "is not a finite number", "write a number")
    if _ODD_INT.fullmatch(text) or (_BARE_EXPONENT.fullmatch(text) and len(text) < 40):
        return _ambiguous(text, "is read as different numbers by different YAML readers", _decimal(text))
    if len(text) > 40 and (_INT.fullmatch(text) or _FLOAT.fullmatch(text)):
        return Typed("odd", text, "is a number of more than 40 characters", "write fewer digits")
    if _INT.fullmatch(text):
        return Typed("int", int(text))
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            return Typed("odd", text, "is too large", "write less")
        return Typed("float", value)
    return Typed("text", text)


def _decimal(text: str) -> str:
    """What the writer of ``0x10``, ``010``, ``1_000`` or ``1e3`` most likely means, in digits."""
    bare = text.replace("_", "")
    if "e" in bare.lower() and not bare.lower().lstrip("+-").startswith("0x"):
        mantissa, exponent = re.split("[eE]", bare)
        return str(int(mantissa) * 10 ** min(int(exponent), 18))
    digits = bare.lstrip("+-")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2], 10)
    try:
        return ("-" if text.startswith("-") else "") + str(int(digits[2:] if base != 10 else digits, base))
    except ValueError:  # no digits ('0x_') or thousands of them
        return "plain digits"


def parse(text: str, problems: Problems, label: str | None = None) -> Node:
    """The tree of one YAML document.

    Args:
        problems: gets what can be gone on after (duplicate keys, ...).
        label: what stands for every position (``--set k=v``) when the text is not a file.

    Raises:
        SpecError: it is no YAML, empty, too large or too deep.
    """
    builder = _Builder(text, problems, label)
    if len(text) > MAX_BYTES:
        raise builder.stop(
            Where(1, 1, label), f"is larger than {MAX_BYTES >> 20} MiB", "a job spec is a page or two"
        )
    bad = _UNPRINTABLE.search(text)
    if bad:
        raise builder.stop(
            _where_of(text, bad.start(), label),
            f"character {bad.group()!a} cannot stand in YAML",
            "delete it",
        )
    try:
        root = builder.build(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in (error.problem or ""):
            # libyaml 0.2.5 scans ahead and gives up at 1000 levels before it hands out the first ones; the
            # parser in Python has no such limit, so the builder stops it at the level that is too deep.
            _Builder(text, problems, label).build(yaml.parse(text, Loader=yaml.SafeLoader))
        raise builder.stop(*_explain(error, text, label)) from None
    except yaml.YAMLError as error:
        raise builder.stop(Where(1, 1, label), " ".join(str(error).split()), "check the YAML") from None
    if root is None:
        raise builder.stop(
            Where(1, 1, label), "there is nothing in it", "a job needs at least 'name' and 'command'"
        )
    return root


class _Open:
    """A list or map whose end is not read yet."""

    __slots__ = ("anchor", "kind", "nodes", "where")

    def __init__(self, kind: Literal["list", "map"], where: Where, anchor: str | None) -> None:
        self.kind, self.where, self.anchor = kind, where, anchor
        self.nodes: list[Node] = []


class _Builder:
    """Events to nodes, without recursion (deep nesting must not end the process)."""

    def __init__(self, text: str, problems: Problems, label: str | None) -> None:
        self.text, self.problems, self.label = text, problems, label
        self.anchors: dict[str, Node | None] = {}
        self.open: list[_Open] = []
        self.total = 0
        self.root: Node | None = None

    def stop(self, where: Where, what: str, fix: str) -> SpecError:
        self.problems.bad(where, what, fix)
        return self.problems.error()

    def where(self, event: yaml.Event) -> Where:
        mark = event.start_mark
        assert mark is not None  # the parser sets it; only events that a program makes have none
        return Where(mark.line + 1, mark.column + 1, self.label)

    def build(self, events: Iterator[yaml.Event]) -> Node | None:
        documents = 0
        for event in events:
            where = self.where(event)
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.stop(where, "a second document starts here", "keep one job in a file")
            elif isinstance(event, yaml.ScalarEvent):
                self.tag(event, where)
                self.add(self.scalar(event, where), event.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self.add(self.alias(event.anchor or "", where), None)
            elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
                self.tag(event, where)
                self.start(event, where)
            elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
                done = self.open.pop()
                node = self.map(done) if done.kind == "map" else self.list(done)
                self.add(node, done.anchor)
        return self.root

    def tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, where: Where) -> None:
        if event.tag not in (None, "!"):
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise self.stop(where, f"the tag {shorten(tag)} is not known here", "leave it out")

    def start(self, event: yaml.CollectionStartEvent, where: Where) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise self.stop(where, f"is nested deeper than {MAX_DEPTH} levels", "a job spec needs four")
        if event.anchor:
            self.anchors[event.anchor] = None  # known, but not whole yet
        kind: Literal["list", "map"] = "list" if isinstance(event, yaml.SequenceStartEvent) else "map"
        self.open.append(_Open(kind, where, event.anchor))

    def scalar(self, event: yaml.ScalarEvent, where: Where) -> Node:
        plain = not event.style
        assert event.start_mark is not None
        assert event.end_mark is not None
        raw = self.text[event.start_mark.index : event.end_mark.index]
        exact = (raw if plain else raw[1:-1]) == event.value and event.style not in ("|", ">")
        return Node("scalar", where, text=event.value, plain=plain, exact=exact)

    def alias(self, name: str, where: Where) -> Node:
        if name not in self.anchors:
            raise self.stop(
                where, f"'*{name}' has no anchor above it", f"write '&{name}' where it is first used"
            )
        node = self.anchors[name]
        if node is None:
            raise self.stop(where, f"'*{name}' contains itself", "write the values out")
        return node

    def add(self, node: Node, anchor: str | None) -> None:
        self.total += node.size if anchor is None and node.kind == "scalar" else 1
        if max(self.total, node.size) > MAX_NODES:
            raise self.stop(node.where, f"holds more than {MAX_NODES} values", "use fewer aliases")
        if anchor:
            self.anchors[anchor] = node
        if self.open:
            self.open[-1].nodes.append(node)
        else:
            self.root = node

    def list(self, done: _Open) -> Node:
        items = tuple(done.nodes)
        return Node("list", done.where, items=items, size=1 + sum(node.size for node in items))

    def map(self, done: _Open) -> Node:
        own: dict[str, tuple[Node, Node]] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in zip(done.nodes[::2], done.nodes[1::2], strict=True):
            if key.kind != "scalar" or (key.plain and key.text == ""):
                self.problems.bad(key.where, "a key must be one word", "write 'key: value'")
            elif key.plain and key.text == "<<":
                self.merge(value, merged)
            elif key.text in own:
                first = own[key.text][0].where
                self.problems.bad(
                    key.where,
                    f"the key '{shorten(key.text)}' is given twice"
                    + (f", first in line {first.line}" if first.label is None else ""),
                    "keep one of them",
                )
            else:
                own[key.text] = (key, value)
        pairs = tuple({**merged, **own}.values())
        return Node("map", done.where, pairs=pairs, size=1 + sum(k.size + v.size for k, v in pairs))

    def merge(self, value: Node, merged: dict[str, tuple[Node, Node]]) -> None:
        sources = value.items if value.kind == "list" else (value,)
        for source in sources:
            if source.kind != "map":
                self.problems.bad(
                    source.where, "'<<' takes a mapping or a list of mappings", "write '<<: *name'"
                )
                continue
            for key, item in source.pairs:
                merged.setdefault(key.text, (key, item))


def shorten(text: str, limit: int = 60) -> str:
    """Text for a message: one line, not long."""
    flat = " ".join(text.split()) if any(c in text for c in "\n\t\r") else text
    flat = flat if flat.isprintable() else flat.encode("unicode_escape").decode("ascii")
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def shown(node: Node) -> str:
    """A value as an error names it."""
    if node.kind != "scalar":
        return "a list" if node.kind == "list" else "a mapping"
    if node.plain and node.text in _NULL:
        return "nothing"
    return f"'{shorten(node.text)}'"


def _where_of(text: str, index: int, label: str | None) -> Where:
    before = text[:index]
    return Where(before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1, label)


_HINTS = (  # what libyaml or pyyaml say, what it means, what to do
    ("mapping values are not allowed", "a ': ' stands where no key can", "quote the value if it holds ': '"),
    ("could not find expected ':'", "a key has no ':' after it", "write 'key: value'"),
    ("expected ',' or ']'", "a list that starts with '[' is not closed", "add ']' or the missing ','"),
    ("expected ',' or '}'", "a mapping that starts with '{' is not closed", "add '}' or the missing ','"),
    ("unexpected end of stream", "a quote is not closed", "add the closing quote"),
    ("cannot start any token", "this character cannot start a value", "quote the value"),
    (
        "did not find expected key",
        "this line does not fit the lines above",
        "check its indentation and the quotes above it",
    ),
    (
        "expected <block end>",
        "this line does not fit the lines above",
        "check its indentation and the quotes above it",
    ),
    ("expected '-' indicator", "this line does not fit the list above", "start it with '- ' or indent less"),
)


def _explain(error: yaml.MarkedYAMLError, text: str, label: str | None) -> tuple[Where, str, str]:
    """The parser's complaint in the words of somebody who wants to mend the file."""
    mark = error.problem_mark or error.context_mark
    where = Where(mark.line + 1, mark.column + 1, label) if mark else Where(1, 1, label)
    lines = text.split("\n")
    line = lines[where.line - 1] if where.line <= len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent:
        return Where(where.line, indent.index("\t") + 1, label), "a tab cannot indent YAML", "use spaces"
    before = line[: where.column - 1].rstrip()[-1:]
    if before in ("}", "]", '"', "'") and "expected" in (error.problem or ""):
        return where, f"text follows the closing {before}", "quote the whole value if it is one text"
    said = " ".join(part for part in (error.context, error.problem) if part)
    opened = error.context_mark
    if opened and ("quoted scalar" in said or "a flow " in said):
        where = Where(
            opened.line + 1, opened.column + 1, label
        )  # where it was opened, not the end of the file
    for words, what, fix in _HINTS:
        if words in said:
            return where, what, fix
    return where, f"not YAML: {' '.join(said.split())}", "check the text near here"
