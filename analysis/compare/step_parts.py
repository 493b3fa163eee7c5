"""What the mean typical step is made of: ``step_parts`` is given two sides and returns parts of the step.

The parts add up to the step on each side:

* gpu: sum of the GPU work that the step launched;
* concurrent: the part of that sum that ran at the same time as other work of the step (negative);
* no own GPU work: the rest, in which nothing that this step launched ran.

Without a GPU the step is one part: host, or step where a hook measured it.
"""

from __future__ import annotations

from collections.abc import Callable

from profrun.analysis.compare.model import Part
from profrun.analysis.compare.sides import Side, Sides


def step_parts(sides: Sides) -> tuple[Part, ...]:
    """The parts of the mean typical step of each side, ns per amount of work."""
    measures = {trial.conditions.measure for side in sides for trial in side.trials}
    if not measures & {"span", "recording"}:
        whole = sides[0].denominator.of
        return (_part("host" if measures == {"host"} else whole, sides, lambda side: side.typical_step_ns),)
    return (
        _part("gpu", sides, _gpu),
        _part("concurrent", sides, lambda side: _busy(side) - _gpu(side)),
        _part("no own GPU work", sides, lambda side: side.typical_step_ns - _busy(side)),
    )


def _part(name: str, sides: Sides, ns: Callable[[Side], float]) -> Part:
    a, b = (ns(side) / side.per for side in sides)
    return Part(name, a, b, b - a)


def _gpu(side: Side) -> float:
    return side.mean(lambda sample: sample.gpu_ns)


def _busy(side: Side) -> float:
    return side.mean(lambda sample: sample.busy_ns)
