"""Secrets stay out of what profrun writes and prints: by name, by form, and by value where it is known.

``Redactor`` knows the values of one job; the functions below it know none. A secret becomes ``HIDDEN``.
Standard library, Python 3.9: the wrapper and the hook use it inside the user's image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .secret_names import secret_name, sure_name
from .secret_shapes import find_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HIDDEN = "<redacted>"
SHORTEST = 6
"""Characters of the shortest value that is looked for in texts. A shorter one is hidden only where its name
or its place says what it is: it would be found in words that have nothing to do with it."""

_NAME = re.compile(r"(?<![\w-])-{0,2}[A-Za-z][\w.-]*")
_AFTER = re.compile(
    r"(?P<sep>(?:\\?[\"'])?\s*[=:]\s*|\s+)"
    r"(?P<value>\\?\"[^\"\n]*\"|'[^'\n]*'|\[[^\]\n]*\]|\{[A-Za-z_]\w*\}|[^\s\"',;}\])]+)"
)
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")
_FLOW = re.compile(r"[\[{]+[\w.-]+:")
"""How a mapping of YAML begins: ``passphrase_1: {token: X}``. Its own keys tell what is secret in it."""
_DOCUMENT_KEYS = frozenset({"key", "keys"})
"""``key: nvidia.com/gpu`` of a manifest is no secret; ``key=X`` and ``--key X`` are."""
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_BLANK = frozenset({"", "|", ">", "|-", ">-", "{", "[", "null", "~", "none", "None", "true", "false"})

_SQL = frozenset({"mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlsh", "mariadb", "mariadb-dump"})
_OF_PROGRAM = {
    **dict.fromkeys(_SQL, ("-p",)),
    "sshpass": ("-p",),
    "docker": ("-p",),
    "podman": ("-p",),
    "curl": ("-u", "--user", "--proxy-user", "-U"),
    "redis-cli": ("-a",),
    "ldapsearch": ("-w",),
    "sqlcmd": ("-P",),
    "smbclient": ("-U",),
}
"""Programs whose short options hold a password."""
_APART = frozenset({"sshpass", "docker", "podman", "curl", "redis-cli", "ldapsearch", "sqlcmd", "smbclient"})
"""Of these, the programs that take the value as a word of its own, too; mysql's ``-p X`` names a database."""
_JOINED_P = re.compile(r"-p(?=.*[A-Z\d])(?=.*[A-Za-z])[^=/.,:\s]{6,}")
"""``-pPASSWORD`` of any other program: six characters or more, some letters, and not only small ones."""


@dataclass(frozen=True)
class Redactor:
    """Hides the secrets of one job.

    Attributes:
        values: the secrets that are known, e.g. the value of a variant's ``token``.
    """

    values: tuple[str, ...] = ()

    @cached_property
    def _known(self) -> re.Pattern[str] | None:
        """Finds a known value, as it is and as JSON, a shell, HTML or a URL spell it."""
        spelled = {form for value in self.values for form in spellings(value)}
        parts = [re.escape(form) for form in sorted(spelled, key=lambda form: (-len(form), form))]
        return re.compile("|".join(parts)) if parts else None

    def text(self, value: str) -> str:
        """A text of any kind: without known values, without secrets by form, without ``password=X`` and
        ``--api-key X``."""
        if self._known is not None:
            value = self._known.sub(HIDDEN, value)
        value = _shapes(value)
        return _without(value, named_spans(value))

    def sure_spans(self, value: str) -> Iterator[tuple[int, int]]:
        """(begin, end) of known values and of secrets by form in a text; they may overlap."""
        if self._known is not None:
            yield from (found.span() for found in self._known.finditer(value))
        yield from ((found.start, found.end) for found in find_shapes(value))

    def named(self, name: str, value: object) -> object:
        """The value of a name: hidden where the name says secret, else as ``value`` does."""
        if isinstance(value, (int, float)) or value is None:
            hide = value is not None and not isinstance(value, bool) and sure_name(name)
            return HIDDEN if hide else value
        if isinstance(value, str):
            hide = secret_name(name) and not _blank(value) and (sure_name(name) or not _number(value))
            return HIDDEN if hide else self.word(value)
        return self.value(value)

    def word(self, value: str) -> str:
        """A text that is one value: also hidden where it is a known value that is too short for ``text``."""
        return HIDDEN if value in self.values and not _number(value) else self.text(value)

    def value(self, value: object) -> object:
        """A JSON value: keys of mappings are names."""
        if isinstance(value, str):
            return self.word(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.named(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def arguments(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command line without the values of options such as ``--api-key VALUE`` or ``TOKEN=VALUE``."""
        spans = dict(_secret_arguments(argv))
        return tuple(
            f"{word[: spans[index]]}{HIDDEN}" if index in spans else self.word(word)
            for index, word in enumerate(argv)
        )

    def environment(self, environ: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
        """All variables, sorted; the values of secret ones (by name, or listed in ``secrets``) hidden."""
        listed = set(secrets)
        return {
            name: HIDDEN if name in listed else str(self.named(name, value))
            for name, value in sorted(environ.items())
        }


def spellings(value: str) -> set[str]:
    """A value as it may stand in a file: as it is, and as JSON, HTML and URLs spell it; a value of several
    lines also line by line. Without those that are too short to be looked for."""
    import html
    import json
    from urllib.parse import quote

    parts = [value, *(value.splitlines() if "\n" in value else ())]
    found = set()
    for part in (part.strip() for part in parts):
        if len(part) >= SHORTEST and not _number(part, SHORTEST + 2):
            whole = {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]}
            found |= whole | {html.escape(form) for form in whole} | {quote(part), quote(part, safe="")}
            found |= {part.replace("'", "''"), part.replace("'", "'\"'\"'")}
    return found


def secrets_of_arguments(argv: Sequence[str]) -> Iterator[str]:
    """The values of a command line that are secrets by the names of their options, and those by form."""
    for index, start in _secret_arguments(argv):
        yield argv[index][start:]
    for word in argv:
        yield from secrets_of_text(word)


def secrets_of_text(text: str) -> Iterator[str]:
    """The secrets of a text that are known by their form, and those of ``password=X`` and ``--api-key X``."""
    for found in find_shapes(text):
        yield text[found.start : found.end]
    for start, end in named_spans(text):
        yield text[start:end]


def text(value: str) -> str:
    """``Redactor.text`` without known values."""
    return Redactor().text(value)


def _shapes(value: str) -> str:
    """Without the secrets that are known by their form."""
    return _without(value, [(found.start, found.end) for found in find_shapes(value)])


def _without(value: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with some spans hidden, which may overlap."""
    parts, done = [], 0
    for start, end in sorted(spans):
        if start >= done:
            parts += [value[done:start], HIDDEN]
        done = max(done, end)
    return "".join([*parts, value[done:]])


def named_spans(text: str) -> Iterator[tuple[int, int]]:
    """(begin, end) of the values of ``password=X``, ``"token": "X"`` and ``--api-key X`` in a text, without
    quotes."""
    done = 0
    for name in _NAME.finditer(text):
        if name.start() < done or not secret_name(name[0]):
            continue
        after = _AFTER.match(text, name.end())
        if after is not None and _is_pair(name[0], after["sep"], after["value"].strip("\"'\\")):
            done = after.end("value")
            bare = after["value"].strip("\"'\\")
            start = after.start("value") + after["value"].index(bare)
            yield start, start + len(bare)


def _is_pair(name: str, sep: str, value: str) -> bool:
    option = name.startswith("-")
    if _blank(value) or (sep.isspace() and not option):
        return False
    if value.startswith("-") and option and sep.isspace():
        return False  # the option has no value
    if ":" in sep and not option and (_FLOW.fullmatch(value) or name.lower() in _DOCUMENT_KEYS):
        return False
    if not option and "=" not in sep and not sure_name(name) and len(value) < SHORTEST:
        return False  # "unexpected token: ')'"
    return sure_name(name) or not _number(value)


def _secret_arguments(argv: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(number of the word, where the secret begins in it)."""
    short: tuple[str, ...] = ()
    apart = False
    after: str | None = None
    for index, word in enumerate(argv):
        program = word.rpartition("/")[2]
        if program in _OF_PROGRAM and after is None:
            short, apart = _OF_PROGRAM[program], program in _APART
            continue
        if after is not None:
            name, after = after, None
            if not word.startswith("--") and (name in short or sure_name(name) or not _number(word)):
                if not _blank(word):
                    yield index, 0
                continue
        name, equals, value = word.partition("=")
        named = secret_name(name.rpartition(".")[2] if not name.startswith("-") else name)
        if equals and named and re.fullmatch(r"-{0,2}[\w.-]+", name):
            if not _blank(value) and (sure_name(name) or not _number(value)):
                yield index, len(name) + 1
        elif not equals and ((_OPTION.fullmatch(word) and named) or (apart and word in short)):
            after = word
        elif _joined(word, short):
            yield index, 2


def _joined(word: str, short: Sequence[str]) -> bool:
    """Whether a word is a short option with its password: ``-pX`` of mysql, ``-pPASSWORD`` of any program."""
    own = any(word.startswith(option) and len(word) > 2 for option in short if not option.startswith("--"))
    return own or _JOINED_P.fullmatch(word) is not None


def _blank(value: str) -> bool:
    """Nothing that could be a secret: empty, a word of YAML, a placeholder, or hidden already."""
    return value in _BLANK or value == HIDDEN or _PLACEHOLDER.fullmatch(value) is not None


def _number(value: str, digits: int = 0) -> bool:
    """Whether a value is a number: ``--tokens 128``; with ``digits``: one of fewer digits."""
    try:
        float(value)
    except ValueError:
        return False
    return not digits or len(value) < digits
