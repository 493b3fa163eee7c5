"""Values of options as they are typed (``--set schedule.active=5``), read by their declarations.

Inside a job there is no reader of job specs; a declaration (``contract.options``) says enough.
"""

from __future__ import annotations

import dataclasses
import re

from ..contract import options as kinds
from ..contract.quantities import parse_size, parse_time


def declared(block: type) -> dict[str, object]:
    """Key -> kind of the options of a dataclass whose fields are made with ``option``."""
    fields = dataclasses.fields(block)
    return {item.name.rstrip("_"): item.metadata["kind"] for item in fields if "kind" in item.metadata}


def read_value(kind: object, text: str) -> object:
    """The JSON value that a text stands for.

    Args:
        kind: one of the classes of ``contract.options``.

    Raises:
        ValueError: it does not fit; the message says what to write.
    """
    if isinstance(kind, kinds.Flag):
        if text not in ("true", "false"):
            raise ValueError("write true or false")
        return text == "true"
    if isinstance(kind, kinds.Word):
        if text not in kind.known:
            raise ValueError(f"write one of {', '.join(kind.known)}")
        return text
    if isinstance(kind, kinds.Whole):
        return text if text == kind.or_word else _whole(kind, text)
    if isinstance(kind, kinds.Duration):
        seconds = float(text) if _is_number(text) else parse_time(text)
        return _at_least(kind.low, seconds, "seconds")
    if isinstance(kind, kinds.Size):
        return _at_least(kind.low, int(text) if text.isdigit() else parse_size(text), "bytes")
    if isinstance(kind, kinds.Many):
        return text if text == kind.or_word else _many(kind, text)
    if isinstance(kind, kinds.Pattern):
        return _pattern(text)
    if isinstance(kind, kinds.Text):
        if not text.strip() or not re.fullmatch(kind.pattern or r"(?s:.*)", text):
            raise ValueError(f"write {kind.what}")
        return text
    raise TypeError(f"no kind of option: {kind!r}")


def _whole(kind: kinds.Whole, text: str) -> int:
    if not re.fullmatch(r"0|-?[1-9][0-9]*", text) or not kind.low <= int(text) <= kind.high:
        limit = f" to {kind.high}" if kind.high < 1 << 31 else " on"
        word = f", or {kind.or_word}" if kind.or_word else ""
        raise ValueError(f"write a whole number from {kind.low}{limit}{word}")
    return int(text)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]+(\.[0-9]*)?", text) is not None


def _at_least(low: float, value: float, unit: str) -> float:
    if value < low:
        raise ValueError(f"write at least {low:g} {unit}")
    return value


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is no regular expression ({error})") from None
    return text


def _many(kind: kinds.Many, text: str) -> list[object]:
    """``[a, b]`` or ``a,b``; lists of lists as ``[[a, b], [c]]``."""
    inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
    words = _items(inner)
    if len(words) < kind.low or (kind.unique and len(set(words)) < len(words)):
        raise ValueError(f"write a list like {kind.example}" if kind.example else "write a list")
    return [read_value(kind.kind, word) for word in words]


def _items(text: str) -> list[str]:
    """The items between commas, of which those inside of brackets divide nothing."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and not depth:
            found.append("")
        else:
            found[-1] += char
    return [word.strip().strip("'\"") for word in found if word.strip()]
