"""HTML by small functions. The one place that escapes: what is not ``Html`` already is text."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

VOID = frozenset({"meta", "link", "br", "input", "line", "rect", "circle", "path", "polyline", "use"})


class Html(str):
    """A piece of markup. Everything else that is given to ``el`` is text and gets escaped."""

    __slots__ = ()


Child = Any  # Html, text, a number, None (nothing), or an iterable of these


def esc(value: object) -> str:
    """The text of a value, safe inside an element and inside a quoted attribute."""
    return html.escape("".join(char if char >= " " or char in "\n\t" else " " for char in str(value)))


def el(tag_: str, *children: Child, **attributes: object) -> Html:
    """An element.

    Attributes: ``class_`` is class, other underscores become dashes; None and False are left out, True is an
    attribute without a value.
    """
    parts = [tag_]
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f'{name}="{esc(value)}"')
    opening = " ".join(parts)
    if tag_ in VOID and not children:
        return Html(f"<{opening}>" if tag_ in ("meta", "link", "br", "input") else f"<{opening}/>")
    return Html(f"<{opening}>{join(children)}</{tag_}>")


def join(children: Child) -> Html:
    """Pieces one after the other, text escaped."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, Iterable) and not isinstance(children, (str, bytes, dict)):
        return Html("".join(join(child) for child in children))
    return Html(esc(children))


def data_script(id_: str, value: Any) -> Html:
    """A JSON value for the page's script. ``<``, ``>`` and ``&`` are escaped: no name can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Html(f'<script type="application/json" id="{esc(id_)}">{text}</script>')
