"""When root modules are no longer looked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from profrun.contract.schedule import Schedule
from profrun.in_job.root_watch import RootWatch


class Module:
    """What the hook asks of nn.Module where none is called."""

    def __call__(self) -> None:
        """Something to call."""


@pytest.mark.parametrize(
    ("schedule", "last"),
    [
        (Schedule(wait=10, warmup=1, active=3), 2),  # the first three steps
        (Schedule(wait=1, warmup=1, active=3), 4),  # no step that is recorded
        (Schedule(wait=2, warmup=2, active=3), 6),  # or warmed up
    ],
)
def test_module_steps_are_settled_after_three_steps_but_not_in_the_window(
    schedule: Schedule, last: int
) -> None:
    """``last``: the last step in which they are looked for."""
    finder = SimpleNamespace(undecided=True, how="module", minds_modules=False)
    steps: Any = SimpleNamespace(finder=finder, number=0)
    process: Any = SimpleNamespace(schedule=schedule.steps())
    ranges: Any = None
    watch = RootWatch(process, steps, ranges, SimpleNamespace(nn=SimpleNamespace(Module=Module)))
    watch.hook.search()
    searched = []
    for number in range(1, 10):
        steps.number = number
        watch.settle()
        searched.append(watch.hook.searching)
    assert searched == [number <= last for number in range(1, 10)]
