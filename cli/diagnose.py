"""``profrun diagnose TRACE``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, say, terminal_style
from profrun.errors import UsageError
from profrun.runner.references import opened

EXAMPLES = (
    ("profrun diagnose last/1", "what slows trial 1 of the newest run"),
    ("profrun diagnose last/1 --explain 1", "its first finding, with the evidence"),
    ("profrun diagnose trace.json.gz --json", "a file, for a script"),
)


def command(
    trace: TraceArgument,
    explain: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="One finding with its evidence, by its number or its rule's name."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also print meaning, advice and evidence of each finding.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Say what slows the recorded program down, and what could be gained."""
    from profrun.analysis.rules.catalogue import all_rules
    from profrun.analysis.rules.diagnose import diagnose
    from profrun.analysis.rules.finding import numbered
    from profrun.reports.diagnosis_text import diagnose_text, explain_text
    from profrun.runner.mapped import addresses_of
    from profrun.runner.twins import unprofiled_step
    from profrun.store.documents import provenance_beside

    rules = {rule.id: rule for rule in all_rules()}
    if explain is not None and not explain.isdigit() and explain not in rules:
        raise UsageError(f"no rule '{explain}'; there are {', '.join(sorted(rules))}")
    with opened(trace, runs_root(runs)) as found:
        # A trial's provenance.json, beside its trace, has clocks and throttle reasons. Other trials of its
        # run tell how long a step takes without a profiler.
        findings = diagnose(
            found,
            provenance=provenance_beside(found.path),
            unprofiled=unprofiled_step(found.path),
            mapped=addresses_of(found),
        )
    if explain is not None and explain.isdigit():
        places = {str(number): finding.code for number, finding in numbered(findings) if number}
        if explain not in places:
            raise UsageError(f"no finding {explain}; this trace has {len(places)}")
        explain = places[explain]
    if json_:
        shown = [finding for finding in findings if explain in (None, finding.code)]
        emit({"findings": [finding.to_json() for finding in shown]})
    elif explain is not None:
        say(explain_text(rules[explain], findings, terminal_style(), trace=trace))
    else:
        say(diagnose_text(findings, terminal_style(), verbose=verbose, trace=trace))
