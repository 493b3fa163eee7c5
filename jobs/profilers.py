"""What a job's blocks give each profiler: one function, given the blocks and a collector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profrun.contract.profilers import COUNTERS, NEUTRAL, TIMELINE, Profiler, candidates


def options_of(
    blocks: Mapping[str, Mapping[str, Any]], collector: str, known: Profiler | None = None
) -> dict[str, dict[str, object]]:
    """Profiler -> options, of each profiler that a collector may become.

    ``timeline`` and ``counters`` lay their own sub-blocks over the profilers' blocks. What would make kernels
    run one at a time is left out of a timeline, unless the timeline's own block asks for it.

    Args:
        blocks: collector -> its block of the job.
        known: what the collector becomes, where that is known: then it is the only one.
    """
    found: dict[str, dict[str, object]] = {}
    for profiler in (known,) if known else candidates(collector):
        options = dict(blocks.get(profiler.name, {}))
        if collector in NEUTRAL:
            if collector == TIMELINE and profiler.serial_option:
                options.pop(profiler.serial_option, None)
            defaults = profiler.counters_defaults if collector == COUNTERS else {}
            options = {**defaults, **options, **blocks.get(collector, {}).get(profiler.name, {})}
        found[profiler.name] = options
    return found
