"""Kinds of values that only a job spec has: image, mount, range of numbers, share, matrix, collector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from profrun.contract.profilers import BUILT_IN, NEUTRAL, all_names
from profrun.jobs.kinds import BAD, Bad, Json, Kind, T, Text, Value, Word, scalar, wrong
from profrun.jobs.nodes import Node, Scalar, shown, typed
from profrun.jobs.number_kinds import Number, Whole
from profrun.jobs.problems import Problems, nearest
from profrun.jobs.tables import ListOf, MapOf

NAME_WORDS = "letters, digits, '.', '_' and '-' (64 at most, a letter or digit first): it names a folder"
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
IDENTIFIER_WORDS = "letters, digits and '_'"
IMAGE_WORDS = ("auto", "cuda", "rocm", "none")

Point = Mapping[str, Scalar]
"""Values of a variant by name."""

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_TAG = r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
IMAGE_REFERENCE = rf"(?:[a-z]+://)?(?:{_HOST}[/#])?{_PART}(?:/{_PART})*{_TAG}"
IMAGE_FILE = r"\.{0,2}/\S.*|\S+\.(?:sif|sqsh)"


@dataclass(frozen=True)
class Image(Kind[str]):
    """auto, cuda, rocm, none, a reference, or a file of an unpacked or squashed image."""

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        value = Text("auto, cuda, rocm, none or an image reference").read(node, at, problems)
        if value is BAD or value in IMAGE_WORDS or re.fullmatch(IMAGE_FILE, value):
            return value
        close = nearest(value, IMAGE_WORDS, 0.7) if re.fullmatch(r"\w+", value) else None
        if close:
            problems.bad(
                node.where,
                f"{at}: {shown(node)} is not known",
                f"did you mean '{close}'? (an image of that name: '{value.lower()}:latest')",
            )
            return BAD
        if not re.fullmatch(IMAGE_REFERENCE, value):
            lower = value.lower()
            hint = (
                f"write '{lower}'" if re.fullmatch(IMAGE_REFERENCE, lower) else "write one like host/name:tag"
            )
            problems.bad(node.where, f"{at}: {shown(node)} is no image reference", hint)
            return BAD
        return value

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "string", "pattern": f"^(?:{IMAGE_FILE}|{IMAGE_REFERENCE})$"}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "`auto` \\| `cuda` \\| `rocm` \\| `none` \\| a reference"


@dataclass(frozen=True)
class Mount(Kind[str]):
    """``source:target[:ro|rw]``; the target is absolute."""

    form = r"([^:]+):(/[^:]*)(?::(ro|rw))?"

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        value = Text("source:/target or source:/target:ro").read(node, at, problems)
        if value is BAD or re.fullmatch(self.form, value):
            return value
        parts = value.split(":")
        if len(parts) == 1:
            fix = f"write {value}:/{value.strip('/.~') or 'target'}"
        elif not parts[1].startswith("/"):
            fix = "the path in the container must start with '/'"
        else:
            fix = "write source:/target, or source:/target:ro"
        return wrong(node, at, problems, fix)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "string", "pattern": f"^{self.form}$"}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "`source:/target[:ro]`"


@dataclass(frozen=True)
class Span(Kind[tuple[int, int]]):
    """A whole number, [low, high] or 'low..high'; read as (low, high)."""

    def read(self, node: Node, at: str, problems: Problems) -> tuple[int, int] | Bad:
        """See ``Kind.read``."""
        fix = "write a whole number, [low, high] or low..high"
        if node.kind == "list":
            ends = [Whole(0).read(item, at, problems) for item in node.items]
            if BAD in ends:
                return BAD
            low, high = ends if len(ends) == 2 else (BAD, BAD)
        else:
            text = node.text if node.kind == "scalar" and typed(node).type != "odd" else ""
            match = re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", text)
            low, high = (int(match[1]), int(match[2] or match[1])) if match else (BAD, BAD)
        if low is BAD or high is BAD:
            return wrong(node, at, problems, fix)
        if low > high:
            problems.bad(node.where, f"{at}: {low} is more than {high}", f"write {high}..{low}")
            return BAD
        return low, high

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        whole: Json = {"type": "integer", "minimum": 0}
        pair = {"type": "array", "items": whole, "minItems": 2, "maxItems": 2}
        return {"anyOf": [whole, pair, {"type": "string", "pattern": r"^[0-9]+\.\.[0-9]+$"}]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "a whole number, `[low, high]` or `low..high`"


@dataclass(frozen=True)
class Pair(Kind[tuple[T, T]]):
    """[low, high], both of one kind.

    Attributes:
        kind: of numbers. example: what a message shows.
    """

    kind: Kind[T]
    example: str

    def read(self, node: Node, at: str, problems: Problems) -> tuple[T, T] | Bad:
        """See ``Kind.read``."""
        if node.kind != "list" or len(node.items) != 2:
            return wrong(node, at, problems, f"write [low, high], like {self.example}")
        low, high = (self.kind.read(item, at, problems) for item in node.items)
        if low is BAD or high is BAD:
            return BAD
        if low > high:  # type: ignore[operator]
            fix = f"write [{node.items[1].text}, {node.items[0].text}]"
            problems.bad(node.where, f"{at}: {node.items[0].text} is more than {node.items[1].text}", fix)
            return BAD
        return low, high

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "array", "items": self.kind.schema(), "minItems": 2, "maxItems": 2}

    def words(self) -> str:
        """See ``Kind.words``."""
        return f"`[low, high]` like `{self.example}`"


@dataclass(frozen=True)
class Share(Kind[float]):
    """A part of one: 0.4 or 40%; read as a float in (0, 1], or with ``zero`` in [0, 1]."""

    zero: bool = False

    def read(self, node: Node, at: str, problems: Problems) -> float | Bad:
        """See ``Kind.read``."""
        match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%", node.text) if node.kind == "scalar" else None
        found = scalar(node)
        if self.zero and found is not None and found.type in ("int", "float") and found.value == 0:
            return 0.0
        if match and (0 if self.zero else 1e-12) <= float(match[1]) <= 100:
            return float(match[1]) / 100
        if (
            node.kind == "scalar"
            and re.fullmatch(r"[1-9][0-9]{0,2}", node.text)
            and 1 < int(node.text) <= 100
        ):
            share = f"{int(node.text) / 100:g} or {node.text}%"
            return wrong(node, at, problems, f"write {share}", "is more than everything")
        return Number(0, 1).read(node, at, problems)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        number = {**Number(0, 1).schema()}
        if self.zero:
            number = {"type": "number", "minimum": 0, "maximum": 1}
        return {"anyOf": [number, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$"}]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "a share like `0.4` or `40%`"


POINT = MapOf(Value(), IDENTIFIER, IDENTIFIER_WORDS, "{batch: 16}")
_POINTS = ListOf(MapOf(Value(), IDENTIFIER, IDENTIFIER_WORDS, "{batch: 16}", low=1), example="[{batch: 16}]")
_AXIS = ListOf(Value(), 1, unique=True, example="[8, 16]")


class MatrixSpec(NamedTuple):
    """A ``matrix`` block: the values of each axis, and points taken out or added."""

    axes: Mapping[str, tuple[Scalar, ...]]
    exclude: tuple[Point, ...]
    include: tuple[Point, ...]


@dataclass(frozen=True)
class Matrix(Kind[MatrixSpec]):
    """Axes with their values, and points taken out or added."""

    example = "{batch: [8, 16]}"

    def read(self, node: Node, at: str, problems: Problems) -> MatrixSpec | Bad:
        """See ``Kind.read``."""
        if node.kind != "map":
            return wrong(node, at, problems, "write a mapping like {batch: [8, 16], exclude: [{batch: 8}]}")
        points: dict[str, tuple[Point, ...]] = {}
        axes: dict[str, tuple[Scalar, ...]] = {}
        before = len(problems.found)
        for key, item in node.pairs:
            place = f"{at}.{key.text}"
            if key.text in ("exclude", "include"):
                given = _POINTS.read(item, place, problems)
                points[key.text] = () if given is BAD else given
            elif not re.fullmatch(IDENTIFIER, key.text):
                problems.bad(
                    key.where, f"{at}: the name '{key.text[:60]}' cannot be used", f"use {IDENTIFIER_WORDS}"
                )
            else:
                values = _AXIS.read(item, place, problems)
                axes[key.text] = () if values is BAD else values
        if not axes and not problems.found:
            problems.bad(node.where, f"{at}: there is no axis", "add one like batch: [8, 16]")
        if len(problems.found) > before:
            return BAD
        return MatrixSpec(axes, points.get("exclude", ()), points.get("include", ()))

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        points: Json = {"type": "array", "items": {**POINT.schema(), "minProperties": 1}}
        axis: Json = {"type": "array", "minItems": 1, "uniqueItems": True, "items": Value().schema()}
        return {
            "type": "object",
            "properties": {"exclude": points, "include": points},
            "propertyNames": {"pattern": f"^(?:{IDENTIFIER})$"},
            "additionalProperties": axis,
        }

    def words(self) -> str:
        """See ``Kind.words``."""
        return "a mapping `{axis: [values], exclude: [...], include: [...]}`"


@dataclass(frozen=True)
class Collector(Kind[str]):
    """The name of a profiler, or a vendor-neutral collector.

    Profilers of other packages are looked for only when a name is not a built-in one: that takes longer than
    reading a spec.
    """

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        built_in = (*BUILT_IN, *NEUTRAL)
        known = built_in if node.text in built_in else all_names()
        return Word(known, "collectors").read(node, at, problems)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return Word(all_names()).schema()

    def words(self) -> str:
        """See ``Kind.words``."""
        return Word((*BUILT_IN, *NEUTRAL)).words()
