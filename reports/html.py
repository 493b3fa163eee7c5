"""HTML elements by small functions. What is not ``Html`` is text, and is escaped here and nowhere else."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

VOID = frozenset({"meta", "link", "br", "input", "line", "rect", "circle", "path", "polyline", "use"})


class Html(str):
    """A piece of markup. Everything else that is given to ``el`` is text and gets escaped."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Iterable[Child] | None"
"""What an element may hold: ``Html``, text, a number, None (nothing), or these one after the other."""


def esc(value: object) -> str:
    """The text of a value, safe inside an element and inside a quoted attribute."""
    return html.escape("".join(char if char >= " " or char in "\n\t" else " " for char in str(value)))


def el(tag_: str, *children: Child, **attributes: object) -> Html:
    """An element.

    Args:
        tag_: its tag.
        children: what it holds.
        attributes: its attributes; ``class_`` is class, other underscores become dashes. None and False are
            left out, True is an attribute without a value.
    """
    parts = [tag_]
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f'{name}="{esc(value)}"')
    opening = " ".join(parts)
    if tag_ in VOID and all(child is None for child in children):
        return Html(f"<{opening}>" if tag_ in ("meta", "link", "br", "input") else f"<{opening}/>")
    return Html(f"<{opening}>{join(children)}</{tag_}>")


def join(children: Child) -> Html:
    """The pieces one after the other, with text escaped."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, (str, int, float)):
        return Html(esc(children))
    return Html("".join(join(child) for child in children))


def chip(word: str, class_: str | None = None) -> Html:
    """A word in a coloured box: a state, a severity or a verdict.

    Args:
        word: what is shown.
        class_: which colour it has in the style sheet; ``word`` unless given, "" for none.
    """
    return el("b", word, class_=f"chip {word if class_ is None else class_}".rstrip())


def sections_html(
    sections: Sequence[tuple[str, str, Html | None]], prefix: str, *, of: str, absent: str
) -> tuple[Html | None, ...]:
    """Links to the sections, the sections, and a line with the titles of those without content.

    Args:
        sections: (id, title, content) of each.
        prefix: of their ids in the page.
        of: what they are sections of, in words.
        absent: begin of the last line.
    """
    present = [(f"{prefix}-{id_}", title, body) for id_, title, body in sections if body]
    missing = ", ".join(title for _, title, body in sections if not body)
    label = {"aria_label": f"sections of {of}"}
    links = (el("a", title, href=f"#{id_}") for id_, title, _ in present)
    return (
        el("nav", links, el("a", "↑ top", href=f"#{prefix}", class_="totop"), **label, class_="sections"),
        *(el("section", el("h3", title), body, id=id_) for id_, title, body in present),
        el("p", absent, missing, ".", class_="note") if missing else None,
    )


def data_script(id_: str, value: object) -> Html:
    """A JSON value for the script of the page; ``<``, ``>`` and ``&`` are escaped, or a name could end it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Html(f'<script type="application/json" id="{esc(id_)}">{text}</script>')
