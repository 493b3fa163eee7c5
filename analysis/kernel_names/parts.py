"""The parts of a kernel name: whose it is, what it is called, and what its template arguments hold.

``void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(...)`` has the scopes ``flashinfer``, ``norm``, the
own name ``RMSNormKernel`` and the arguments ``8u, __nv_bfloat16``. What a kernel does is told by its own
name; a word in its arguments may be a type, a policy or a cache format, and must not decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|\(anonymous namespace\)|_GLOBAL__N_?\d*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_LENGTH = re.compile(r"L?(\d+)")
_NESTED = re.compile(r"(?:N(?:S\d*_)?|S\d*_|(?<![0-9A-Za-z_])|(?<=[IEJ]))(?=\d)")
_OPENERS, _CLOSERS = "<([{", ">)]}"


@dataclass(frozen=True)
class Parts:
    """A normalised kernel name in parts.

    Attributes:
        scopes: the namespaces and classes around the own name, outermost first, without the unnamed ones.
        own: the function's own name, without template arguments.
        arguments: the text of its template arguments; of a mangled name everything behind the own name.
    """

    scopes: tuple[str, ...]
    own: str
    arguments: str

    @cached_property
    def words(self) -> str:
        """The own name as words in lower case, ``_rms_norm_kernel_``: a pattern can ask for whole words."""
        return words(self.own)

    @cached_property
    def scope_words(self) -> str:
        """The scopes as words, ``_deep_ep_::_internode_ll_``."""
        return "::".join(words(scope) for scope in self.scopes)

    @cached_property
    def inner(self) -> tuple[Parts, ...]:
        """The parts of the template arguments, in order, as far as they are names."""
        if self.arguments.startswith("\0"):
            return tuple(Parts(tuple(found[:-1]), found[-1], rest) for found, rest in _nested(self.arguments))
        return tuple(split(argument) for argument in _listed(self.arguments) if _IDENTIFIER.match(argument))


def words(name: str) -> str:
    """``RMSNormKernel`` and ``rms_norm_kernel`` as ``_rms_norm_kernel_``."""
    return f"_{_WORD_STARTS.sub('_', name).lower().strip('_')}_"


def split(text: str) -> Parts:
    """The parts of a normalised name (see ``text.normalise``) or of a template argument. Never raises."""
    text = text.strip()
    if text.startswith("_Z"):
        mangled = _mangled(text)
        if mangled is not None:
            return mangled
    text = _ANONYMOUS.sub("", text)
    scopes: list[str] = []
    at = start = 0
    while at < len(text):
        if text.startswith("::", at):
            scopes.append(text[start:at])
            at = start = at + 2
        elif text[at] == "<":
            end = _closing(text, at)
            if not text.startswith("::", end):
                return Parts(tuple(filter(None, scopes)), text[start:at], text[at + 1 : end - 1])
            scopes.append(text[start:at])
            at = start = end + 2
        else:
            at += 1
    return Parts(tuple(filter(None, scopes)), text[start:], "")


def _closing(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at ``at``; the end of the text when none does."""
    depth = 0
    for place in range(at, len(text)):
        if text[place] in _OPENERS:
            depth += 1
        elif text[place] in _CLOSERS and text[place - 1 : place + 1] != "->":
            depth -= 1
            if depth <= 0:
                return place + 1
    return len(text) + 1


def _listed(text: str) -> list[str]:
    """The arguments of a template argument list."""
    found, start, depth = [], 0, 0
    for place, char in enumerate(text):
        if char in _OPENERS:
            depth += 1
        elif char in _CLOSERS:
            depth = max(0, depth - 1)
        elif char == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    found.append(text[start:].strip())
    return [argument for argument in found if argument]


def _mangled(text: str) -> Parts | None:
    """The parts of a name in the Itanium C++ ABI's spelling, where each identifier follows its length."""
    head, behind = _identifiers(text, 2)
    if not head:
        return None
    return Parts(tuple(head[:-1]), head[-1], "\0" + text[behind:])


def _identifiers(text: str, at: int) -> tuple[list[str], int]:
    """The identifiers that follow each other from ``at`` on, and the place behind the last one."""
    while at < len(text) and text[at] in "NLKrVRO":
        at += 1
    found = []
    while hit := _LENGTH.match(text, at):
        size = int(hit[1][:6])
        name = text[hit.end() : hit.end() + size]
        if not size or len(name) < size:
            break
        if not name.startswith("_GLOBAL__N"):
            found.append(name)
        at = hit.end() + size
    return found, at


def _nested(text: str) -> list[tuple[list[str], str]]:
    """Every name in the mangled arguments, outermost first, each with the text behind it."""
    found = []
    at = 1
    while at < len(text):
        hit = _NESTED.search(text, at)
        if hit is None:
            break
        names, behind = _identifiers(text, hit.end())
        if names and _IDENTIFIER.fullmatch(names[-1]):
            found.append((names, "\0" + text[behind:]))
            at = behind
        else:
            at = hit.end() + 1
    return found
