"""What ``profrun improve`` found, as text: ``improvement_parts``, and the words of its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from profrun.contract.changes import parse, with_own
from profrun.contract.units import (
    change_text,
    counted,
    elapsed_text,
    percent_text,
    signed_change_interval_text,
    signed_change_text,
    time_text,
)
from profrun.reports.terminal_layout import Part, Prose, Table
from profrun.reports.tones import toned, tones_of
from profrun.store.improvement import ExperimentResult, ExperimentState, Improvement

_ORDER: tuple[ExperimentState, ...] = get_args(ExperimentState)
NOTHING = "no finding asks for an experiment"
START_TOLD_NS = 2_000_000_000
"""A start that takes longer by less is not told."""


def ranked(experiments: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """The experiments in the order in which they are shown: what helped first, the largest gain first."""
    return sorted(experiments, key=lambda one: (_ORDER.index(one.state), one.ratio or 1.0, one.name))


def improvement_parts(found: Improvement) -> list[Part]:
    """The answer first, then a row for each experiment, then how to keep what helped."""
    parts: list[Part] = [Prose(line, indent="  ", toned=tones_of("proven")) for line in answer(found)]
    if found.experiments:
        header = ("experiment", "promised", "measured", "interval 95 %", "verdict")
        shown = ranked(found.settled)
        rows = [(one.name, *cells(one), toned(one.state)) for one in shown]
        parts += ["", Table(header, rows, right=(1, 2, 3))]
        parts += [Prose(f"{one.name}: {text}", indent="  ") for one in shown for text in told(one)]
    kept = permanent(found)
    if kept:
        parts += ["", Prose(label="To keep what helped")]
        parts += [Prose(f"{text}: {line}", indent="  ", hang=4) for text, line in kept]
    return parts


def answer(found: Improvement) -> list[str]:
    """What was gained, in a few sentences."""
    tried = [one for one in found.settled if one.state not in ("not tried", "planned")]
    helped = [one for one in tried if one.state == "proven"]
    took = f"{counted(len(tried), 'experiment')}, {len(helped)} proven to help"
    together = found.together
    if not found.experiments:
        return [f"{NOTHING}, so nothing was tried"]
    if together is None:
        return [f"{took}; step {time_text(found.step_ns)}"]
    lines = [_of_together(together)]
    if together.same.text:
        lines.append(together.same.text)
    lines.append(took)
    if found.left_out:
        lines.append(f"left out, because a better one excludes it: {', '.join(found.left_out)}")
    return lines


def next_command(found: Improvement) -> str | None:
    """The command that goes on: from what helped, or with what was not tried; None where all was tried."""
    if found.improved:
        return f"profrun improve {found.run} --variant {found.improved}"
    names = [_name_to_ask(one) for one in found.experiments if one.state == "not tried"]
    return f"profrun improve {found.run} --only {','.join(names)}" if names else None


def _name_to_ask(one: ExperimentResult) -> str:
    """The name with which ``--only`` asks for an experiment."""
    return one.changes[0] if len(one.changes) == 1 and not one.values else one.name


def _of_together(together: ExperimentResult) -> str:
    """What everything that helped gives at once, one sentence."""
    with_ = " and ".join(together.changes) or together.name
    if together.ratio is None:
        return f"{with_} together: {together.state}{', ' if together.why else ''}{together.why}"
    rounds = f"{counted(together.rounds, 'round')} of new trials"
    changed = f"{change_text(together.ratio)} ({signed_change_interval_text(_pair(together))}, {rounds})"
    step = f"step {time_text(together.base_ns)} -> {time_text(together.step_ns)}"
    return f"{step}, {changed}, {together.state}, with {with_}"


def cells(one: ExperimentResult) -> tuple[str | None, str | None, str | None]:
    """What was promised, what was measured, and its interval."""
    promised = None if one.promised is None else f"<= {percent_text(one.promised)}"
    if one.ratio is None:
        return promised, None, None
    return promised, signed_change_text(one.ratio), signed_change_interval_text(_pair(one))


def told(one: ExperimentResult) -> list[str]:
    """What else is to be said of an experiment, a sentence each."""
    found = []
    if one.start_ns is not None and one.start_ns >= START_TOLD_NS and one.ratio is not None:
        found.append(
            f"{elapsed_text(one.start_ns / 1e9)} longer outside of its steady steps (compiling, starting)"
        )
    if one.state == "not the same":
        found.append(f"faster, but {one.same.text}")
    elif one.why:
        found.append(one.why)
    elif one.state == "proven" and one.same.verdict == "unknown" and one.same.text:
        found.append(one.same.text)
    return found


def permanent(found: Improvement) -> list[tuple[str, str]]:
    """(change, the line of code or variable that makes it permanent) of everything that ``improved`` has.

    That is what was proven now, and before it what the base had already, unless a better change excludes it.
    """
    together = found.together
    if together is None or together.state != "proven":
        return []
    changes = with_own(found.base_changes, together.changes)
    lines = [
        (text if text in together.changes else f"{text} (in the base)", parse(text).permanent)
        for text in changes
    ]
    if together.values:
        lines.append(("values", ", ".join(f"{name}: {value}" for name, value in together.values.items())))
    return lines


def _pair(one: ExperimentResult) -> tuple[float, float] | None:
    return None if one.interval is None else (one.interval[0], one.interval[1])
