"""The list of all rules."""

from __future__ import annotations

import functools

from profrun.analysis.rules import (
    bound,
    comm,
    copies,
    cpu_fusion,
    cpu_threads,
    device,
    fusion,
    gradients,
    host,
    host_code,
    layout,
    optimizers,
    precision,
    recording,
    starved,
    throttle,
    variance,
    waits,
)
from profrun.analysis.rules.rule import Rule

MODULES = (
    recording,
    starved,
    host_code,
    cpu_threads,
    bound,
    comm,
    copies,
    device,
    variance,
    throttle,
    precision,
    fusion,
    cpu_fusion,
    gradients,
    optimizers,
    layout,
    host,
    waits,
)
"""The modules that hold rules. A new rule in one of them is in the catalogue without further steps."""


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the modules and of the rules inside them."""
    return tuple(value for module in MODULES for value in vars(module).values() if isinstance(value, Rule))
