"""Kernel names as text: one spelling for what nsys, ncu, kineto and rocprof write differently."""

from __future__ import annotations

import re

from profrun.analysis.kernel_names.inductor import KINDS

_CASTS = re.compile(
    r"\((?:unsigned )?(?:int|long long|long|short|char|bool|signed char)\)(?=-?\d|true\b|false\b)"
)
_BOOL = re.compile(r"\(bool\)([01])")
_SUFFIX = re.compile(r"(?:\s*\[clone [^\]]*\]|\s*\(\.kd\)|\.kd|\s*\[[0-9a-f]{6,}\])+$")
_UNNAMED = re.compile(r"<unnamed>|`anonymous namespace'|\{anonymous\}")
_LAMBDA = re.compile(r"\[lambda(\([^\[\]]*\)) \(instance (\d+)\)\]")
_HEX = re.compile(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]+")  # an address; no tile such as 320x128
_POINTER = re.compile(r"\s+([*&])")
_COMMA = re.compile(r",\s+")
_CLOSERS = re.compile(r">\s+(?=>)")
_SIGNED_LITERAL = re.compile(r"\b(\d+)(?:ul|u|l|ll|ull|UL|U|L)\b")
_INDEX = re.compile(r"_\d+$")
_INDUCTOR = re.compile(rf"^triton_(?:{KINDS})_")
_OPERATOR = re.compile(r"\boperator\s+(?=\(\))")
_VOID = re.compile(r"(?<=[<, (])void (?=[\w:]|\(anonymous)")
_WEST = re.compile(r"(?<=[<, (])const (?=[A-Za-z_:])")
_SCOPE = re.compile(r"\)(?: const)?::")
_HASH = re.compile(r"(?<=[_-])[0-9a-f]{16,}(?=$|[_-])|(?<=_)c[a-z0-9]{51}\b")


def _outside(name: str, opener: str) -> int:
    """Place of the first ``opener`` outside every bracket, or -1; '(anonymous namespace)' is no bracket."""
    depth = 0
    at = 0
    anonymous = "(anonymous namespace)"
    while at < len(name):
        char = name[at]
        if name.startswith(anonymous, at):
            at += len(anonymous)
            continue
        if name.startswith("operator", at) and name[at + 8 : at + 10] in ("()", "<<", ">>", "->"):
            at += 10
            continue
        if char == opener and depth == 0 and at > 0:
            return at
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth = max(0, depth - 1)
        at += 1
    return -1


def _east_const(text: str) -> str:
    """'const T&' as 'T const&': nsys and ncu write the first, torch and rocprof the second."""
    at = 0
    while hit := _WEST.search(text, at):
        end, depth = hit.end(), 0
        while end < len(text) and not (depth == 0 and text[end] in "*&,>)"):
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(text[end], 0)
            end += 1
        text = f"{text[: hit.start()]}{text[hit.end() : end].rstrip()} const{text[end:]}"
        at = hit.start()
    return text


def _without_scope_parameters(text: str) -> str:
    """'f<T>(int, T const&)::{lambda(int)#1}' without the list of ``f``, whose types nsys writes as T1, T2.

    The template arguments of ``f`` and the lambda's own parameters and number stay, so only overloads of one
    function with equal template arguments become alike.
    """
    at = 0
    while hit := _SCOPE.search(text, at):
        start, depth = hit.start(), 0
        while start >= 0:
            depth += {")": 1, "(": -1}.get(text[start], 0)
            if depth == 0:
                break
            start -= 1
        if start <= 0 or text[start : hit.start() + 1] == "(anonymous namespace)":
            at = hit.start() + 1
            continue
        if text[:start].endswith("operator"):  # the () of the operator's own name
            at = hit.start() + 1
            continue
        text = f"{text[:start]}::{text[hit.end() :]}"
        at = start
    return text


def normalise(name: str) -> str:
    """The name without what differs between tools or runs; equal text means the same kernel.

    Dropped: the parameter list, the return type, casts in template arguments ((int)128), integer suffixes
    (4096ul), addresses, hashes, ``.kd`` and ``[clone ...]``, and the running number that Inductor puts at the
    end; return types and parameter lists of functions inside template arguments too. ``const T &`` is
    ``T const&``. Idempotent.
    """
    text = _SUFFIX.sub("", name.strip())
    text = _BOOL.sub(lambda hit: "true" if hit[1] == "1" else "false", text)
    text = _CASTS.sub("", text)
    text = _UNNAMED.sub("(anonymous namespace)", text)
    text = _OPERATOR.sub("operator", _LAMBDA.sub(r"{lambda\1#\2}", text))
    if not text.startswith("_Z"):
        cut = _outside(text, "(")
        if cut > 0:
            text = text[:cut]
        space = _outside(text, " ")
        while space > 0:  # a return type such as 'void' or 'std::enable_if<...>::type'
            text = text[space + 1 :]
            space = _outside(text, " ")
    text = _SIGNED_LITERAL.sub(r"\1", _HEX.sub("0x", text))
    text = _CLOSERS.sub(">", _COMMA.sub(", ", _POINTER.sub(r"\1", text)))
    if "<" in text:
        text = _without_scope_parameters(_east_const(_VOID.sub("", text)))
    text = _HASH.sub("#", text)
    if _INDUCTOR.match(text):
        text = _INDEX.sub("", text)
    text = text.strip()
    if text == name:
        return text
    return normalise(text) if text else name.strip()


def short(name: str) -> str:
    """The last name component without template arguments: what a person calls the kernel.

    For mangled names the last identifier of the nested name.
    """
    text = normalise(name)
    if text.startswith("_Z"):
        return _mangled(text)
    cut = _outside(text, "<")
    base = text[:cut] if cut > 0 else text
    inner = re.search(r"[Kk]ernel2?<(cutlass_[A-Za-z0-9_]+|cutlass3x_[A-Za-z0-9_]+)", text)
    if inner and base.endswith(("Kernel", "Kernel2", "device_kernel")):
        return inner[1]
    return base.replace("(anonymous namespace)", "").rsplit("::", 1)[-1].strip() or text


def _mangled(text: str) -> str:
    """Last identifier of an Itanium nested name: digits say how long each identifier is."""
    at = 2
    while at < len(text) and text[at] in "NLKrVRO":
        at += 1
    last = ""
    while at < len(text) and text[at].isdigit():
        end = at
        while end < len(text) and text[end].isdigit():
            end += 1
        size = int(text[at:end])
        found = text[end : end + size]
        if len(found) < size:
            break
        if not found.startswith("_GLOBAL__N"):
            last = found
        at = end + size
    return last or text
