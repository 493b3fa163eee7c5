"""The profilers that a trial may become, and the time that they need to write their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profrun.contract.profilers import Profiler, become, profiler
from profrun.contract.wrapping import WrapRequest
from profrun.plans.make import make_command
from profrun.plans.model import Plan, Trial

ProfilerOptions = Mapping[str, object]

_LEAST_PATIENCE_S = 120.0
"""Signs of life are 15 s apart, and an NFS client may show one as late as 60 s after it was given."""


def profilers_of(trial: Trial, vendor: str) -> list[tuple[Profiler, ProfilerOptions]]:
    """The profilers that a trial may become on these GPUs, each with its options.

    Args:
        vendor: nvidia, amd, none, or auto while it is not known.
    """
    known = become(trial.collector, vendor)
    return [
        (profiler(name), options)
        for name, options in trial.options.items()
        if known is None or known.name == name
    ]


def finalise_s(plan: Plan, trials: Sequence[Trial], vendor: str = "auto") -> float:
    """Seconds that the slowest profiler among these trials may need to write after the program has ended."""
    return max(
        (
            _finalise_s(plan, trial, found, options, vendor)
            for trial in trials
            for found, options in profilers_of(trial, vendor)
        ),
        default=30.0,
    )


def _finalise_s(plan: Plan, trial: Trial, found: Profiler, options: ProfilerOptions, vendor: str) -> float:
    tool = found.tools[0] if found.tools else ""
    command = make_command(plan, trial, "", cwd="/")
    request = WrapRequest.of(command, options, out="raw/rank0", tool=tool, version=None, vendor=vendor)
    return float(found.part("wrap").wrap(request).finalise_s)


def patience_s(plan: Plan, trial: Trial) -> float:
    """Seconds without a sign of life after which another rank of the trial counts as dead.

    A shared file system may be slow as long as hundreds of profilers write to it.
    """
    return max(_LEAST_PATIENCE_S, margin_s(plan, [trial]))


def margin_s(plan: Plan, trials: Sequence[Trial]) -> int:
    """Seconds beyond a trial's own time limit: grace, finalising, export, and a minute for the rest."""
    return int(plan.job.resources.grace + 2 * finalise_s(plan, trials) + 60)
