"""``profrun summary TRACE``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, say, terminal_style
from profrun.errors import UsageError
from profrun.runner.references import opened

TOP = 15
TORCH_ROWS = 100
"""Rows that torch's own table has without ``row_limit``."""

EXAMPLES = (
    ("profrun summary last/1", "trial 1 of the newest run"),
    ("profrun summary trace.json.gz --top 5", "a profiler's own file"),
    ("profrun summary last/1 --as torch", "the table of key_averages()"),
    ("profrun summary last/1 --by line", "GPU time by line of the program"),
)


def command(
    trace: TraceArgument,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            "--rows",
            metavar="N",
            help="Rows of each table; 0 for all [default: 15; with --as torch 100; with --json all].",
            min=0,
            show_default=False,
        ),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option("--as", metavar="FORM", help="torch: print torch's own table, key_averages().table()."),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="With --as torch: column to sort by, as torch's sort_by: self_cpu_time_total, ...",
        ),
    ] = None,
    by_shapes: Annotated[
        bool, typer.Option("--group-by-shapes", help="With --as torch: a row for each shape of the inputs.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="line or module: GPU time by line of the program, or by module "
            "(needs a mapping: `ranges: {lines: true}`).",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also print totals, every step, and all notes.")
    ] = False,
    peak: Annotated[
        list[str] | None,
        typer.Option(
            "--peak",
            metavar="TYPE=NUMBER",
            help="A peak rate in place of the table's: TFLOP/s of a dtype (bf16=800), or memory_gb_s=4000. "
            "For a CPU, the rate of one rank. Repeatable.",
        ),
    ] = None,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Show GPU utilization, steps, kernels, operators and modules of a trace."""
    if as_ not in (None, "torch"):
        raise UsageError(f"--as knows torch only, not '{as_}'")
    if as_ is None and (sort is not None or by_shapes):
        raise UsageError("--sort and --group-by-shapes need --as torch")
    if by not in (None, "line", "module"):
        raise UsageError(f"--by knows line and module, not '{by}'")
    if by is not None and as_ is not None:
        raise UsageError("--by and --as are two forms: give one of them")
    peaks = _peaks(peak or [])
    if by is not None:
        _by_place(trace, "line" if by == "line" else "module", top, runs_root(runs), json_)
        return
    if as_ == "torch":
        _as_torch(trace, top, sort, by_shapes, runs_root(runs), json_)
        return
    from profrun.analysis.compare.work_energy import energy_per_work
    from profrun.analysis.json import to_json
    from profrun.analysis.rules.context import Context
    from profrun.analysis.rules.step_use import step_use
    from profrun.analysis.trace.summary import summarize
    from profrun.reports.terminal import summary_text
    from profrun.runner.twins import unprofiled_step

    with opened(trace, runs_root(runs)) as found:
        shown = top if top is not None else (0 if json_ else TOP)
        summary = summarize(found, top=shown or None, peaks=peaks)
        context = Context(found, unprofiled=unprofiled_step(found.path))
        cost, use = context.cost, step_use(context, peaks)
        energy = energy_per_work(found)
    if json_:
        told = {"step_cost": to_json(cost), "step_use": to_json(use), "energy_per_work": energy}
        emit({**summary.to_json(), **told})
        return
    style = terminal_style()
    say(summary_text(summary, style, cost=cost, use=use, energy_per_work=energy, verbose=verbose))


def _by_place(trace: str, by: Literal["line", "module"], top: int | None, root: Path, json_: bool) -> None:
    """Print the GPU time by line or by module."""
    from profrun.analysis.json import to_json
    from profrun.analysis.trace.frame import frame
    from profrun.analysis.trace.line_table import place_table
    from profrun.analysis.trace.steps import denominator
    from profrun.reports.place_text import place_text
    from profrun.runner.mapped import mapped

    with opened(trace, root) as found:
        table = place_table(frame(found), mapped(found), by)
        of = denominator(found)
    if json_:
        document = to_json(table)
        emit({**document, "rows": document["rows"][: top or None], "resolved": table.resolved})
        return
    say(place_text(table, of, terminal_style(), top=(TOP if top is None else top) or None))


def _peaks(given: list[str]) -> dict[str, float]:
    """Dtype -> TFLOP/s, and memory_gb_s -> GB/s, as given."""
    from profrun.analysis.trace.peaks import DTYPES

    found = {}
    for one in given:
        key, _, number = one.partition("=")
        if key not in (*DTYPES, "memory_gb_s"):
            raise UsageError(
                f"--peak {one}: '{key}' is no rate", fix=f"TYPE is one of {', '.join(DTYPES)}, memory_gb_s"
            )
        try:
            found[key] = float(number)
        except ValueError:
            raise UsageError(
                f"--peak {one}: '{number}' is no number", fix="for example --peak bf16=800"
            ) from None
    return found


def _as_torch(
    trace: str, top: int | None, sort: str | None, by_shapes: bool, root: Path, json_: bool
) -> None:
    """Print torch's own table."""
    from profrun.analysis.json import to_json
    from profrun.analysis.trace.key_averages import key_averages, sorted_as
    from profrun.reports.torch_text import torch_text

    with opened(trace, root) as found:
        table = sorted_as(key_averages(found, by_shapes=by_shapes), sort)
    rows = top if top is not None else (0 if json_ else TORCH_ROWS)
    if json_:
        document = to_json(table)
        emit({**document, "rows": document["rows"][: rows or None]})
        return
    say(torch_text(table, rows or None))
