"""Whether two recordings saw the same kernels, as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import UNKNOWN, counted, percent_text, rate_text, signed_time_text, time_text
from profrun.reports.compare_sentence import SIDE_WIDTH, side_legend
from profrun.reports.terminal_layout import (
    PLAIN,
    Part,
    Prose,
    Style,
    Table,
    cut,
    cut_apart,
    lay_out,
)

if TYPE_CHECKING:
    from profrun.analysis.compare.kernel_agreement import SeenKernel, SeenKernels, SeenSide
    from profrun.contract.denominator import Denominator

NAME_WIDTH = 60
"""Characters of a name in a row; --json has whole names."""
SEEN_BY = {"both": "both", "a": "a only", "b": "b only"}


def seen_kernels_text(found: SeenKernels, style: Style = PLAIN, *, top: int = 20) -> str:
    """The whole answer for a terminal.

    Args:
        found: the kernels of both sides.
        style: width and colours.
        top: rows of kernels that are alike; 0 for all. Differences are always shown.
    """
    parts: list[Part] = [answer_line(found)]
    parts += [Prose(str(doubt), "doubt") for doubt in found.doubts]
    parts += [_side_line(letter, side) for letter, side in zip("ab", found.sides, strict=True)]
    if found.kernels:
        parts += ["", f"kernels {_of(found).per}, differences first", *_table(found, top)]
    return lay_out(parts, style)


def _of(found: SeenKernels) -> Denominator:
    """What counts and times are of: sides that differ have no answer, and are told apart by their lines."""
    return found.sides[0].denominator


def answer_line(found: SeenKernels) -> str:
    """The answer in one line: the same kernels or not, how many, and their time on both sides."""
    a, b = found.sides
    both = f"{cut(a.name, SIDE_WIDTH)} and {cut(b.name, SIDE_WIDTH)}"
    per, rate = _of(found).per, _of(found).rate
    times = f"they take {time_text(a.kernel_ns)} -> {time_text(b.kernel_ns)} {per}"
    if found.answer == "same":
        names = f"{counted(len(found.kernels), 'name')}, {_launches(a.kernels)} {rate}"
        return f"{both} saw the same kernels: {names} on both sides; {times}"
    differ = sum(not one.equal for one in found.kernels)
    counts = f"{differ} of {counted(len(found.kernels), 'name')} are not launched as often"
    launches = f"{_launches(a.kernels)} -> {rate_text(b.kernels)} {rate}"
    if found.answer == "different":
        return f"{both} did not see the same kernels: {counts}; {launches}; {times}"
    return f"it is not known whether {both} saw the same kernels; {counts}; {launches}"


def _side_line(letter: str, side: SeenSide) -> str:
    of = side.denominator
    steps = of.counted(side.steps) if of.several else f"no steps: {of.whole} counts as one"
    copies = f"{rate_text(side.copies)} copies and fills {of.rate} take {time_text(side.copy_ns)}"
    text = f"{side_legend(letter, side.name, side.labels)} ({side.tool}, {steps}); {copies}"
    if side.outside_share >= 0.001:
        share = percent_text(side.outside_share)
        whole = "whole steps" if of.several else of.the
        text += f"; {share} of its GPU time is outside of {whole} and is not compared"
    return text


def _table(found: SeenKernels, top: int) -> list[Part]:
    differ = [one for one in found.kernels if not one.equal]
    alike = [one for one in found.kernels if one.equal]
    shown = [*differ, *(alike[:top] if top else alike)]
    header = ("seen by", "kernel", "a calls", "b calls", "a time", "b time", "b - a")
    names = cut_apart([one.label for one in shown], NAME_WIDTH)
    rows = [_row(one, name) for one, name in zip(shown, names, strict=True)]
    parts: list[Part] = [Table(header, rows, right=(2, 3, 4, 5, 6))]
    left_out = found.kernels[len(shown) :]
    if left_out:
        times = time_text(sum(one.a_ns for one in left_out)), time_text(sum(one.b_ns for one in left_out))
        rest = f"a {times[0]} -> b {times[1]} {_of(found).per}"
        parts.append(f"  ... and {len(left_out)} more that are launched as often, {rest} (--top 0 shows all)")
    total = signed_time_text(found.sides[1].kernel_ns - found.sides[0].kernel_ns)
    why = "the sides are separate runs, so their times differ a little"
    parts.append(f"  all kernels: b - a is {total} {_of(found).per} ({why})")
    return parts


def _row(one: SeenKernel, name: str) -> tuple[str, ...]:
    calls = (rate_text(one.a_calls), rate_text(one.b_calls))
    times = (time_text(one.a_ns or None), time_text(one.b_ns or None))
    delta = signed_time_text(one.delta_ns) if one.seen_by == "both" else UNKNOWN
    return (SEEN_BY[one.seen_by], name, *calls, *times, delta)


def _launches(number: float) -> str:
    return f"{rate_text(number)} launch{'es' * (number != 1)}"
