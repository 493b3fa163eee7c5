"""``profrun blocking RUN`` and ``profrun blocking A... vs B...``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.errors import InputError
from profrun.runner.cli.compare import fraction, ratio_text, signed
from profrun.runner.cli.options import JsonOption, RunsOption, runs_root
from profrun.runner.cli.output import columns, emit, ns_text, say

if TYPE_CHECKING:
    from profrun.analysis.blocking import Blocking
    from profrun.runner.store.runs import Run


def command(
    sides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN | A... vs B...",
            help="A run with twins [default: last], or trials without blocking vs trials with.",
            show_default=False,
        ),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="Only this variant of the run.", show_default=False)
    ] = None,
    threshold: Annotated[str, typer.Option(help="Smaller changes are the same: 0.01 or 1%.")] = "1%",
    top: Annotated[int, typer.Option(help="Rows of each table; 0 for all.", min=0)] = 10,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """What asynchronous launches are worth: launch-blocking twins of a run."""
    words = sides or ["last"]
    found = _twins(words, variant, runs_root(runs), fraction(threshold))
    if json_:
        documents = [item.to_json() for item in found]
        # One point is the document itself; several stand in a list.
        emit({**(documents[0] if len(documents) == 1 else {}), "points": documents})
    else:
        for item in found:
            show_blocking(item, top)
    raise typer.Exit(max(item.exit_code for item in found))


def _twins(words: Sequence[str], variant: str | None, root: Path, threshold: float) -> list[Blocking]:
    from profrun.analysis.blocking import blocking_twins
    from profrun.runner.cli.sides import find_sides, read_trials
    from profrun.runner.store.runs import find

    if len(words) > 1:
        both = find_sides(words, root)
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
    from profrun.runner.store.state import read_state

    found: dict[str, tuple[Side, Side]] = {}
    for record in read_state(run).trials:
        if record.trace is not None and record.state == "finished" and variant in (None, record.variant):
            found.setdefault(record.variant, ([], []))[record.blocking].append((record.id, record.trace))
    both = {name: sides for name, sides in found.items() if all(sides)}
    if not both:
        what = f"variant {variant} of {run.name}" if variant else run.name
        raise InputError(
            f"{what} has no launch-blocking twins",
            why="no variant has finished traces both without and with blocking",
            fix="submit the job with `--set launch_blocking=both`",
        )
    return both


def show_blocking(item: Blocking, top: int) -> None:
    """The sentence, its numbers, and where the time was hidden."""
    say(f"{item.variant or 'twins'}: {item.sentence}")
    if item.ratio is not None and item.step_ns is not None:
        times = f"{ns_text(item.step_ns[1])} blocking, {ns_text(item.step_ns[0])} not"
        count = f"{item.trials[0]} and {item.trials[1]} trials of {item.timed_by}"
        say(f"  step: {times}, ratio {ratio_text(item.ratio, item.ci95)}, {item.verdict} ({count})")
    for name, value in (("overlap a step", item.overlap_ns), ("hidden a step", item.hidden_ns)):
        if value is not None:
            say(f"  {name}: {ns_text(value)}")
    say(f"  kernels: {_kernels(item)}")
    for reason in item.reasons:
        say(f"  {reason.severity}: {reason.message} [{reason.code}]")
    if item.per_op:
        rows = [
            (
                row.name[:40],
                f"{row.calls:g}",
                *map(ns_text, (row.async_ns, row.blocking_ns)),
                signed(row.hidden_ns),
            )
            for row in item.per_op[: top or None]
        ]
        say(columns(("a step", "calls", "not", "blocking", "hidden"), rows, right=(1, 2, 3, 4), indent="  "))


def _kernels(item: Blocking) -> str:
    if item.kernel_multiset_equal is None:
        return "none were recorded"
    if item.kernel_multiset_equal:
        return "the same on both sides"
    first = item.kernel_differences[0]
    return f"NOT the same: {first.name} {first.async_calls:g} a step, {first.blocking_calls:g} with blocking"
