"""Judge a recording: the clock of every GPU in every session, and records that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profrun.traces.causality import bounds, clocks, damage, explain, order, sessions
from profrun.traces.causality.model import Clock, Contradiction, Ids, Ints, Judgement
from profrun.traces.causality.recording import Recording
from profrun.traces.causality.repair import moved

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

CODES = (
    "duplicate_gpu_records",
    "duplicate_calls",
    "zero_durations",
    "gpu_duration_unit",
    "gpu_time_unit",
    "stream_displaced",
    "clock_jump",
    "gpu_work_late",
    "call_duration_unit",
    "steps_overlap",
    "far_records",
    "gpu_work_overlaps",
    "launch_order",
)
"""Every code of a contradiction."""


OF_THE_TIMELINE = frozenset(CODES) - {
    "duplicate_gpu_records",
    "duplicate_calls",
    "zero_durations",
    "steps_overlap",
}
"""Codes with which a common offset explains nothing: the times of the GPU are wrong in another way, or the
records belong to other launches."""


def judge(rec: Recording) -> Judgement:
    """What the times of a recording say of themselves; nothing is changed."""
    found = _judge(rec)
    return replace(found, clocks=tuple(clock.unmoved() for clock in found.clocks))


def judge_and_repair(rec: Recording) -> tuple[Judgement, tuple[Ids, Ints, Ints] | None]:
    """Judge a recording and put GPU times that cannot be true on the host's clock; changes ``rec``.

    The moved times are judged again. Where they are not consistent then, or records still contradict others,
    nothing is moved: one offset does not explain what is wrong (``_explains``).

    Returns:
        What was found, with what was added to the times; and the slices that moved with their new starts and
        ends, or None when none moved.
    """
    found = _judge(rec)
    devices = {clock.device for clock in found.clocks if clock.moved}
    if not devices:
        return found, None
    ids, starts, ends = moved(rec, found.clocks)
    before = rec.ts[ids], rec.end[ids]
    rec.ts[ids], rec.end[ids] = starts, ends
    again = _judge(rec.again())
    most = max(max(abs(clock.moved_ns), abs(clock.last_moved_ns)) for clock in found.clocks)
    explained = all(_explains(most, one) for one in again.contradictions)
    if explained and all(clock.verdict == "consistent" for clock in again.clocks if clock.device in devices):
        return Judgement(found.clocks, again.contradictions), (ids, starts, ends)
    rec.ts[ids], rec.end[ids] = before
    return judge(rec), None


def _explains(moved_ns: int, left: Contradiction) -> bool:
    """Whether a move of a GPU's times is sound although this contradiction is left.

    One contradicting record among 100 or more may be left. It may not be left if it ran before work of its
    stream that was launched earlier, and earlier by at least half of the move: then the clock differs between
    records of one stream.
    """
    if left.code not in OF_THE_TIMELINE:
        return True
    rare = left.count == 1 and left.total >= 100
    return rare and (left.code != "launch_order" or (left.amount or 0) < moved_ns / 2)


def _judge(rec: Recording) -> Judgement:
    found: list[Clock] = []
    wrong: list[Contradiction] = []
    for ids in rec.devices.values():
        own, because = _device(rec, ids)
        found += own
        wrong += because
    wrong += [one for check in CHECKS for one in check(rec)]
    return Judgement(
        tuple(sorted(found, key=lambda one: (one.process, one.device, one.session))), tuple(wrong)
    )


def _device(rec: Recording, ids: Ids) -> tuple[list[Clock], list[Contradiction]]:
    """The clocks of one device, and why they do not fit, where that can be told."""
    found = _clocks(rec, ids)
    late = explain.late_work(rec, ids, found)
    if late is not None:
        return found, [late]
    scaled = explain.time_unit(rec, ids, found)
    if scaled is not None:
        return [replace(clock.unmoved(), verdict="contradiction") for clock in found], [scaled]
    if all(clock.verdict != "contradiction" for clock in found):
        return found, []
    stream = explain.one_stream(rec, ids)
    if stream is not None:
        why, rest = stream
        return [clock.unmoved() for clock in _clocks(rec, rest)], [why]
    low, high = bounds.lower(rec, ids), bounds.upper(rec, ids, alone=rec.alone(ids))
    jump = explain.jump(rec, ids, low, high)
    return found, [] if jump is None else [jump]


def _clocks(rec: Recording, ids: Ids) -> list[Clock]:
    """The clock of one device: one for the whole recording where that is possible, else one per session.

    Where files or the numbers of steps show sessions, clocks that differ between these are likelier than a
    drift; where only a pause shows them, a drift is. Sessions of different files are judged apart also
    where one offset fits all of them. So a session whose times are consistent is not moved.
    """
    process = int(rec.process_of(ids[:1])[0])
    low, high = bounds.lower(rec, ids), bounds.upper(rec, ids, alone=rec.alone(ids))
    whole = clocks.clock_of(rec, ids, low, high)
    if whole.verdict in ("consistent", "unknown"):
        return [whole]
    found = sessions.starts(rec, process, np.sort(low.host))
    if whole.verdict == "offset":
        return _apart(rec, ids, found.by_files, low, high) if len(found.by_files) else [whole]
    by_steps = found.by_steps
    for starts, better in ((by_steps, True), (found.by_pauses, whole.verdict == "contradiction")):
        if len(starts) and better:
            apart = _apart(rec, ids, starts, low, high)
            certain = starts is by_steps and whole.verdict == "contradiction"
            if certain or all(clock.verdict in ("consistent", "unknown", "offset") for clock in apart):
                return apart
    return [whole]


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
