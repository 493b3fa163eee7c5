"""``--per``: divide step time by an amount of work, so that sides with different amounts can be compared.

``divisors`` is given what to divide by and the trials of both sides, and returns the amount of each side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.errors import UsageError

_PAIR = re.compile(r"^([0-9.eE+]+)[,:]([0-9.eE+]+)$")


def divisors(per: str | None, a: Sequence[ComparedTrial], b: Sequence[ComparedTrial]) -> tuple[float, float]:
    """Amount of work per step of each side; (1, 1) without ``per``.

    Args:
        per: 'token' (rows of the first matrix multiply of the step), 'gflop' (matrix work), the name of a
            variant value, a product of such names ('batch*seq'), or the two amounts themselves
            ('2048,65536').

    Raises:
        UsageError: the amount of a side is not known.
    """
    if per is None:
        return 1.0, 1.0
    pair = _PAIR.match(per.replace(" ", ""))
    if pair:
        found = float(pair[1]), float(pair[2])
        if min(found) <= 0:
            raise UsageError(f"--per {per}: both amounts must be above 0")
        return found
    return _amount(per, a[0], "a"), _amount(per, b[0], "b")


def _amount(per: str, trial: ComparedTrial, side: str) -> float:
    total = 1.0
    for name in per.split("*"):
        value = _one(name.strip(), trial)
        if value is None or value <= 0:
            known = sorted(
                key for key, value in trial.conditions.values.items() if isinstance(value, (int, float))
            )
            raise UsageError(
                f"--per {per}: side {side} ({trial.conditions.label}) does not tell its {name} per step",
                why=f"it declares {', '.join(known) or 'no values'}",
                fix="give the two amounts: --per 2048,65536",
            )
        total *= value
    return total


def _one(name: str, trial: ComparedTrial) -> float | None:
    declared = trial.conditions.values.get(name)
    if isinstance(declared, (int, float)) and not isinstance(declared, bool):
        return float(declared)
    if name in ("token", "tokens", "row", "rows"):
        return float(trial.work.tokens) if trial.work.tokens else None
    if name in ("flop", "gflop"):
        flops = trial.work.matrix_flops
        return None if not flops else (flops / 1e9 if name == "gflop" else flops)
    if name in ("sample", "samples"):
        value = trial.conditions.values.get("batch", trial.conditions.values.get("batch_size"))
        return float(value) if isinstance(value, (int, float)) else None
    return None
