"""What a report shows of a run, as plain values; the command line fills it from the run's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunContent:
    """A run.

    Attributes:
        document: what ``profrun submit --json`` prints (docs/cli.md).
        job: text of the spec as it was given; ``resolved``: of the one that repeats the run.
        step_times: trial -> ns of each measured step, in order.
        machines: trial -> provenance.json, for the trials that have one.
        troubles: what went wrong, a line each.
        missing: what the report would show and could not, a line each.
        shown, total: traces with a tab of their own, and traces there are.
    """

    document: Mapping[str, Any]
    job: str | None = None
    resolved: str | None = None
    step_times: Mapping[str, Sequence[int]] = field(default_factory=dict)
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    troubles: Sequence[str] = ()
    missing: Sequence[str] = ()
    shown: int = 0
    total: int = 0
