"""Judge a recording: the clock of every GPU in every session, and records that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profrun.traces.causality import bounds, clocks, damage, order, sessions, units
from profrun.traces.causality.model import Clock, Contradiction, Ids, Ints, Judgement
from profrun.traces.causality.recording import Recording
from profrun.traces.causality.repair import moved, repaired

CHECKS = (
    damage.duplicates,
    damage.zero_durations,
    damage.duration_unit,
    damage.call_unit,
    damage.steps,
    damage.far_records,
    order.work_overlaps,
    order.launch_order,
)
"""What looks for records that contradict each other."""


def judge(rec: Recording) -> Judgement:
    """What the times of a recording say of themselves; nothing is changed."""
    found: list[Clock] = []
    wrong: list[Contradiction] = []
    for ids in rec.devices.values():
        own = _clocks(rec, ids)
        scaled = units.time_unit(rec, ids, own)
        if scaled is not None:
            wrong.append(scaled)
            own = [replace(clock, verdict="contradiction") for clock in own]
        found += own
    wrong += [one for check in CHECKS for one in check(rec)]
    return Judgement(
        tuple(sorted(found, key=lambda one: (one.process, one.device, one.session))), tuple(wrong)
    )


def judge_and_repair(rec: Recording) -> tuple[Judgement, tuple[Ids, Ints, Ints] | None]:
    """Judge a recording and put GPU times that cannot be true on the host's clock; changes ``rec``.

    The moved times are judged again. Where they are not consistent then, nothing is moved.

    Returns:
        What was found, with what was added to the times; and the slices that moved with their new starts and
        ends, or None when none moved.
    """
    found = judge(rec)
    clocks_now = tuple(repaired(clock) for clock in found.clocks)
    if not any(clock.moved for clock in clocks_now):
        return found, None
    ids, starts, ends = moved(rec, clocks_now)
    before = rec.ts[ids], rec.end[ids]
    rec.ts[ids], rec.end[ids] = starts, ends
    again = judge(rec.again())
    wrong = {clock.device for clock in again.clocks if clock.verdict not in ("consistent", "unknown")}
    if wrong & {clock.device for clock in clocks_now if clock.moved}:
        rec.ts[ids], rec.end[ids] = before
        return found, None
    return Judgement(clocks_now, again.contradictions), (ids, starts, ends)


def _clocks(rec: Recording, ids: Ids) -> list[Clock]:
    """The clock of one device: one for the whole recording where that is possible, else one per session."""
    process = int(rec.process_of(ids[:1])[0])
    low, high = bounds.lower(rec, ids), bounds.upper(rec, ids, alone=rec.alone(ids))
    whole = clocks.clock_of(rec, ids, low, high)
    if whole.verdict in ("consistent", "unknown", "offset"):
        return [whole]
    starts = sessions.starts(rec, process, np.sort(low.host))
    if not len(starts):
        return [whole]
    apart = _apart(rec, ids, starts, low, high)
    fits = all(clock.verdict != "contradiction" for clock in apart)
    return apart if fits or whole.verdict == "contradiction" else [whole]


def _apart(rec: Recording, ids: Ids, starts: Ints, low: bounds.Bounds, high: bounds.Bounds) -> list[Clock]:
    """The clock of one device in each of its sessions."""
    owner = np.searchsorted(starts, rec.ts[rec.launch[ids]], side="right")
    below, above = (np.searchsorted(starts, one.host, side="right") for one in (low, high))
    return [
        clocks.clock_of(
            rec,
            ids[owner == session],
            low.where(below == session),
            high.where(above == session),
            session=session,
            begins=int(starts[session - 1]) if session else None,
        )
        for session in range(len(starts) + 1)
        if (owner == session).any()
    ]
