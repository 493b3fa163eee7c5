"""The command line of ``profrun wrap``, as every image can read it: the standard library only."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..contract import profilers
from ..contract.codec import DocumentError, from_json, to_json
from ..contract.command import Command, Ranges
from ..contract.options import Duration, Many, Whole
from ..contract.points import NAME, scalar_of, value_word
from ..contract.profilers import NEUTRAL, TIMELINE, UnknownProfilerError
from ..contract.sampling import HIGHEST_RATE
from ..contract.schedule import Schedule
from .option_text import declared, read_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

LAUNCH_ENV = "PROFRUN_LAUNCH"
"""The variable that stands for ``--launch``."""
DEFAULT_COLLECTOR = "torch"

_SINGLE: dict[str, tuple[str, object]] = {
    "resources.timeout": ("timeout_s", Duration(1.0)),
    "resources.grace": ("grace_s", Duration(0.0)),
    "ranks": ("recorded", Many(Whole(0, 1_000_000), 1, unique=True, example="[0, 8]")),
}
"""Keys of a job that a trial has as one value -> field of ``Command``, and kind."""
_BLOCKS: dict[str, type] = {"schedule": Schedule, "ranges": Ranges}
"""Keys of a job that a trial has as a block -> its dataclass."""


class WrapError(Exception):
    """The command line cannot be used; the message says why and what to write."""


@dataclass(frozen=True)
class WrapArgs:
    """What was asked for.

    Attributes:
        out: the folder that all ranks share.
        command: the trial without its id, which is known once the ranks have agreed.
        rank, world_size: as given; None: the launcher's variables say it.
        launch: what tells this launch from others; None: the launcher's variables say it.
        dry_run: print what would be done.
    """

    out: str
    command: Command
    rank: int | None
    world_size: int | None
    launch: str | None
    dry_run: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrapError(message)


def parser(program: str) -> argparse.ArgumentParser:
    """The options; the command follows after ``--``.

    Args:
        program: how the user calls it.
    """
    made = _Parser(
        prog=program,
        usage=f"{program} --out DIR [OPTIONS] -- COMMAND",
        description="Record a command in every rank that another launcher starts. `profrun normalize DIR` "
        "makes a run of what the ranks have left in DIR.",
    )
    add = made.add_argument
    add("--out", "-o", required=True, metavar="DIR", help="folder of the run; all ranks see it")
    add("--collector", "-c", default=DEFAULT_COLLECTOR, metavar="NAME", help="profiler [default: torch]")
    add("--steps", metavar="N", help="steps to record [default: 3, after 2 that are not]")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a value as of a job, e.g. torch.x=y")
    add(
        "--variant",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="name of this variant; repeatable",
    )
    add("--blocking", action="store_true", help="launches wait for their kernel")
    add("--name", metavar="NAME", help="name of the job [default: the name of DIR]")
    add("--scratch", metavar="DIR", help="folder on a disk of the node in which profilers record")
    add("--secret", action="append", default=[], metavar="VARIABLE", help="never write its value; repeatable")
    add("--rank", metavar="K", help="this rank [default: as the launcher's variables say]")
    add("--world-size", metavar="N", help="how many ranks are started like this [default: likewise]")
    add("--ranks", metavar="N", help="processes in total, where each command starts several")
    add("--launch", metavar="ID", help=f"same for all ranks of this start [default: ${LAUNCH_ENV}]")
    add("--dry-run", action="store_true", help="print what would be done; start nothing")
    return made


def read_args(program: str, argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> WrapArgs:
    """What the command line asks for.

    Args:
        argv: without the program's name.
        cwd: where the command runs.

    Raises:
        WrapError: it cannot be used.
    """
    words = list(argv)
    split = words.index("--") if "--" in words else len(words)
    given = parser(program).parse_args(words[:split])
    command = words[split + 1 :]
    if not command:
        raise WrapError(f"no command is given: write it at the end, {program} --out DIR -- python train.py")
    values, variant = _variant(given.variant)
    out = os.path.abspath(os.path.join(cwd, given.out))
    name = given.name or _folder_name(out)
    if not re.fullmatch(NAME, name):
        raise WrapError(f"--name {name} cannot be the name of a job: use letters, digits, '.', '_' and '-'")
    profiler = _known(given.collector)
    settings = _settings(given)
    return WrapArgs(
        out=out,
        command=Command(
            trial="",
            run=os.path.basename(out),
            job=name,
            variant=variant,
            values=values,
            collector=given.collector,
            profiler=profiler,
            blocking=given.blocking,
            argv=tuple(command),
            cwd=cwd,
            ranks=_whole("--ranks", given.ranks, 1) or 1,
            scratch=given.scratch,
            secrets=tuple(given.secret),
            **settings,
        ),
        rank=_whole("--rank", given.rank, 0),
        world_size=_whole("--world-size", given.world_size, 1),
        launch=given.launch or environ.get(LAUNCH_ENV) or None,
        dry_run=given.dry_run,
    )


def _folder_name(out: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(out)).strip("-._")[:64] or "wrap"


def _whole(option: str, text: str | None, low: int) -> int | None:
    if text is None:
        return None
    try:
        found = read_value(Whole(low, 1_000_000), text)
    except ValueError as error:
        raise WrapError(f"{option} {text}: {error}") from None
    assert isinstance(found, int)
    return found


def _variant(given: Sequence[str]) -> tuple[dict[str, object], str]:
    """The values and the name of a variant: ``lr=0.1`` is a value, a word alone is a part of the name."""
    values: dict[str, object] = {}
    words = []
    for text in given:
        key, equals, value = text.partition("=")
        if key in values:
            raise WrapError(f"--variant {text}: {key} is given twice")
        if equals:
            values[key] = scalar_of(value)
        words.append(value_word(key, value) if equals else key)
    name = "-".join(words) or "default"
    if not re.fullmatch(NAME, name):
        raise WrapError(f"--variant {' '.join(given)}: '{name}' cannot be the name of a folder")
    return values, name


def _known(collector: str) -> str | None:
    """The profiler that a collector is; None for a vendor-neutral one, which the job settles."""
    try:
        profilers.candidates(collector)
    except UnknownProfilerError as error:
        raise WrapError(str(error)) from None
    return None if collector in NEUTRAL else collector


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """Fields of ``Command`` by ``--steps`` and ``--set``."""
    texts = [f"schedule.active={given.steps}"] if given.steps is not None else []
    blocks: dict[str, dict[str, object]] = {name: {} for name in _BLOCKS}
    may = {one.name: one for one in profilers.candidates(given.collector)}
    options: dict[str, dict[str, object]] = {name: {} for name in may}
    found: dict[str, Any] = {}
    for text in [*texts, *given.set]:
        path, equals, value = text.partition("=")
        if not equals:
            raise WrapError(f"--set {text}: write KEY=VALUE")
        block, _, key = path.partition(".")
        if path in _SINGLE:
            field, kind = _SINGLE[path]
            read = _read(text, kind, value)
            found[field] = tuple(read) if isinstance(read, list) else read
        elif path == "sample":
            found["sample"] = _sample(text, value)
        elif block in blocks and key:
            blocks[block][key] = _of_block(text, block, _BLOCKS[block], key, value)
        elif block in options and key:
            options[block][key] = _of_block(text, block, may[block].options, key, value)
        else:
            raise WrapError(f"--set {text}: {_unknown(block, given.collector, [*blocks, *options])}")
    for name, kind in _BLOCKS.items():
        found[name] = from_json(kind, blocks[name])
    found["schedule"] = found["schedule"].settled()
    _check(may, options)
    found["options"] = (
        options.get(given.collector, {}) if given.collector in may else _neutral(given.collector, options)
    )
    return found


def _neutral(collector: str, options: dict[str, dict[str, object]]) -> dict[str, object]:
    """Options of all that a vendor-neutral collector may become, with the defaults of ``counters``.

    Raises:
        WrapError: an option makes kernels run one at a time, which a timeline does not.
    """
    if collector == TIMELINE:
        for one in profilers.candidates(collector):
            if one.is_serial(options[one.name]):
                what = f"{one.name}.{one.serial_option}"
                raise WrapError(f"--set {what}: it makes kernels run one at a time, and a timeline does not")
        return dict(options)
    return {
        one.name: {**to_json(one.counters_defaults), **options[one.name]}
        for one in profilers.candidates(collector)
    }


def _check(may: Mapping[str, profilers.Profiler], options: Mapping[str, Mapping[str, object]]) -> None:
    for name, one in may.items():
        for first, second in one.alternatives:
            if first in options[name] and second in options[name]:
                raise WrapError(f"--set {name}.{first} and {name}.{second}: give only one of them")
        try:
            from_json(one.options, options[name])
        except DocumentError as error:
            raise WrapError(f"the options of {name} cannot be used: {error}") from None


def _unknown(block: str, collector: str, known: Sequence[str]) -> str:
    if block in profilers.names() and block not in known:
        return f"the collector is {collector}, so an option of {block} has no effect; leave it out"
    keys = [*_SINGLE, "sample", *(f"{name}.KEY" for name in known)]
    return f"a wrapped command has no such key; there are {', '.join(keys)}"


def _of_block(text: str, block: str, kind: type, key: str, value: str) -> object:
    known = declared(kind)
    if key not in known:
        raise WrapError(f"--set {text}: {block} has no key '{key}'; it has {', '.join(known)}")
    if value == "null" and any(item.metadata["null"] for item in fields(kind) if item.name == key):
        return None
    return _read(text, known[key], value)


def _read(text: str, kind: object, value: str) -> object:
    try:
        return read_value(kind, value)
    except ValueError as error:
        raise WrapError(f"--set {text}: {error}") from None


def _sample(text: str, value: str) -> float:
    try:
        rate = 0.0 if value == "off" else float(value)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= HIGHEST_RATE:
        raise WrapError(f"--set {text}: write a number from 0 to {HIGHEST_RATE:g}, or off")
    return rate
