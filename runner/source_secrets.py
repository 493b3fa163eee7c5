"""Python source without its secrets, line by line: ``public_lines``.

Known values and secrets by form are hidden wherever they stand, as ``contract.redact`` does it in any text.
What a name tells (``password = "X"``) is hidden where it is written down: in a string, a number or a comment.
``key = self.key(x)`` tells no secret, and source in which it was hidden could not be read.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import accumulate
from tokenize import TokenInfo

from profrun.contract.redact import HIDDEN, Redactor, named_spans
from profrun.contract.secret_names import secret_name, sure_name

_STARTS, _MIDDLES, _ENDS = (
    frozenset({getattr(tokenize, f"{letter}STRING_{part}", -1) for letter in "FT"} - {-1})
    for part in ("START", "MIDDLE", "END")
)
"""Tokens of f-strings, from Python 3.12 on, and of t-strings; before that an f-string is one string."""
_WRITTEN = frozenset({tokenize.STRING, tokenize.NUMBER, tokenize.COMMENT, *_MIDDLES})
_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})
_QUOTES = re.compile(r"(?is)\A[a-z]{0,2}('''|\"\"\"|'|\")(?P<inside>.*)\1\Z")
Span = tuple[int, int]


def public_lines(text: str, redactor: Redactor) -> list[str]:
    """The lines of a Python file without secrets; as many as it has.

    Args:
        text: of the file. Where it is no Python that this version understands, every value whose name says
            secret is hidden.
        redactor: knows the values that are secret.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    spans = [*redactor.sure_spans(text)]
    named = list(named_spans(text))
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        spans += named
    else:
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        written = [_span(one, starts) for one in tokens if one.type in _WRITTEN]
        spans += [one for one in named if any(start <= one[0] < end for start, end in written)]
        spans += _assigned([one for one in tokens if one.type not in _LAYOUT], starts)
    return _hidden(text, spans).split("\n")


def _span(token: TokenInfo, starts: Sequence[int]) -> Span:
    """(begin, end) of a token in the text."""
    return starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]


def _assigned(tokens: Sequence[TokenInfo], starts: Sequence[int]) -> Iterator[Span]:
    """Strings and numbers that are given to a name that says secret: ``K = "v"``, ``environ["K"] = "v"``,
    ``{"K": "v"}``, ``setdefault("K", "v")``; also the further pieces of such a string."""
    hides = False
    outer: list[bool] = []  # of each f-string that is open, whether its pieces are hidden
    for at, token in enumerate(tokens):
        if token.type in _MIDDLES:
            if outer and outer[-1]:
                yield _span(token, starts)
        elif token.type in _ENDS:
            hides = outer.pop() if outer else False
        elif token.type == tokenize.NUMBER:
            if sure_name(_named(tokens, at)):
                yield _span(token, starts)
        elif token.type == tokenize.STRING or token.type in _STARTS:
            if not at or tokens[at - 1].type not in {tokenize.STRING, *_ENDS}:  # else a piece of the last one
                hides = secret_name(_named(tokens, at))
            if token.type in _STARTS:
                outer.append(hides)
            elif hides and (inside := _QUOTES.match(token.string)) and inside["inside"].strip():
                start, _ = _span(token, starts)
                yield start + inside.start("inside"), start + inside.end("inside")


def _named(tokens: Sequence[TokenInfo], at: int) -> str:
    """The name that a string or number is given to; empty for none."""
    before = at - 1
    while before >= 0 and tokens[before].string in ("(", "["):
        before -= 1
    if before < 1 or tokens[before].string not in ("=", ":", ",", ":="):
        return ""
    sign, before = tokens[before].string, before - 1
    if tokens[before].string == "]":  # environ["K"] = "v"
        before -= 1
    if sign == "=" and before > 1 and tokens[before - 1].string == ":":  # K: str = "v"
        before -= 2
    found = tokens[before]
    if found.type == tokenize.STRING:
        inside = _QUOTES.match(found.string)
        return inside["inside"] if inside else ""
    return found.string if found.type == tokenize.NAME and sign != "," else ""


def _hidden(text: str, spans: Sequence[Span]) -> str:
    """The text with these spans hidden; it keeps its lines."""
    parts, done = [], 0
    for start, end in sorted(spans):
        if start >= done:
            parts += [text[done:start], HIDDEN]
            done = start
        if end > done:
            parts.append("\n" * text.count("\n", done, end))
            done = end
    return "".join([*parts, text[done:]])
