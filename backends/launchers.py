"""Commands that start a process for each rank themselves, such as torchrun: each node gets one of them. Pure.

What such a command starts is found behind what may stand before it (``numactl``, ``env``, ``uv run``) and in
the words of a shell (``bash -c 'torchrun ...'``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

LAUNCHERS = frozenset({"torchrun", "deepspeed"})
"""Programs that start ranks, whatever their options are."""
MODULES = frozenset(
    {
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.launch",
        "accelerate.commands.accelerate_cli",
        "deepspeed",
        "deepspeed.launcher.runner",
    }
)
"""The same as ``python -m MODULE``."""
_BEFORE = frozenset(
    [
        "numactl",
        "taskset",
        "env",
        "nice",
        "ionice",
        "chrt",
        "stdbuf",
        "time",
        "timeout",
        "nohup",
        "setsid",
        "exec",
        "command",
        "uv",
        "poetry",
        "pdm",
        "hatch",
        "conda",
        "mamba",
        "micromamba",
        "pixi",
    ]
)
"""Programs whose last words are a command."""
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_ENDS = frozenset({"&&", "||", ";", "|", "&", "(", ")", "{", "}", "then", "do", "else", "if", "while", "!"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_DEPTH = 4


def launches(argv: Sequence[str], depth: int = _DEPTH) -> bool:
    """Whether a command starts its ranks itself.

    Args:
        argv: the command as it is executed.
        depth: how many shells inside of shells are read.
    """
    words = list(argv)
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words:
        return False
    name, rest = _name(words[0]), words[1:]
    if name in LAUNCHERS:
        return True
    if name == "accelerate":
        return rest[:1] == ["launch"]
    if _PYTHON.fullmatch(name):
        return _module(rest) in MODULES
    if name in _SHELLS:
        return depth > 0 and any(launches(command, depth - 1) for command in _commands(rest))
    return name in _BEFORE and launches(_behind(rest), depth)


def _name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _module(words: Sequence[str]) -> str | None:
    """The module of ``python -m MODULE``; None where Python runs a script."""
    for number, word in enumerate(words):
        if word == "-m":
            return words[number + 1] if number + 1 < len(words) else None
        if word in ("-X", "-W"):
            continue
        if not word.startswith("-") and (number == 0 or words[number - 1] not in ("-X", "-W")):
            return None
    return None


def _behind(words: Sequence[str]) -> Sequence[str]:
    """The command behind a program's own options: it begins with a word that is known here."""
    for number, word in enumerate(words):
        name = _name(word)
        known = name in LAUNCHERS | _SHELLS | _BEFORE or name == "accelerate" or _PYTHON.fullmatch(name)
        if known:
            return words[number:]
        if "/" in word and not word.startswith("-"):
            return ()  # a program of the user
    return ()


def _commands(words: Sequence[str]) -> Iterator[list[str]]:
    """The simple commands of ``bash -c TEXT``; none of a script in a file."""
    text = next(
        (
            words[number + 1]
            for number, word in enumerate(words[:-1])
            if re.fullmatch(r"-[a-z]*c", word) and all(one.startswith("-") for one in words[:number])
        ),
        None,
    )
    if text is None:
        return
    reader = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    reader.whitespace_split = True
    reader.commenters = ""
    command: list[str] = []
    try:
        for word in reader:
            if word in _ENDS or set(word) <= set(";&|()"):
                yield command
                command = []
            else:
                command.append(word)
    except ValueError:  # a quotation that does not end: the shell will say so
        return
    yield command
