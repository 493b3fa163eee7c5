"""Whether a changed program computes the same, in one short text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from profrun.contract.units import percent_text

if TYPE_CHECKING:
    from profrun.analysis.compare.same_result import SameResult
    from profrun.contract.results import ResultKind

_NAMES: dict[ResultKind, str] = {
    "loss": "loss",
    "parameters": "parameters",
    "output": "output",
    "none": "result",
}
_PERCENT = 1e-3
"""Differences from this on are said in per cent."""


def same_result_text(found: SameResult, *, faster: bool = False) -> str:
    """``loss within 2e-4``, or ``not the same: the loss differs by 3.1 % at value 7 (tolerance 0.1 %)``.

    Args:
        faster: the changed program is proven to be faster, which is said where it is not the same.
    """
    name = _NAMES[found.kind]
    if found.verdict == "same":
        alike = f"{name} within {_size(found.difference)}" if found.difference else f"{name} exactly the same"
        return alike + _first(found)
    if found.verdict == "differs":
        return f"{'faster, but ' * faster}not the same: {_difference(found, name)}"
    return f"{'faster, but ' * faster}it is not known whether it computes the same: {_unknown(found, name)}"


def _difference(found: SameResult, name: str) -> str:
    if found.why == "not-finite":
        return f"the {name} is not finite {_place(found)}"
    if found.why == "base-not-finite":
        return f"the {name} of the base is not finite {_place(found)}, and this one is"
    if found.why == "varies":
        return f"its own trials differ, the {name} by {_size(found.difference)} {_place(found)}"
    return f"{_distance(found, name)} (tolerance {_size(found.tolerance)})"


def _unknown(found: SameResult, name: str) -> str:
    if found.why == "nothing-seen":
        return "no loss, no parameters and no output were seen that can be compared"
    if found.why == "kinds-differ":
        return "one of the two showed losses, parameters or outputs, and the other one another of these"
    if found.why == "says-little":
        moved = f"by {_size(found.difference)} {_place(found)}"
        return f"the sums of the parameters move differently ({moved}), which may be rounding"
    if found.why == "base-once":
        return f"{_distance(found, name)}, which may be chance, because the base ran once: repeat it"
    differs = f" (by {_size(found.difference)} {_place(found)})" if found.difference is not None else ""
    return (
        f"the program computes something else in each run{differs}: it has random numbers without a fixed "
        "seed, or kernels that add in no fixed order"
    )


def _first(found: SameResult) -> str:
    """That only the first values were compared."""
    if found.first is None:
        return ""
    return f" in its first {found.first} values; later ones differ between runs of the same program"


def _distance(found: SameResult, name: str) -> str:
    verb = "differ" if found.kind == "parameters" else "differs"
    return f"the {name} {verb} by {_size(found.difference)} {_place(found)}"


def _place(found: SameResult) -> str:
    return f"at value {found.place}" + (f" of rank {found.rank}" if found.rank else "")


def _size(share: float | None) -> str:
    """A relative difference, rounded up to two digits: ``3.1 %``, ``2e-4``."""
    if not share:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    rounded = math.ceil(share / unit - 1e-6) * unit  # 1e-6: what is left of a number such as 2e-4
    if rounded >= _PERCENT:
        return percent_text(rounded)
    digits, _, exponent = f"{rounded:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"
