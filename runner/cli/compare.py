"""``profrun compare A... vs B...``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from profrun.errors import UsageError
from profrun.runner.cli.options import JsonOption, RunsOption, runs_root
from profrun.runner.cli.output import columns, emit, ns_text, say, terminal_width

if TYPE_CHECKING:
    from profrun.analysis.compare import Comparison
    from profrun.analysis.compare.model import By, Row
    from profrun.analysis.stats import Statistic

STATISTICS = ("median", "mean", "p99")


def command(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A... vs B...",
            help="Traces, trials (RUN/NUMBER), points (RUN/VARIANT-COLLECTOR) or runs; A is the base.",
        ),
    ],
    by: Annotated[
        str, typer.Option(help="What changed, by kernel, op, range, module, category or step.")
    ] = "kernel",
    statistic: Annotated[str, typer.Option(help="Of step times: median, mean or p99.")] = "median",
    threshold: Annotated[str, typer.Option(help="Smaller changes are the same: 0.01 or 1%.")] = "1%",
    per: Annotated[
        str | None,
        typer.Option(
            help="Divide by work: token, gflop, a variant's value, or two amounts.", show_default=False
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Compare in spite of this difference (its code); repeatable.", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(help="Rows to show; 0 for all.", min=0)] = 15,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Two sets of traces or runs: what changed, by how much, how sure."""
    from typing import cast

    from profrun.analysis.compare import compare
    from profrun.runner.cli.sides import find_sides, read_trials

    if statistic not in STATISTICS:
        raise UsageError(f"no statistic {statistic!r}", fix=f"one of {', '.join(STATISTICS)}")
    found = find_sides(sides, runs_root(runs))
    result = compare(
        read_trials(found.a),
        read_trials(found.b),
        by=cast("By", by),
        statistic=cast("Statistic", statistic),
        threshold=fraction(threshold),
        per=per,
        allow=allow or (),
    )
    if json_:
        emit(result.to_json())
    else:
        show_comparison(result, top)
    raise typer.Exit(result.exit_code)


def fraction(text: str) -> float:
    """'1%' or '0.01' as 0.01.

    Raises:
        UsageError: it is neither.
    """
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(f"{text!r} is no fraction", fix="write 0.01 or 1%") from None


def show_comparison(result: Comparison, top: int) -> None:
    """Verdict with its interval, why to doubt it, then what changed."""
    say(_headline(result))
    for side, name in zip(result.sides, "AB", strict=True):
        devices = ", ".join(side.devices) or "no GPU"
        steps = f"{side.steps} steps of {ns_text(side.step_ns)}"
        say(f"  {name}: {side.trials} trials, {steps}, {side.collector}, {devices}")
    for reason in result.reasons:
        allowed = " (allowed)" if reason.allowed else ""
        say(f"  {reason.severity}: {reason.message} [{reason.code}]{allowed}")
    for metric in result.metrics:
        say(f"  {metric.name}: {ratio_text(metric.ratio, metric.ci95)}, {metric.verdict}")
    if result.parts:
        say()
        say("the mean step")
        rows = [
            (part.name, *map(ns_text, (part.a_ns, part.b_ns)), signed(part.delta_ns)) for part in result.parts
        ]
        say(columns(("part", "A", "B", "difference"), rows, right=(1, 2, 3), indent="  "))
    if result.rows:
        say()
        say(f"what changed, a step, by {result.by}")
        shown = result.rows[: top or None]
        say(
            columns(
                ("what", "status", "A", "B", "difference"), map(_row, shown), right=(2, 3, 4), indent="  "
            )
        )
        if len(result.rows) > len(shown):
            say(f"  ... and {len(result.rows) - len(shown)} more (--top 0 shows all)")


def _headline(result: Comparison) -> str:
    if result.ratio is None:
        return f"{result.verdict}: no number is given"
    text = f"{result.verdict}: B takes {ratio_text(result.ratio, result.ci95)} times as long as A"
    text += f" ({result.statistic} step, {result.trials[0]} and {result.trials[1]} trials"
    if result.mde is not None:
        text += f", smallest change that would show {100 * result.mde:.2g} %"
    if result.trials_needed:
        text += f", {result.trials_needed} trials a side would settle {100 * result.threshold:g} %"
    return text + ")"


def ratio_text(ratio: float, ci95: tuple[float, float] | None) -> str:
    """A ratio with its interval: '1.019 [0.998, 1.040]'."""
    return f"{ratio:.3f}" + (f" [{ci95[0]:.3f}, {ci95[1]:.3f}]" if ci95 else " (no interval)")


def signed(ns: float) -> str:
    """A difference in ns with its sign."""
    return ("+" if ns > 0 else "-" if ns < 0 else "") + ns_text(abs(ns))


def _row(row: Row) -> tuple[str, ...]:
    width = max(24, terminal_width() - 54)
    name = row.name if len(row.name) <= width else row.name[: width - 3] + "..."
    return name, row.status, ns_text(row.a_ns), ns_text(row.b_ns), signed(row.delta_ns)
