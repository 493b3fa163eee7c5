"""``profrun blocking RUN`` and ``profrun blocking A... vs B...``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli import completers
from profrun.cli.compare_args import fraction, sides_of
from profrun.cli.options import JsonOption, RunsOption, ThresholdOption, runs_root
from profrun.cli.output import emit, say, terminal_style
from profrun.errors import InputError

if TYPE_CHECKING:
    from profrun.analysis.compare.blocking_model import Blocking
    from profrun.store.runs import Run


EXAMPLES = (("profrun blocking last", "every variant that has launch-blocking trials"),)


def command(
    sides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN | A... vs B...",
            help="A run with launch-blocking twins [default: last], or trials without blocking vs with.",
            autocompletion=completers.sides,
            show_default=False,
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only this variant of the run.",
            show_default=False,
            autocompletion=completers.variants_of_run,
        ),
    ] = None,
    threshold: ThresholdOption = "1%",
    top: Annotated[int, typer.Option(metavar="N", help="Rows of each table; 0 for all.", min=0)] = 10,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Show how much slower each variant gets with CUDA_LAUNCH_BLOCKING=1."""
    from profrun.reports.blocking_text import blocking_text

    words = sides or ["last"]
    found = _twins(words, variant, runs_root(runs), fraction(threshold))
    if json_:
        documents = [item.to_json() for item in found]
        # With one variant, the document also has its fields at the top level.
        emit({**(documents[0] if len(documents) == 1 else {}), "points": documents})
    else:
        for number, item in enumerate(found):
            if number:
                say()
            say(blocking_text(item, terminal_style(), top=top))
    raise typer.Exit(max(item.exit_code for item in found))


def _twins(words: Sequence[str], variant: str | None, root: Path, threshold: float) -> list[Blocking]:
    from profrun.analysis.compare.blocking import blocking_twins
    from profrun.runner.comparison_sides import read_trials
    from profrun.store.runs import find

    if len(words) > 1:
        both = sides_of(words, root)
        return [
            blocking_twins(read_trials(both.a), read_trials(both.b), threshold=threshold, variant=variant)
        ]
    return [
        blocking_twins(read_trials(plain), read_trials(blocking), threshold=threshold, variant=name)
        for name, (plain, blocking) in _points(find(root, words[0]), variant).items()
    ]


Side = list[tuple[str, Path]]


def _points(run: Run, variant: str | None) -> dict[str, tuple[Side, Side]]:
    """Variant -> its finished traces without and with blocking, of every collector.

    Raises:
        InputError: no variant has traces on both sides.
    """
    from profrun.store.runs import read_plan
    from profrun.store.state import read_state

    found: dict[str, tuple[Side, Side]] = {}
    for record in read_state(run).trials:
        if record.trace is not None and record.state == "finished" and variant in (None, record.variant):
            found.setdefault(record.variant, ([], []))[record.blocking].append((record.id, record.trace))
    both = {name: sides for name, sides in found.items() if all(sides)}
    if not both:
        what = f"variant {variant} of {run.name}" if variant else run.name
        left_out = read_plan(run).left_out
        where = "on a machine with a GPU," if left_out else "again,"
        raise InputError(
            f"{what} has no launch-blocking twins",
            why="; ".join(left_out) or "no variant has finished traces both without and with blocking",
            fix=f"submit the job {where} with `--set launch_blocking=both`",
        )
    return both
