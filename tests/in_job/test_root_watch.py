"""When root modules are no longer looked for."""

from __future__ import annotations

from collections.abc import Iterator
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


class Called:
    """A module with a parameter, and a class of its own, whose ``__call__`` the hook may exchange."""

    training = False

    def __call__(self, *args: object, **kwargs: object) -> str:
        """What torch's own function does."""
        return "output"

    def parameters(self) -> Iterator[int]:
        """One."""
        yield 1


@pytest.mark.parametrize("mode", ["auto", "explicit"])
def test_roots_are_looked_for_as_long_as_somebody_wants_what_they_return(mode: str) -> None:
    """Where steps are explicit, roots are otherwise settled after the first step, or after some calls."""
    returned: list[object] = []
    results: Any = SimpleNamespace(wants_outputs=True, returned=returned.append)
    finder = SimpleNamespace(
        undecided=False,
        how="explicit",
        minds_modules=False,
        ends_with_calls=False,
        called=lambda *_, **__: None,
    )
    steps: Any = SimpleNamespace(finder=finder, number=9)
    config = SimpleNamespace(ranges=SimpleNamespace(steps=mode))
    process: Any = SimpleNamespace(config=config, ignored=lambda: False, work={"shapes": ""})
    ranges: Any = SimpleNamespace(root_called=lambda *_: None)
    torch = SimpleNamespace(nn=SimpleNamespace(Module=Called), is_grad_enabled=lambda: False)
    watch = RootWatch(process, steps, ranges, torch, results=results)
    watch.hook.search()
    net = Called()
    for _ in range(6):
        assert net() == "output"
        if mode == "auto":
            watch.settle()
        assert watch.hook.searching
    results.wants_outputs = False
    for _ in range(6):
        net()
        if mode == "auto":
            watch.settle()
    assert not watch.hook.searching
    assert returned[:6] == ["output"] * 6
