"""How ranks that know nothing of each other agree on one trial in a folder that all of them see.

The first rank that comes makes ``launches/<iii>``, with ``launch.json`` in it, by renaming a whole folder to
that name: of several ranks one succeeds, also on a network filesystem, and the others find the document.
Each rank then claims its place by making the file ``rank<k>`` there, which must not exist yet. A rank whose
place is taken is of another launch: that is a trial of its own, a further repeat of the same point.

A rank joins the newest launch of the same variant, collector and blocking mode that has not ended, that was
started with the same world size, whose place is free, and that has the same launch id. Where the launcher
gives no id, ranks of two launches of one point that run at the same time could be mixed up: ``--launch``
tells them apart.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json, to_json
from ..contract.launch_file import NAME, LaunchFile
from ..contract.paths import LAUNCHES, TRIALS, TrialPaths, is_plain_name
from ..contract.points import trial_id
from ..contract.private import Private
from ..contract.public_command import public_command
from .files import read_json, write_json
from .private_values import redactor
from .wrap_args import WrapError

if TYPE_CHECKING:
    from ..contract.command import Command
    from ..contract.recording import Rank

_LOOK_S = 0.05
OF_ONE_RANK = (
    "trial",
    "run",
    "repeat",
    "argv",
    "cwd",
    "env",
    "findings",
    "attempt",
    "job",
    "ranks",
    "scratch",
)
"""Fields of ``Command`` in which the ranks of a launch may differ: a command may hold its rank's number."""


@dataclass(frozen=True)
class Asked:
    """What a rank brings.

    Attributes:
        command: the trial as this rank was told it, without its id.
        own: which rank it is.
        launch: id of the launch; None: not known.
        launcher: who started it, in words.
    """

    command: Command
    own: Rank
    launch: str | None
    launcher: str | None


@dataclass(frozen=True)
class _Found:
    folder: Path
    document: LaunchFile


@dataclass(frozen=True)
class _Known:
    """The launches in order, and the number of the next one, by one look at the folder.

    A second look could see a launch that the first one did not, and a rank would begin its launch again.
    """

    launches: tuple[_Found, ...]
    number: int


def join(out: Path, asked: Asked) -> tuple[TrialPaths, Command]:
    """Join the trial of this launch, which is made where this is the first rank that comes.

    Returns:
        The trial's folder, with ``command.json`` in it, and the command of this rank.

    Raises:
        WrapError: another rank of this launch was started with other settings.
        OSError: the folder cannot be written.
    """
    (out / LAUNCHES).mkdir(parents=True, exist_ok=True)
    while True:
        known = _launches(out)
        for found in reversed(known.launches):
            if _is_ours(out, found, asked) and _claim(found.folder, asked.own.rank):
                _same_settings(found, asked)
                return _trial(out, found.document, asked)
        if not _begin(out, known, asked):
            time.sleep(_LOOK_S)  # a network filesystem may show the other's folder later


def planned(out: Path, asked: Asked) -> Command:
    """The command that ``join`` would begin if this were the first rank that comes. Nothing is written."""
    return _next(_launches(out), asked)


def _launches(out: Path) -> _Known:
    """The launches that were begun."""
    found = []
    folders = {int(path.name): path for path in (out / LAUNCHES).glob("[0-9]*") if path.name.isdecimal()}
    for _, folder in sorted(folders.items()):
        try:
            document = from_json(LaunchFile, read_json(folder / NAME))
        except DocumentError:  # not ours, or damaged: its number stays taken
            continue
        found.append(_Found(folder, document))
    return _Known(tuple(found), max(folders, default=-1) + 1)


def _is_ours(out: Path, found: _Found, asked: Asked) -> bool:
    """Whether this may be the launch of a rank."""
    document = found.document
    return (
        is_plain_name(document.command.trial)  # nobody else's document leads a rank to another folder
        and _point(document.command) == _point(asked.command)
        and (document.launch, document.world_size) == (asked.launch, asked.own.world_size)
        and not TrialPaths(out / TRIALS / document.command.trial).exit.exists()
    )


def _point(command: Command) -> tuple[str, str, bool]:
    return command.variant, command.collector, command.blocking


def _claim(folder: Path, rank: int) -> bool:
    """Take the place of a rank; False when it is taken."""
    try:
        file = os.open(folder / f"rank{rank}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    with os.fdopen(file, "w") as opened:
        opened.write(f"{socket.gethostname()} {os.getpid()} {time.time_ns()}\n")
    return True


def _begin(out: Path, known: _Known, asked: Asked) -> bool:
    """Begin a launch; False where another rank was faster."""
    command = _next(known, asked)
    shown = _public(command)
    document = LaunchFile(shown, asked.own.world_size, asked.launch, asked.launcher, time.time_ns())
    folder = out / LAUNCHES / f"{known.number:03d}"
    made = out / LAUNCHES / f".{secrets.token_hex(8)}"  # containers may share a host name and a pid
    made.mkdir()
    try:
        write_json(made / NAME, to_json(document))
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not folder.exists():
            raise
        return False
    return True


def _next(known: _Known, asked: Asked) -> Command:
    """The command of a launch that begins after the known ones."""
    same = [one for one in known.launches if _point(one.document.command) == _point(asked.command)]
    command = asked.command
    repeat = len(same) + 1
    name = trial_id(known.number, command.variant, command.collector, command.blocking, repeat)
    return replace(command, trial=name, repeat=repeat)


def _same_settings(found: _Found, asked: Asked) -> None:
    """Refuse a rank that would record something else than the one that came first.

    Raises:
        WrapError: they differ; names the settings.
    """
    first, own = to_json(found.document.command), to_json(_public(asked.command))
    different = [name for name in first if name not in OF_ONE_RANK and first[name] != own[name]]
    if not different:
        return
    (found.folder / f"rank{asked.own.rank}").unlink(missing_ok=True)
    told = "; ".join(f"{_words(name)}: {own[name]} here, {first[name]} there" for name in different)
    raise WrapError(
        f"rank {asked.own.rank} was started with other settings than the rank that came first in "
        f"{found.folder}: {told}. Give all ranks the same options, or each launch another --launch"
    )


def _public(command: Command) -> Command:
    """The command as the files of the launch hold it: each rank has the secrets of its own command line."""
    return public_command(command, redactor(Private(), command.env, command))


def _words(name: str) -> str:
    return re.sub(r"_s$", "", name)


def _trial(out: Path, document: LaunchFile, asked: Asked) -> tuple[TrialPaths, Command]:
    """The trial's folder, made where it is missing, and the command of this rank."""
    agreed = document.command
    paths = TrialPaths(out / TRIALS / agreed.trial)
    paths.raw.mkdir(parents=True, exist_ok=True)
    if not paths.command.exists():
        own = paths.folder / f".command.rank{asked.own.rank}.json"  # another rank may do the same just now
        write_json(own, to_json(agreed))
        own.replace(paths.command)
    return paths, replace(asked.command, trial=agreed.trial, repeat=agreed.repeat)
