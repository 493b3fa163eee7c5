"""What a job gives each profiler: one function, given the job and a collector."""

from __future__ import annotations

from profrun.contract.codec import given_json, to_json
from profrun.contract.profilers import COUNTERS, NEUTRAL, TIMELINE, Profiler, candidates
from profrun.jobs.model import Job


def options_of(job: Job, collector: str, known: Profiler | None = None) -> dict[str, dict[str, object]]:
    """Profiler -> options as JSON values, of each profiler that a collector may become.

    ``timeline`` and ``counters`` lay their own options over the profilers'. What would make kernels run one
    at a time is left out of a timeline, unless the timeline's own options ask for it.

    Args:
        known: what the collector becomes, where that is known: then it is the only one.
    """
    found: dict[str, dict[str, object]] = {}
    for profiler in (known,) if known else candidates(collector):
        options = given_json(job.options[profiler.name]) if profiler.name in job.options else {}
        if collector in NEUTRAL:
            if collector == TIMELINE and profiler.serial_option:
                options.pop(profiler.serial_option, None)
            defaults = to_json(profiler.counters_defaults) if collector == COUNTERS else {}
            own = job.overlays.get(collector, {}).get(profiler.name)
            options = {**defaults, **options, **(given_json(own) if own is not None else {})}
        found[profiler.name] = options
    return found
