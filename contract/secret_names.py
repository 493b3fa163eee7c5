"""Which names say that their value is a secret: of variables, of options, of keys and of variants' values.

A name is split into words at ``_``, ``-``, ``.``, spaces and capital letters. ``HF_TOKEN``, ``apiKey`` and
``--db-password`` are secret; ``max_tokens``, ``tokenizer``, ``pad_token``, ``key_dim`` and ``sort_key`` are
not, because a profile without them says less. Standard library, Python 3.9.
"""

from __future__ import annotations

import re

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STRONG = frozenset(
    {
        *("password", "passwords", "passwd", "passphrase", "passwort", "pwd", "pw", "passcode"),
        *("secret", "credential", "credentials", "creds", "cookie", "cookies"),
        *(
            "apikey",
            "apikeys",
            "apitoken",
            "authtoken",
            "accesstoken",
            "accesskey",
            "secretkey",
            "privatekey",
        ),
        *("sshpass", "pgpassword", "pgpass", "pat", "bearer", "jwt", "auth", "authorization", "dsn"),
        *("userpass", "userpw", "dbpass"),
    }
)
"""A name with one of these words is secret, wherever the word stands."""
_LAST = frozenset({"pass", "token", "key", "keys", "session", "sessionid", "signature", "sas"})
"""A name that ends in one of these words is secret, unless the word before it is in ``_PLAIN``."""
_PLAIN = frozenset(
    {
        *("pad", "eos", "bos", "unk", "mask", "cls", "sep", "special", "image", "audio", "video", "prompt"),
        *("per", "max", "min", "num", "n", "next", "stop", "start", "end", "first", "last", "new", "draft"),
        *("sort", "primary", "foreign", "cache", "group", "partition", "index", "public", "dict", "hot"),
        *("hash", "query", "head", "kv", "value", "map", "json", "batch", "time", "host", "row", "column"),
        *("desktop", "x11", "xdg", "gdm", "by", "of", "label", "metric", "feature", "train", "profiler"),
        *(
            "drop",
            "seq",
            "forward",
            "backward",
            "compiler",
            "context",
            "vocab",
            "log",
            "xsession",
            "byobu",
            "tmux",
        ),
    }
)
_OWNED = frozenset({"api", "access", "auth", "refresh", "secret", "private", "id", "hf", "bot", "bearer"})
"""Before ``tokens``: then the plural is of secrets, too."""
_KINDS = frozenset(
    {"dim", "dims", "size", "len", "length", "file", "path", "dir", "type", "name", "names", "count", "ref"}
)
"""A name that ends in one of these says something of a secret, and not the secret."""
_HARMLESS = frozenset(
    {"PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "XAUTHORITY", "SSH_AUTH_SOCK", "SESSION_MANAGER"}
)


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return [word.lower() for word in _SPLIT.findall(name)]


def secret_name(name: str) -> bool:
    """Whether the value of this name is a secret, going by the name."""
    if name.upper() in _HARMLESS:
        return False
    words = words_of(name)
    if not words or (len(words) > 1 and words[-1] in _KINDS):
        return False
    if any(word in _STRONG for word in words) or words[-3:] == ["access", "key", "id"]:
        return True
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "tokens":
        return before in _OWNED
    return words[-1] in _LAST and before not in _PLAIN


def sure_name(name: str) -> bool:
    """Whether a name says it beyond doubt: then a number is a secret, too (``PIN_PASSWORD=1234``)."""
    return secret_name(name) and any(word in _STRONG for word in words_of(name))
