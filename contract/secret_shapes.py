"""The forms by which secrets are known wherever they stand: ``SHAPES``, a table.

Every pattern is one that Python's ``re`` and RE2 (DuckDB) understand alike: no look-around and no
back-reference, so that the same table searches texts, files and columns of traces. In each, the group
``secret`` is what must not be shown. Standard library, Python 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_V = r"[^\s;,&\"'<>\\{}]"
"""One character of a value that stands without quotes; not of ``<redacted>`` nor of a ``{placeholder}``."""


@dataclass(frozen=True)
class Shape:
    """A kind of secret.

    Attributes:
        name: what it is, for people.
        pattern: with a group ``secret``.
    """

    name: str
    pattern: str


def _token(name: str, pattern: str) -> Shape:
    return Shape(name, rf"\b(?P<secret>{pattern})")


SHAPES: tuple[Shape, ...] = (
    Shape(
        "private key (PEM)",
        r"(?P<secret>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]|-[^-])*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?)",
    ),
    Shape("password in a URL", r"(?i)\b[a-z][a-z0-9+.-]*://(?P<secret>[^\s/@:\"'<>]*:[^\s/@\"'<>]+)@"),
    Shape("name in a URL", r"(?i)\bhttps?://(?P<secret>[^\s/@:\"'<>]+)@"),
    Shape(
        "parameter of a URL",
        r"(?i)[?&](?:api_?key|access_token|auth_token|token|sig|signature|password|secret|key)="
        r"(?P<secret>[^\s&\"'<>#\\{}]{8,})",
    ),
    Shape(
        "password of a connection string",
        rf"(?i)\b(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature)\s?=\s?"
        rf"(?P<secret>{_V}{{3,}})",
    ),
    Shape(
        "Authorization header",
        r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest|apikey)\s+(?P<secret>[\w.~+/=-]{4,})",
    ),
    Shape("bearer token", r"\b[Bb]earer\s+(?P<secret>[\w.~+/-]{16,}=*)"),
    Shape("basic credentials", r"\bBasic\s+(?P<secret>[A-Za-z0-9+/]{16,}={0,2})"),
    Shape(
        "private key in JSON",
        r"(?i)\\?\"(?:private_key|private_key_id|client_secret|refresh_token|access_token)\\?\"\s*:\s*"
        r"\\?\"(?P<secret>[^\"\\<]+)",
    ),
    _token("AWS access key id", r"(?:AKIA|ASIA|AIDA|AROA)[0-9A-Z]{16}"),
    _token("GitHub token", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _token("GitHub fine-grained token", r"github_pat_\w{20,}"),
    _token("GitLab token", r"gl(?:pat|ptt|dt|rt|cbt|agent|soat)-[\w-]{15,}"),
    _token("Hugging Face token", r"(?:hf|api_org)_[A-Za-z0-9]{16,}"),
    _token("Anthropic key", r"sk-ant-[\w-]{16,}"),
    _token("OpenAI key", r"sk-(?:proj-|svcacct-|admin-)?[\w-]{20,}"),
    _token("Slack token", r"xox[abeprs]-[\w-]{10,}"),
    _token("Slack app token", r"xapp-[\w-]{20,}"),
    Shape("Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/]{20,})"),
    _token("Google API key", r"AIza[\w-]{30,}"),
    _token("Google OAuth token", r"ya29\.[\w-]{20,}"),
    _token("Google OAuth secret", r"GOCSPX-[\w-]{20,}"),
    _token("JSON Web Token", r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    _token("npm token", r"npm_[A-Za-z0-9]{20,}"),
    _token("PyPI token", r"pypi-[\w-]{20,}"),
    _token("Stripe key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _token("SendGrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _token("Twilio key", r"SK[0-9a-f]{32}"),
    _token("Docker Hub token", r"dckr_(?:pat|oat)_[\w-]{16,}"),
    _token("Databricks token", r"dapi[0-9a-f]{32}"),
    _token("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{40,}"),
    _token("HashiCorp Vault token", r"hv[sbr]\.[\w-]{24,}"),
    _token("Linear key", r"lin_api_[A-Za-z0-9]{30,}"),
    _token("Groq key", r"gsk_[A-Za-z0-9]{30,}"),
    _token("Replicate token", r"r8_[A-Za-z0-9]{30,}"),
    _token("Weights & Biases service key", r"wandb_v\d_[\w-]{20,}"),
    _token("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
)
"""The kinds that are known by their form, the more specific before the more general."""


@dataclass(frozen=True)
class Found:
    """A secret in a text: its kind, and where it stands."""

    shape: str
    start: int
    end: int


@cache
def any_shape() -> str:
    """A pattern that matches wherever some shape does, without regard to case: the quick question before the
    table is gone through. It has no groups."""
    parts = (shape.pattern.replace("(?i)", "").replace("?P<secret>", "?:") for shape in SHAPES)
    return "|".join(f"(?:{part})" for part in parts)


@cache
def _quick() -> re.Pattern[str]:
    return re.compile(any_shape(), re.IGNORECASE)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Compiled when first asked for: every Python process of a job could load this module."""
    return tuple((shape.name, re.compile(shape.pattern)) for shape in SHAPES)


def find_shapes(text: str) -> Iterator[Found]:
    """Every secret in a text that is known by its form."""
    if _quick().search(text) is None:
        return
    for name, pattern in _patterns():
        for match in pattern.finditer(text):
            yield Found(name, *match.span("secret"))
