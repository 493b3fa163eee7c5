"""A comparison in one line: the two sides in the order of the tables, and what may be said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.analysis.compare.comparability import ALLOWABLE
from profrun.contract.units import change_interval_text, change_text, counted, percent_text, time_text
from profrun.reports.terminal_layout import cut

if TYPE_CHECKING:
    from profrun.analysis.compare.model import Comparison, StepRatio

SIDE_WIDTH = 32
"""Characters of the name of a side."""


def verdict_line(comparison: Comparison) -> str:
    """The answer in one line: both sides with their step times, and what is proven about the difference."""
    a, b = comparison.sides
    if comparison.verdict == "incomparable":
        stops = "; ".join(str(one) for one in comparison.reasons if one.stops)
        return f"{refusal(comparison)}: {stops}"
    times = (
        f"{side_name('a', a.name)} {time_text(a.step_ns)}, {side_name('b', b.name)} {time_text(b.step_ns)}"
    )
    return f"{times}: {_said(comparison, comparison.per or 'step')}"


def refusal(comparison: Comparison) -> str:
    """That the sides are not compared, without the reasons."""
    a, b = comparison.sides
    return f"{side_name('a', a.name)} and {side_name('b', b.name)} are not compared"


def side_name(letter: str, name: str) -> str:
    """``a eager``: the letter of a side, and what tells it from the other one."""
    return f"{letter} {cut(name, SIDE_WIDTH)}".rstrip()


def _said(found: Comparison, per: str) -> str:
    """What may be said about side b, by the verdict and its interval."""
    change = change_text(found.ratio)
    if found.ci95 is None:
        return f"b took {change} per {per}, but {trials_text(found)} cannot prove a difference"
    if found.too_wide:
        return f"nothing can be said about the time per {per}: trials of one side differ too much"
    sure = f"95 % interval {change_interval_text(found.ci95)}, {trials_text(found)}"
    if found.verdict == "same":
        limit = percent_text(found.threshold)
        return f"both take the same time per {per}, within {limit} ({sure})"
    text = f"b takes {change} per {per} ({sure})"
    if found.verdict in ("faster", "slower"):
        return text
    if found.ci95[0] <= 1 <= found.ci95[1]:
        return f"no difference proven: {text}"
    return f"{text}; it is not proven that this is as much as {percent_text(found.threshold)}"


def trials_text(found: StepRatio) -> str:
    """``3 trials per side``, ``1 and 3 trials``."""
    a, b = found.trials
    if a != b:
        return f"{a} and {b} trials"
    return f"{counted(a, 'trial')} per side"


def go_on(comparison: Comparison, command: str | None) -> str | None:
    """How to compare in spite of what stops the comparison; None where nothing stops it, or nothing helps.

    Args:
        command: what the user called, so that the whole new command can be shown.
    """
    codes = list(dict.fromkeys(one.code for one in comparison.reasons if one.stops))
    if not codes or not set(codes) <= set(ALLOWABLE):
        return None
    options = " ".join(f"--allow {code}" for code in codes)
    if command is None:
        return f"`{options}` compares them all the same"
    return f"to compare them all the same: {command} {options}"
