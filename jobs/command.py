"""The command: ``{placeholders}`` filled, then split into arguments as a POSIX shell splits words.

No shell ever runs a job's command, on any backend: what a shell would have expanded or connected is refused
here, with the way to say it. A placeholder outside quotes is split into words like the text round it, one
inside quotes stays one argument, whatever its value holds.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from profrun.contract.redact import HIDDEN
from profrun.jobs.nodes import Scalar

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_BUILTINS = frozenset(
    ("cd", "export", "source", ".", "set", "unset", "ulimit", "alias", "eval", "if", "for", "while")
)
_OPERATORS = {
    "|": "a pipe",
    "&": "'&'",
    ";": "';'",
    "<": "a redirection",
    ">": "a redirection",
    "(": "'('",
    ")": "')'",
    "`": "a backquote",
    "\n": "a second line",
}
BASH = "write bash -c '...' round it"


class Mistake(NamedTuple):
    """Something wrong in a template: offset into it, what, what to do."""

    offset: int
    what: str
    fix: str


class CommandError(ValueError):
    """A command that cannot be run as it stands."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(f"{mistake.what}; {mistake.fix}")
        self.mistake = mistake


class Piece(NamedTuple):
    """A part of a template: literal text, or the name of a placeholder."""

    offset: int
    text: str
    name: bool


def pieces(template: str) -> Iterator[Piece]:
    """The parts of a template; ``{{`` and ``}}`` are literal braces.

    Raises:
        CommandError: a brace that belongs to no placeholder.
    """
    begin = start = position = 0  # of the literal, of what is not in it yet, of the search
    literal = ""
    while position < len(template):
        char = template[position]
        if char not in "{}":
            position += 1
            continue
        literal += template[start:position]
        if template[position + 1 : position + 2] == char:
            literal += char
            position += 2
        else:
            name = _NAME.match(template, position + 1) if char == "{" else None
            if not name or template[name.end() : name.end() + 1] != "}":
                raise CommandError(
                    Mistake(
                        position,
                        f"the '{char}' belongs to no {{placeholder}}",
                        f"write '{char}{char}' for a brace",
                    )
                )
            if literal:
                yield Piece(begin, literal, False)
                literal = ""
            yield Piece(position, name.group(), True)
            begin = position = name.end() + 1
        start = position
    literal += template[start:]
    if literal:
        yield Piece(begin, literal, False)


def is_shell(program: str) -> bool:
    """Whether a program, by its name or its path, is a shell."""
    return program.rpartition("/")[2] in _SHELLS


def text_of(value: Scalar) -> str:
    """A value as it stands on a command line: booleans as in YAML, numbers as Python writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def fill(template: str, values: Mapping[str, Scalar]) -> str:
    """A template with its placeholders filled, without regard to quotes (environment variables).

    Raises:
        CommandError: a stray brace.
        KeyError: a placeholder without a value.
    """
    return "".join(text_of(values[piece.text]) if piece.name else piece.text for piece in pieces(template))


def fill_command(template: str, values: Mapping[str, Scalar]) -> str:
    """The command line of one point, to be split; values inside quotes are escaped for these quotes.

    Raises:
        CommandError: a stray brace.
        KeyError: a placeholder without a value.
    """
    line, quote = "", ""
    for piece in pieces(template):
        if not piece.name:
            quote = _quote_after(piece.text, quote)
            line += piece.text
            continue
        text = text_of(values[piece.text])
        if quote:
            # leave the template's quotes for single ones, where nothing is special, and come back
            text = text.replace("'", "'\"'\"'")
            text = text if quote == "'" else f"\"'{text}'\""
        line += text
    return line


def _quote_after(text: str, quote: str) -> str:
    """The quote that is open after this text, '' for none."""
    skip = False
    for char in text:
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return quote


def split(line: str) -> tuple[str, ...]:
    """The arguments of a filled command.

    Raises:
        CommandError: it is empty, a quote is open, or it needs a shell.
    """
    line = _joined(line).rstrip("\n")
    # A spec that profrun has kept without its secrets can be read, though not run.
    mistake = _shell_syntax(line.replace(HIDDEN, "_" * len(HIDDEN)))
    if mistake:
        raise CommandError(mistake)
    argv = tuple(shlex.split(line))
    if not argv:
        raise CommandError(Mistake(0, "there is nothing to run", "write a command"))
    first = argv[0]
    if re.fullmatch(r"[A-Za-z_]\w*=.*", first, re.DOTALL):
        name, _, value = first.partition("=")
        raise CommandError(
            Mistake(
                0,
                f"'{first[:60]}' is an assignment, and no shell reads it",
                f"write env: {{{name}: '{value[:40]}'}} or use bash -c '...'",
            )
        )
    if first in _BUILTINS:
        fix = "set workdir:, or " + BASH if first == "cd" else BASH
        raise CommandError(Mistake(0, f"'{first}' is a word of the shell, not a program", fix))
    return argv


def _joined(line: str) -> str:
    """Lines that end in a backslash outside quotes, joined; every character keeps its place."""
    if "\\\n" not in line:
        return line
    parts = line.split("\\\n")
    joined = parts[0]
    for part in parts[1:]:
        joined += ("\\\n" if _quote_after(joined, "") else "  ") + part
    return joined


def _shell_syntax(line: str) -> Mistake | None:
    """The first thing in the line that only a shell can do, or a quote left open."""
    quote, opened, position, word_start = "", 0, 0, True
    given_to_shell = _runs_a_shell(line)
    while position < len(line):
        char = line[position]
        if char == "\\" and quote != "'":
            if position + 1 == len(line):
                return Mistake(position, "a backslash ends the command", "leave it out")
            if quote and line[position + 1] in "$`":
                return Mistake(position, "a backslash stays as it is here", "use single quotes, without it")
            position, word_start = position + 2, False
            continue
        if quote:
            if char == quote:
                quote = ""
            elif quote == '"' and not given_to_shell and _expands(line, position):
                return Mistake(position, "nothing expands '$' here", "write the value, or " + BASH)
        elif char in "'\"":
            quote, opened = char, position
        else:
            mistake = _bare(line, position, word_start)
            if mistake:
                return mistake
        word_start = not quote and char.isspace()
        position += 1
    return Mistake(opened, f"the quote {quote} is not closed", f"add {quote}") if quote else None


def _expands(line: str, position: int) -> bool:
    following = line[position + 1 : position + 2]
    return line[position] == "`" or (
        line[position] == "$" and (following.isalnum() or following in ("_", "{", "("))
    )


def _bare(line: str, position: int, word_start: bool) -> Mistake | None:
    """What an unquoted character would have meant to a shell."""
    char = line[position]
    if char in _OPERATORS:
        return Mistake(
            position, f"{_OPERATORS[char]} needs a shell, and none runs the command", "quote it, or " + BASH
        )
    if _expands(line, position):
        return Mistake(position, "nothing expands '$' here", "write the value, or " + BASH)
    if char == "*":
        return Mistake(position, "nothing expands '*' here", "quote it to pass it on, or " + BASH)
    if word_start and char == "~" and line[position + 1 : position + 2] in ("/", "", " "):
        return Mistake(position, "nothing expands '~' here", "write the whole path, or " + BASH)
    if word_start and char == "#":
        return Mistake(position, "'#' starts no comment here", "quote it, or delete the comment")
    return None


def _runs_a_shell(line: str) -> bool:
    """``bash -c "..."``: what stands in double quotes is for that shell to expand."""
    words = line.split(None, 2)
    return len(words) > 2 and is_shell(words[0]) and bool(re.fullmatch(r"-[a-z]*c", words[1]))
