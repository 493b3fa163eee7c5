"""``profrun doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import emit, tell
from profrun.errors import UsageError

if TYPE_CHECKING:
    from profrun.doctor import Machine


EXAMPLES = (
    ("profrun doctor", "which profilers work here"),
    ("profrun doctor timeline counters", "fail unless both work"),
    ("profrun doctor --backend slurm --partition gpu", "ask a node of a cluster"),
)


def command(
    collectors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COLLECTOR...",
            help="Collectors that must work; exit code 69 if one of them cannot.",
            autocompletion=completers.collectors,
            show_default=False,
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where they must work: local, docker (default: either), slurm or kubernetes.",
            autocompletion=completers.backends,
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Slurm partition to which a probe is sent.", show_default=False),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Profile of clusters.yaml for the probe.", show_default=False),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(metavar="N", help="GPUs that the probe asks for.", min=0, show_default=False)
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option("--image", help="Look into this image too; repeatable.", show_default=False),
    ] = None,
    inside: Annotated[
        bool, typer.Option(help="Run the images that were built here to see what is inside.")
    ] = True,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also print every check with its reason.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Check which profilers work here, and how to fix those that do not."""
    from profrun.runner.linux import need_linux

    need_linux("checking which profilers work")
    if backend in ("slurm", "kubernetes"):
        first = image[0] if image else None
        _cluster(backend, runs_root(runs), collectors or (), partition, profile, first, gpus, json_=json_)
        return
    if partition or profile or gpus is not None:
        raise UsageError(
            "--partition, --profile and --gpus are options for a cluster",
            fix="add --backend slurm or --backend kubernetes",
        )
    from profrun.doctor import cannot, look, report

    machine = look(runs_root(runs), image or (), inside=inside)
    failing = cannot(machine, collectors or (), backend)
    if json_:
        emit({**report(machine), "cannot": [verdict.collector for verdict in failing]})
    else:
        _show(machine, verbose=verbose)
    if failing:
        raise typer.Exit(69)


def _cluster(
    backend: str,
    root: Path,
    collectors: Sequence[str],
    partition: str | None,
    profile: str | None,
    image: str | None,
    gpus: int | None,
    *,
    json_: bool,
) -> None:
    """Show a probe's answer; exit 69 if a collector that was asked for cannot work there."""
    from profrun.doctor.cluster import ask, lines, missing, report

    node = ask(backend, root, partition=partition, profile=profile, image=image, gpus=gpus)
    failing = missing(node, collectors)
    if json_:
        emit({**report(backend, node), "cannot": failing})
    else:
        for line in lines(node):
            tell(line)
    if failing:
        raise typer.Exit(69)


def _show(machine: Machine, *, verbose: bool) -> None:
    """Print where each profiler works and what to mend; with ``verbose`` every check below that."""
    from profrun.doctor import check_machine
    from profrun.doctor.advice import advise
    from profrun.reports.doctor_text import advice_parts

    tell(*advice_parts(advise(machine), check_machine(machine) if verbose else ()))
