"""``profrun compare A... vs B...``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from profrun.cli import completers
from profrun.cli.options import ByOption, JsonOption, MarkdownOption, RunsOption, ThresholdOption, runs_root
from profrun.cli.output import emit, say, terminal_style
from profrun.errors import UsageError

if TYPE_CHECKING:
    from profrun.analysis.compare.gate import Gate
    from profrun.analysis.compare.model import By
    from profrun.analysis.compare.point_pairs import PointPairs
    from profrun.analysis.step_time import Statistic
    from profrun.reports.compare_sentence import Called
    from profrun.runner.comparison_sides import Sides


EXAMPLES = (
    ("profrun compare last/eager-none vs last/fast-none", "two variants of a run"),
    ("profrun compare before vs after", "two folders that `profrun normalize` made"),
    ("profrun compare run-a vs run-b --allow work", "although their work differs"),
    ("profrun compare a vs b --fail-on 'slower > 3%'", "a gate for CI"),
)
_DEFAULTS = {"by": "kernel", "statistic": "median", "threshold": "1%"}


def command(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A... vs B...",
            help="Traces, trials (RUN/NUMBER), points (RUN/VARIANT-COLLECTOR) or runs; A is the base.",
            autocompletion=completers.sides,
        ),
    ],
    by: ByOption = _DEFAULTS["by"],
    statistic: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Statistic to compare: median, mean or p99 of step times.",
        ),
    ] = _DEFAULTS["statistic"],
    threshold: ThresholdOption = _DEFAULTS["threshold"],
    phase: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Steps that count without a profiler: steady (default), window (the recorded ones) or all.",
            show_default=False,
        ),
    ] = None,
    per: Annotated[
        str | None,
        typer.Option(
            metavar="WORK",
            help="Report time per unit of work, e.g. --per token; or gflop, a variant's value, two amounts.",
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="Compare although this check failed, e.g. --allow work; repeatable.",
            show_default=False,
        ),
    ] = None,
    same_kernels: Annotated[
        bool,
        typer.Option(
            "--same-kernels",
            help="Say only whether both sides saw the same kernels: for one program under two profilers.",
        ),
    ] = False,
    top: Annotated[int, typer.Option(metavar="N", help="Rows to show; 0 for all.", min=0)] = 15,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Rule of a gate: 'slower > 3%', 'memory peak > 5%', ...; repeatable.",
            show_default=False,
        ),
    ] = None,
    markdown: MarkdownOption = False,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the gate's rules as JUnit XML to this file.", show_default=False
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the whole comparison as an HTML page to this file.",
            show_default=False,
        ),
    ] = None,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Compare two sets of traces or runs: what changed, by how much, how sure."""
    from typing import cast

    from profrun.analysis.compare.point_pairs import compare_points
    from profrun.analysis.counted_steps import phase_named
    from profrun.cli.compare_args import fraction, sides_of
    from profrun.cli.reading_line import ReadingLine
    from profrun.reports.compare_text import gate_text
    from profrun.reports.point_pairs_text import point_pairs_text
    from profrun.runner.comparison_sides import read_sides

    found = sides_of(sides, runs_root(runs))
    if same_kernels:
        _need_no_gate(fail_on, junit, html, markdown=markdown)
        _same_kernels(found, top, json_=json_)
    with ReadingLine() as line:
        a, b = read_sides(
            found, phase_named(phase) if phase else None, progress=line.update, by=cast("By", by)
        )
    result = compare_points(
        a,
        b,
        by=cast("By", by),
        statistic=cast("Statistic", statistic),
        threshold=fraction(threshold),
        per=per,
        allow=allow or (),
    )
    called = _called(
        sides, runs, by=by, statistic=statistic, threshold=threshold, phase=phase, per=per, allow=allow
    )
    gate = _gate(result, fail_on or [], found.b)
    if junit is not None and gate is None:
        raise UsageError("--junit writes the rules of --fail-on", fix="add --fail-on 'slower > 3%'")
    if junit is not None and gate is not None:
        from profrun.reports.compare_files import junit as junit_text
        from profrun.store.files import write_text

        write_text(junit, junit_text(result, gate))
    if html is not None:
        from profrun.reports.change_section import Change
        from profrun.runner.report import write_comparison

        write_comparison(Change(result, called), html)
    code = gate.exit_code if gate else result.exit_code
    if json_:
        emit(result.to_json() | {"gate": gate.to_json() if gate else None, "exit_code": code})
    elif markdown:
        from profrun.reports.compare_files import markdown as markdown_text

        say(markdown_text(result, gate, top=top).rstrip())
    else:
        style = terminal_style()
        say(point_pairs_text(result, style, top=top, called=called))
        if gate:
            say()
            say(gate_text(gate, style))
    raise typer.Exit(code)


def _called(sides: Sequence[str], runs: Path | None, **options: str | list[str] | None) -> Called:
    """What the user called, as far as it decides what is compared."""
    from profrun.reports.compare_sentence import Called

    words: list[str] = []
    for name, value in options.items():
        for one in [value] if isinstance(value, str) else value or []:
            words += [] if one == _DEFAULTS.get(name) else [f"--{name}", one]
    return Called(sides, None if runs is None else str(runs), words)


def _need_no_gate(
    fail_on: Sequence[str] | None, junit: Path | None, html: Path | None, *, markdown: bool
) -> None:
    options = {"--fail-on": fail_on, "--junit": junit, "--markdown": markdown, "--html": html}
    for name, given in options.items():
        if given:
            raise UsageError(
                f"--same-kernels has no {name}",
                fix="leave it out: the exit code is the answer, and --json has every kernel",
            )


def _same_kernels(found: Sides, top: int, *, json_: bool) -> NoReturn:
    """Print whether both sides saw the same kernels, and end with the exit code of the answer."""
    from profrun.analysis.compare.kernel_agreement import kernels_of_both
    from profrun.reports.seen_kernels_text import seen_kernels_text
    from profrun.runner.comparison_sides import read_trials

    seen = kernels_of_both(read_trials(found.a), read_trials(found.b))
    if json_:
        emit(seen.to_json())
    else:
        say(seen_kernels_text(seen, terminal_style(), top=top))
    raise typer.Exit(seen.exit_code)


def _gate(result: PointPairs, rules: list[str], side: Sequence[tuple[str, Path]]) -> Gate | None:
    """Apply the rules of ``--fail-on`` to the comparison; None without rules."""
    from profrun.analysis.compare.gate import parse_rule
    from profrun.analysis.compare.point_pairs import gate_of

    if not rules:
        return None
    parsed = [parse_rule(rule) for rule in rules]
    asked = any(rule.what == "expectations" for rule in parsed)
    return gate_of(result, parsed, expectations=_expectations(side) if asked else ())


def _expectations(side: Sequence[tuple[str, Path]]) -> list[tuple[str, bool | None]]:
    """(claim in words, did it hold) for the runs to which the traces of a side belong: claims about them."""
    from profrun.runner.finish import claims_of
    from profrun.store.runs import Run, is_run

    trials: dict[Path, set[str]] = {}
    for _, path in side:
        folder = path.resolve()
        if path.name == "trace" and is_run(folder.parents[2]):  # RUN/trials/TRIAL/trace
            trials.setdefault(folder.parents[2], set()).add(folder.parent.name)
    known = {"held": True, "refuted": False, "not checked": None}
    return [
        (claim.claim, known[claim.state])
        for folder, names in trials.items()
        for claim in claims_of(Run(folder))
        if claim.state == "not checked" or any(names & set(check.trials) for check in claim.checks)
    ]
