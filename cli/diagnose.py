"""``profrun diagnose TRACE``."""

from __future__ import annotations

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, say, terminal_style
from profrun.runner.references import opened

EXAMPLES = (
    ("profrun diagnose last/1", "what slows trial 1 of the newest run"),
    ("profrun diagnose trace.json.gz --json", "a file, for a script"),
)


def command(trace: TraceArgument, runs: RunsOption = None, json_: JsonOption = False) -> None:
    """Say what slows the recorded program down, with the evidence."""
    from profrun.analysis.rules.diagnose import diagnose
    from profrun.reports.diagnosis_text import diagnose_text
    from profrun.runner.twins import unprofiled_step
    from profrun.store.documents import provenance_beside

    with opened(trace, runs_root(runs)) as found:
        # A trial's provenance.json, beside its trace, has clocks and throttle reasons. Other trials of its
        # run tell how long a step takes without a profiler.
        findings = diagnose(
            found, provenance=provenance_beside(found.path), unprofiled=unprofiled_step(found.path)
        )
    if json_:
        emit({"findings": [finding.to_json() for finding in findings]})
        return
    say(diagnose_text(findings, terminal_style()))
