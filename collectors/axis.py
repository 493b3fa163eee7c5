"""Unix time of a host -> the time axis of a trace."""

from __future__ import annotations

from profrun.contract.steps import Anchor
from profrun.traces.meta import TraceMeta

LIMIT = 1 << 62
"""Times and step numbers from here on are damage: int64 could not hold their sums."""


def on_axis(meta: TraceMeta, anchor: Anchor) -> int | None:
    """What to add to a unix time, ns, for a time on the axis of the trace; None where nothing ties them.

    Args:
        meta: of the trace that a reader has made: ``epoch_ns``, ``clock`` and ``replayed``.
        anchor: one moment on the clocks of the host on which the unix time was read. A trace on the clock
            of a host since its boot has the times of each host on that host's clock.
    """
    if meta["replayed"]:
        return None
    if meta["epoch_ns"] is not None:
        return -meta["epoch_ns"]
    since_boot = {"boottime": anchor.boottime_ns, "monotonic": anchor.monotonic_ns}.get(meta["clock"])
    return None if since_boot is None else since_boot - anchor.realtime_ns
