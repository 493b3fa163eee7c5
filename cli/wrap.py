"""``profrun wrap --out DIR [OPTIONS] -- COMMAND``, and ``profrun wrap --bundle PATH``.

What it does is in ``in_job.wrap``, which every image can run without profrun. Here are the options for the
help page, and the bundle, which only an installed profrun can make.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import CommandArgument
from profrun.cli.output import emit, note, say
from profrun.errors import UsageError

CONTEXT = {"allow_interspersed_args": False}  # the first word that is no option begins the command

EXAMPLES = (
    ("profrun wrap --out /data/run -- python train.py", "what a launcher starts in every rank"),
    ("profrun wrap --bundle wrap.pyz", "the same as one file, for images without profrun"),
    ("profrun wrap --out /data/run --dry-run -- python train.py", "what would be done, as JSON"),
)

ManyOption = list[str] | None


def command(
    argv: CommandArgument = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the run, which all ranks see.", show_default=False
        ),
    ] = None,
    collector: Annotated[
        str,
        typer.Option(
            "--collector",
            "-c",
            metavar="NAME",
            help="Profiler; 'none' measures without one.",
            autocompletion=completers.collectors,
        ),
    ] = "torch",
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Steps to record [default: 3, after 2 that are not].", show_default=False
        ),
    ] = None,
    set_: Annotated[
        ManyOption,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="One value as of a job: of schedule, ranges, resources.timeout, resources.grace, sample, "
            "ranks or the profiler; repeatable.",
            show_default=False,
        ),
    ] = None,
    variant: Annotated[
        ManyOption,
        typer.Option(
            metavar="NAME=VALUE",
            help="What this launch is compared by: lr=0.1, or a name alone. The command stays as it is. "
            "Repeatable.",
            show_default=False,
        ),
    ] = None,
    blocking: Annotated[bool, typer.Option("--blocking", help="Launches wait for their kernel.")] = False,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the job [default: the name of DIR].", show_default=False),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder on a disk of the node in which profilers record.", show_default=False
        ),
    ] = None,
    secret: Annotated[
        ManyOption,
        typer.Option(metavar="VARIABLE", help="Never write its value down; repeatable.", show_default=False),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="This rank [default: by the launcher's variables].", show_default=False
        ),
    ] = None,
    world_size: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many ranks are started like this [default: likewise].", show_default=False
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Processes in total, where each command starts several, as torchrun does.",
            show_default=False,
        ),
    ] = None,
    launch: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The same for all ranks of this start, another for the next [default: $PROFRUN_LAUNCH, or "
            "by the launcher's variables].",
            show_default=False,
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Write the wrapper for images without profrun, and start nothing: a file where PATH ends in "
            ".pyz, else a folder.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what this rank would do; start nothing.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="With --bundle or --dry-run: print JSON.")] = False,
) -> None:
    """Record a command in every rank that another launcher starts."""
    if bundle is not None:
        _write_bundle(bundle, json_=json_)
        return
    words = ["--collector", collector, *(["--blocking"] if blocking else [])]
    single: tuple[tuple[str, object], ...] = (
        ("--out", out),
        ("--steps", steps),
        ("--name", name),
        ("--scratch", scratch),
        ("--rank", rank),
        ("--world-size", world_size),
        ("--ranks", ranks),
        ("--launch", launch),
    )
    for option, value in single:
        words += [] if value is None else [option, str(value)]
    for option, values in (("--set", set_), ("--variant", variant), ("--secret", secret)):
        for value in values or ():
            words += [option, value]
    from profrun.runner.linux import need_linux

    need_linux("running a command")
    if dry_run:
        from profrun.in_job.wrap import main

        raise typer.Exit(main([*words, "--dry-run", "--", *(argv or ())], "profrun wrap"))
    _start(words, argv or ())


def _write_bundle(place: Path, *, json_: bool) -> None:
    from profrun.contract.profilers import names
    from profrun.plans.bundle import write_bundle, write_pyz
    from profrun.store.files import explained

    single = place.suffix == ".pyz"
    with explained(place):
        if single:
            write_pyz(place, names())
        else:
            if place.exists() and not (place / "run.py").exists():
                raise UsageError(
                    f"{place} is there and is no bundle", fix="name a folder that is not there yet"
                )
            place.parent.mkdir(parents=True, exist_ok=True)
            write_bundle(place, names())
    start = f"python3 {place}" if single else f"python3 {place / 'run.py'} --wrap"
    if json_:
        emit({"bundle": str(place), "command": start})
        return
    say(str(place))
    note(f"start it in every rank: {start} --out DIR -- COMMAND")


def _start(words: list[str], argv: list[str] | tuple[str, ...]) -> None:
    """Become the wrapper: the same program as in an image without profrun."""
    from profrun.contract.paths import BUNDLE
    from profrun.contract.profilers import names
    from profrun.in_job.wrap_args import WrapError, read_args
    from profrun.plans.bundle import place_bundle
    from profrun.store.files import explained

    try:
        args = read_args("profrun wrap", [*words, "--", *argv], os.environ, os.getcwd())  # noqa: PTH109
    except WrapError as error:
        raise UsageError(str(error)) from None
    with explained(Path(args.out)):
        bundle = place_bundle(Path(args.out) / BUNDLE, names())
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, str(bundle / "run.py"), "--wrap", *words, "--", *argv])
