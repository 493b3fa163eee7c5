"""``profrun diagnose TRACE``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from profrun.runner.cli.options import JsonOption, RunsOption, runs_root
from profrun.runner.cli.output import emit, say
from profrun.runner.cli.traces import TraceArgument, opened


def command(trace: TraceArgument, runs: RunsOption = None, json_: JsonOption = False) -> None:
    """What slows a trace down, with the evidence."""
    from profrun.analysis.diagnose import diagnose
    from profrun.runner.store.files import read_json

    with opened(trace, runs_root(runs)) as found:
        # Of a trial: clocks and throttle reasons stand beside the trace.
        findings = diagnose(found, provenance=read_json(Path(found.path).parent / "provenance.json"))
    if json_:
        emit({"findings": [finding.to_json() for finding in findings]})
        return
    if not findings:
        say("nothing found: no rule's threshold is exceeded")
    for finding in findings:
        doubts = f" (doubtful: {', '.join(finding.doubts)})" if finding.doubts else ""
        say(f"{finding.severity}: {finding.title}: {finding.message}{doubts}")
        say(f"  {finding.meaning}")
        say(f"  advice: {finding.advice}")
        say(f"  evidence: {_evidence(finding.evidence)}")


def _evidence(values: dict[str, Any]) -> str:
    """Numbers by name; lists are cut, --json has them whole."""
    parts = []
    for name, value in values.items():
        if isinstance(value, list):
            more = f" and {len(value) - 3} more" if len(value) > 3 else ""
            value = ", ".join(str(item) for item in value[:3]) + more
        elif isinstance(value, dict):
            value = json.dumps(value)
        parts.append(f"{name} {value}")
    return "; ".join(parts)
