"""``profrun wrap``: the wrapper for ranks that another launcher starts.

It finds out which rank it is, agrees with the others on a trial in the folder that all of them see
(``wrap_join``), and runs that trial as every backend does (``trial``).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json, to_json
from ..contract.exit import Exit
from ..contract.paths import BUNDLE, TRIALS, TrialPaths
from ..contract.private import Private
from ..contract.public_command import public_command
from . import launch, process_rank, vendor
from .files import read_json
from .launchers import (
    GIVEN_RANK,
    GIVEN_WORLD,
    INDEX,
    NODES,
    Launcher,
    launch_of,
    node_launcher,
    process_launcher,
)
from .prepare import prepare
from .private_values import redactor
from .trial import Trial
from .wrap_args import WrapArgs, WrapError, read_args
from .wrap_bundle import place_from_file
from .wrap_join import Asked, join, planned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from ..contract.recording import Rank

PROGRAM = "run.py --wrap"
_NPROC = "PET_NPROC_PER_NODE"
"""How many processes torchrun starts per node, where that is a number."""


def main(argv: Sequence[str], program: str = PROGRAM, home: Path | None = None) -> int:
    """Carry out one rank. Returns the process's exit code: that of ``Trial.run``; 64 when the command line
    cannot be used; 73 when the folder cannot be written.

    Args:
        argv: the options, ``--`` and the command.
        program: how the user calls it.
        home: where the in-job part lies: a bundle, or a file that holds one.
    """
    home = Path(__file__).resolve().parents[2] if home is None else home
    try:
        args = read_args(program, argv, os.environ, os.getcwd())
        asked = ask(args, os.environ)
        if args.dry_run:
            print(json.dumps(shown(args, asked), indent=1))
            return 0
        if home.is_file():
            _from_file(home, Path(args.out), argv)
        paths, command = join(Path(args.out), asked)
    except WrapError as error:
        print(f"profrun: {error}", file=sys.stderr)
        return 64
    except OSError as error:
        print(f"profrun: the folder of the run cannot be written: {error}", file=sys.stderr)
        return 73
    if asked.own.rank == 0:
        print(f"profrun: {_where(asked.own)} of trial {command.trial} in {args.out}", file=sys.stderr)
    _tell_hook(args)
    code = Trial(paths.folder, command, home).run()
    _say_why(paths, asked.own)
    return code


def _from_file(file: Path, out: Path, argv: Sequence[str]) -> NoReturn:
    """Unpack the bundle beside the trials and go on from there, as this process."""
    bundle = place_from_file(file, out / BUNDLE)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, str(bundle / "run.py"), "--wrap", *argv])


def ask(args: WrapArgs, environ: Mapping[str, str]) -> Asked:
    """What this rank brings to the others.

    Raises:
        WrapError: it is not clear which rank this is.
    """
    env = dict(environ)
    launcher = process_launcher(env) or node_launcher(env)
    launch.slurm_ranks(env)
    _give(args, env, launcher)
    own = process_rank.from_environ(env)
    if own.rank >= own.world_size:
        raise WrapError(
            f"this is rank {own.rank}, and the launcher does not say how many there are: give --world-size N"
        )
    each = env.get(_NPROC, "")
    several = int(each) if each.isdigit() and launcher in NODES else 1
    ranks = max(args.command.ranks, own.world_size * several)
    name = launcher.name if launcher is not None else None
    return Asked(replace(args.command, ranks=ranks), own, args.launch or launch_of(environ), name)


def _give(args: WrapArgs, env: dict[str, str], launcher: Launcher | None) -> None:
    """Put the rank and the world size that were given, and an Indexed Job's index, into ``env``.

    Raises:
        WrapError: they contradict the launcher, or an index alone says too little.
    """
    rank, world = args.rank, args.world_size
    if launcher is None and rank is None and env.get(INDEX, "").isdigit():
        if world is None:
            raise WrapError(
                f"{INDEX} is {env[INDEX]}, and nothing says how many pods belong together: give "
                "--world-size N (1 where each pod is a trial of its own)"
            )
        rank = int(env[INDEX]) if world > 1 else 0
    if launcher is not None and rank is not None and env[launcher.rank] != str(rank):
        said = f"{launcher.rank}={env[launcher.rank]}"
        raise WrapError(f"--rank {rank} contradicts {said}: leave it out, or unset the variable")
    if launcher is not None and world is not None and env.get(launcher.world, str(world)) != str(world):
        said = f"{launcher.world}={env[launcher.world]}"
        raise WrapError(f"--world-size {world} contradicts {said}: leave it out, or unset the variable")
    if world is not None:
        env[GIVEN_WORLD] = str(world)
    if rank is not None:
        env[GIVEN_RANK] = str(rank)
    elif launcher is None and world is not None and world > 1:
        raise WrapError("no variable of a launcher says which rank this is: give --rank K")


def _tell_hook(args: WrapArgs) -> None:
    """Let the hook and the trial of this process find the rank that was given."""
    env = dict(os.environ)
    _give(args, env, process_launcher(env) or node_launcher(env))
    for name in (GIVEN_RANK, GIVEN_WORLD):
        if name in env:
            os.environ[name] = env[name]


def shown(args: WrapArgs, asked: Asked) -> dict[str, object]:
    """What ``--dry-run`` prints: the trial's document, and the command line that would be started here."""
    command = planned(Path(args.out), asked)
    gpus = vendor.detect()[0] if command.vendor == "auto" else command.vendor
    folder = next(path for path in (Path(args.out), *Path(args.out).parents) if path.is_dir())
    raw = TrialPaths(Path(args.out) / TRIALS / command.trial).rank(asked.own.rank)
    prepared = prepare(command, gpus, folder, raw)
    hide = redactor(Private(), command.env, command)
    return {
        "out": args.out,
        "rank": asked.own.rank,
        "world_size": asked.own.world_size,
        "launcher": asked.launcher,
        "launch": asked.launch,
        "command": to_json(public_command(command, hide)),
        "wrapped": None if prepared.wrapped is None else shlex.join(hide.arguments(prepared.wrapped.argv)),
        "refused": None if prepared.refusal is None else str(prepared.refusal),
    }


def _where(own: Rank) -> str:
    return f"rank {own.rank} of {own.world_size}"


def _say_why(paths: TrialPaths, own: Rank) -> None:
    """Print why this rank did not finish, and what its recording lacks."""
    path = paths.answer(own.rank) if own.rank else paths.exit
    try:
        ended = from_json(Exit, read_json(path))
    except DocumentError:
        return
    if ended.state != "finished":
        print(f"profrun: {_where(own)}: {ended.state}: {ended.reason}", file=sys.stderr)
    for warning in ended.warnings:
        if warning.severity != "info":
            print(f"profrun: {_where(own)}: {warning.severity}: {warning}", file=sys.stderr)
