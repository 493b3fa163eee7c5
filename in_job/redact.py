"""Secrets stay out of what we write: environment variables, URLs and arguments that carry them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HIDDEN = "<redacted>"
_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|PASSWD|CREDENTIAL|COOKIE|(^|_)(AUTH|PASS|PWD|PAT)(_|$)", re.I
)
_HARMLESS = frozenset({"PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "XAUTHORITY", "SSH_AUTH_SOCK"})
_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s:@]*(?::[^/\s@]*)?@", re.I)
_VALUE = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|hf_\w{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}"
    r"|sk-[\w-]{20,}|glpat-[\w-]{15,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_OPTION = re.compile(r"--?[\w.-]*(?:key|token|secret|password|passwd|credential)s?$", re.I)


def secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret, going by its name."""
    return name.upper() not in _HARMLESS and _NAME.search(name) is not None


def text(value: str) -> str:
    """Without credentials in URLs and without strings that have the form of a known kind of token."""
    return _VALUE.sub(HIDDEN, _URL.sub(rf"\1{HIDDEN}@", value))


def environment(environ: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """All variables, sorted; the values of secret ones (by name, or listed in ``secrets``) replaced."""
    named = set(secrets)
    return {
        name: HIDDEN if name in named or secret_name(name) else text(value)
        for name, value in sorted(environ.items())
    }


def arguments(argv: Sequence[str]) -> list[str]:
    """A command line without the values of options such as ``--api-key VALUE`` or ``TOKEN=VALUE``."""
    safe: list[str] = []
    hide = False
    for argument in argv:
        name, equals, _ = argument.partition("=")
        if hide:
            safe.append(HIDDEN)
        elif equals and (_OPTION.match(name) or (re.fullmatch(r"\w+", name) and secret_name(name))):
            safe.append(f"{name}={HIDDEN}")
        else:
            safe.append(text(argument))
        hide = not hide and not equals and _OPTION.match(argument) is not None
    return safe
