"""A comparison in one line, for every screen and page: both sides in the order given, then what is proven.

``change_sentence`` is given the numbers and is the one owner of the words; ``verdict_line`` and
``pair_sentence`` are given a comparison and a pair of a run. ``go_on`` returns the commands that a refusal
ends with.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.analysis.compare.comparability import ALLOWABLE
from profrun.analysis.compare.model import is_too_wide
from profrun.analysis.compare.ratio import THRESHOLD
from profrun.contract.denominator import STEP
from profrun.contract.units import change_interval_text, change_text, signed_change_text, some_of, time_text
from profrun.reports.terminal_layout import Command, cut

if TYPE_CHECKING:
    from profrun.analysis.compare.model import Comparison, Interval, Verdict
    from profrun.store.run_result import PairResult

SIDE_WIDTH = 32
"""Characters of the name of a side."""
NOTED_START = 0.01
"""Part of the run time under a profiler from which the start of the profiler is named beside it."""


def change_sentence(
    names: tuple[str, str],
    step_ns: tuple[float, float],
    verdict: Verdict | str,
    ci95: Interval | None,
    trials: Sequence[int],
    *,
    threshold: float = THRESHOLD,
    per: str = STEP.per,
    ratio: float | None = None,
) -> str:
    """``eager 339.9 us -> compiled 247.5 us per step: 27.2 % faster [24.1 to 30.3 %], 3 + 3 trials``.

    Args:
        names: of both sides; the base first.
        step_ns: step time of each, ns; above 0.
        verdict: faster, slower, same or inconclusive.
        ci95: interval of the ratio of the step times, b over a; None with one trial on a side.
        trials: of each side.
        threshold: practical threshold as a fraction.
        per: what the times are of: 'per step', 'of the run', 'per token'.
        ratio: b over a, as the comparison states it with its interval: drift is taken out of it. None: of
            both step times.
    """
    times = (f"{cut(name, SIDE_WIDTH)} {time_text(ns)}" for name, ns in zip(names, step_ns, strict=True))
    ratio = step_ns[1] / step_ns[0] if ratio is None else ratio
    return f"{' -> '.join(times)} {per}{_said(verdict, ratio, ci95, trials, threshold)}"


def _said(
    verdict: Verdict | str, ratio: float, ci95: Interval | None, trials: Sequence[int], threshold: float
) -> str:
    """What may be said about the change, by the verdict and its interval."""
    counts = f"{' + '.join(map(str, trials))} trials"
    if ci95 is None:
        return f" ({signed_change_text(ratio)}), no verdict from {counts}"
    if verdict == "inconclusive" and is_too_wide(ci95):
        return f", no verdict: the trials of one side differ too much ({counts})"
    change, sure = change_text(ratio), f"[{change_interval_text(ci95)}], {counts}"
    least = f"{100 * threshold:g} %"
    if verdict == "same":
        return f": the same within {least} {sure}"
    if verdict in ("faster", "slower"):
        return f": {change} {sure}"
    if ci95[0] <= 1 <= ci95[1]:
        return f" ({signed_change_text(ratio)}), no difference proven {sure}"
    return f": {change} {sure}; it is not proven that this is as much as {least}"


def verdict_line(comparison: Comparison, names: tuple[str, str] | None = None) -> str:
    """The answer in one line: both sides with their step times, and what is proven about the difference.

    Args:
        comparison: the comparison.
        names: of the sides; by default what tells them apart.
    """
    if comparison.verdict == "incomparable":
        stops = "; ".join(str(one) for one in comparison.reasons if one.stops)
        return f"{refusal(comparison, names)}: {stops}"
    a, b = comparison.sides
    return change_sentence(
        names or (a.name, b.name),
        (a.step_ns, b.step_ns),
        comparison.verdict,
        comparison.ci95,
        comparison.trials,
        threshold=comparison.threshold,
        per=comparison.rate,
        ratio=comparison.ratio,
    )


def pair_sentence(pair: PairResult, names: tuple[str, str] | None = None) -> str:
    """The same for two points of a run; ``names`` are the points' unless given."""
    if pair.a_ns is None or pair.b_ns is None or not pair.a_ns:
        return pair.text
    ci95 = (pair.ci95[0], pair.ci95[1]) if pair.ci95 else None
    return change_sentence(
        names or (pair.a, pair.b),
        (pair.a_ns, pair.b_ns),
        pair.verdict,
        ci95,
        pair.trials,
        per=pair.denominator.per,
        ratio=pair.ratio,
    )


def start_text(start_ns: int | None, run_ns: float | None) -> str | None:
    """``1.87 s``; None where the start is no visible part of the run under the profiler."""
    if not start_ns or not run_ns or start_ns < NOTED_START * run_ns:
        return None
    return time_text(start_ns)


def refusal(comparison: Comparison, names: tuple[str, str] | None = None) -> str:
    """The step times as they are, and that there is no verdict; the reasons follow."""
    a, b = comparison.sides
    alike = a.denominator == b.denominator
    told = [
        f"{cut(name, SIDE_WIDTH)} {time_text(side.step_ns or None)}"
        f"{'' if alike else f' {side.denominator.per}'}"
        for name, side in zip(names or (a.name, b.name), (a, b), strict=True)
    ]
    return f"{', '.join(told)}{f' {a.denominator.per}' if alike else ''}, no verdict"


def side_legend(letter: str, name: str, labels: Sequence[str]) -> str:
    """What the letter of a side stands for in tables: ``a eager: 000-eager-none-r1``."""
    named = name not in ("", letter) and tuple(labels) != (name,)
    return f"{letter} {cut(name, SIDE_WIDTH) if named else ''}".rstrip() + f": {some_of(labels)}"


@dataclass(frozen=True)
class Called:
    """A command as the user gave it, so that the one that goes on can be shown whole.

    Attributes:
        sides: its words, ``vs`` between the sides.
        runs: its folder of runs, where it was given.
        options: its further options, which only ``profrun compare`` has.
    """

    sides: Sequence[str]
    runs: str | None = None
    options: Sequence[str] = ()

    def line(self, *more: str, command: str = "compare", options: bool = True) -> str:
        """The command with more words at its end; without its options where it is another question."""
        kept = (*(("--runs", self.runs) if self.runs else ()), *(self.options if options else ()))
        return shlex.join(["profrun", command, *self.sides, *kept, *more])


def go_on(comparison: Comparison, called: Called | None) -> list[Command]:
    """The commands with which one can go on after a refusal; none where nothing was refused.

    Args:
        comparison: the comparison.
        called: what the user called; None where only the option can be named.
    """
    codes = list(dict.fromkeys(one.code for one in comparison.reasons if one.stops))
    if not codes:
        return []
    if not set(codes) <= set(ALLOWABLE):
        alone = "--same-kernels" if called is None else called.line("--same-kernels", options=False)
        return [Command(alone, "to compare the kernels alone")]
    allow = [word for code in codes for word in ("--allow", code)]
    line = " ".join(allow) if called is None else called.line(*allow)
    anyway = Command(line, "to compare them all the same")
    found = []
    if called is not None and set(codes) <= {"work", "ranks"} and (amount := _amount(comparison)):
        found.append(Command(called.line("--per", amount), "to divide the times by the work"))
    if called is not None and codes == ["blocking"]:
        other = called.line(command="blocking", options=False)
        found.append(Command(other, "if launch blocking is the question"))
    return [*found, anyway]


def _amount(comparison: Comparison) -> str | None:
    """The amount of work that is known of both sides, by the word of ``--per``."""
    works = [side.work for side in comparison.sides]
    if all(work.tokens for work in works):
        return "token"
    return "gflop" if all(work.matrix_flops for work in works) else None
