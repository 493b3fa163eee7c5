"""``--set variants.baseline.batch=8``: values laid over a spec before it is checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from profrun.jobs.nodes import Node, parse, shorten
from profrun.jobs.problems import Problems, Where, suggest

_DOTTED = (".labels", ".annotations", ".node_selector", ".pod_resources")
"""Mappings of the cluster block whose keys may hold dots."""


class Override(NamedTuple):
    """``path=value``, and what the user typed for it: messages name that."""

    text: str
    typed: str


def apply(root: Node, overrides: Iterable[str | Override], problems: Problems) -> Node:
    """The tree with every override laid over it, in order.

    The part before ``=`` is a path of keys divided by dots; a number counts into a list from 0. Where keys
    hold dots themselves the longest existing key wins. The part after it is YAML.

    Raises:
        SpecError: an override that is no ``path=value``, whose value is no YAML, or that points nowhere.
    """
    for override in overrides:
        given = override if isinstance(override, Override) else Override(override, f"--set {override}")
        label = shorten(given.typed, 106)
        where = Where(0, 0, label)
        path, equals, text = given.text.partition("=")
        path = path.strip()
        if not equals or not path or any(not part for part in path.split(".")):
            problems.bad(where, "is not 'path=value'", "write one like --set repeats=3")
            raise problems.error()
        value = (
            parse(text, problems, label) if text.strip() else Node("scalar", where, plain=True, exact=False)
        )
        changed = _lay(root, path, value, "", where, problems)
        if changed is None:
            raise problems.error()
        root = changed
    return root


def _lay(node: Node, path: str, value: Node, at: str, where: Where, problems: Problems) -> Node | None:
    """``node`` with ``value`` at ``path`` under it, or None after a problem was noted."""
    if node.kind == "list":
        return _lay_list(node, path, value, at, where, problems)
    if node.kind != "map":
        problems.bad(where, f"{at or 'the spec'} holds no keys", f"set {at} itself")
        return None
    known = [key.text for key, _ in node.pairs]
    fits = [key for key in known if path == key or path.startswith(key + ".")]
    key = max(fits, key=len) if fits else _new_key(path, at)
    rest = path[len(key) + 1 :]
    place = f"{at}.{key}" if at else key
    current = node.get(key)
    if not rest:
        laid: Node | None = value
    elif current is not None:
        laid = _lay(current, rest, value, place, where, problems)
    elif at == "variants":
        problems.bad(where, f"there is no variant '{shorten(key)}'", suggest(key, known, "variants"))
        return None
    else:
        laid = _lay(Node("map", where), rest, value, place, where, problems)
    if laid is None:
        return None
    name = node.key(key) or Node("scalar", where, text=key)
    pairs = tuple((k, v) for k, v in node.pairs if k.text != key)
    index = known.index(key) if key in known else len(known)
    return Node(
        "map", node.where, pairs=(*pairs[:index], (name, laid), *pairs[index:]), size=node.size + laid.size
    )


def _new_key(path: str, at: str) -> str:
    """A key that is not there yet: a variant's name may hold dots, everything else ends at the next one."""
    if at in ("variants", "env") or at.endswith(_DOTTED):
        return path.rpartition(".")[0] if at == "variants" and "." in path else path
    return path.partition(".")[0]


def _lay_list(node: Node, path: str, value: Node, at: str, where: Where, problems: Problems) -> Node | None:
    index, _, rest = path.partition(".")
    if not re.fullmatch(r"[0-9]{1,6}", index) or int(index) >= len(node.items):
        count = f"0 to {len(node.items) - 1}" if node.items else "none: it is empty"
        problems.bad(
            where, f"{at} has no item '{shorten(index)}'", f"items are {count}; or set the whole list"
        )
        return None
    number = int(index)
    laid = _lay(node.items[number], rest, value, f"{at}.{index}", where, problems) if rest else value
    if laid is None:
        return None
    items = (*node.items[:number], laid, *node.items[number + 1 :])
    return Node("list", node.where, items=items, size=node.size + laid.size)
