"""Unix time onto the axis of a trace."""

from __future__ import annotations

import pytest

from profrun.collectors.axis import on_axis
from profrun.contract.steps import Anchor
from profrun.traces.meta import TraceMeta

ANCHOR = Anchor(realtime_ns=1_000_000, monotonic_ns=300, boottime_ns=400)


@pytest.mark.parametrize(
    ("clock", "epoch", "replayed", "expected"),
    [
        ("epoch", 999_000, False, 1_000),
        ("boottime", None, False, 400),
        ("monotonic", None, False, 300),
        ("session", None, False, None),
        ("epoch", 999_000, True, None),
    ],
)
def test_the_moment_of_the_anchor_on_each_axis(
    clock: str, epoch: int | None, replayed: bool, expected: int | None
) -> None:
    meta: TraceMeta = {"clock": clock, "epoch_ns": epoch, "replayed": replayed}
    shift = on_axis(meta, ANCHOR)
    assert (None if shift is None else ANCHOR.realtime_ns + shift) == expected
