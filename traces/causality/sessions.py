"""Profiler sessions of a recording: stretches that the profiler recorded one after the other.

A schedule that repeats gives several sessions in one recording, and each may have clocks of its own. A new
session begins where another file of the process begins, where the numbers of the steps jump, and after a
pause in which no call of the process is recorded and which is long against everything before and after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.traces.causality.model import Ids, Ints
from profrun.traces.causality.recording import Recording

MOST_SESSIONS = 64
"""More than these are no sessions but holes."""
PAUSE = 20
"""A pause is this many times as long as the 99th percentile of the distances between launches, and"""
PAUSE_SHARE = 0.1
"""at least this part of the whole recording."""


@dataclass(frozen=True)
class Starts:
    """Host times at which the sessions of a process begin, without the first; each sorted, ns.

    Attributes:
        by_files: where another file begins: the profiler was started anew.
        by_steps: these, and where the numbers of the steps jump.
        by_pauses: these, and where launches begin again after a long pause.
    """

    by_files: Ints
    by_steps: Ints
    by_pauses: Ints


def starts(rec: Recording, process: int, launches: Ints) -> Starts:
    """Host times at which the sessions of a process begin, without the first.

    Args:
        rec: the recording.
        process: whose.
        launches: start of each launching call of the process, sorted.
    """
    files = _inside(np.array(sorted(rec.session_starts.get(process, ())), np.int64), launches)
    steps = _inside(np.union1d(files, _jumps(rec, process)), launches)
    return Starts(files, steps, _inside(np.union1d(steps, _pauses(launches)), launches))


def _inside(found: Ints, launches: Ints) -> Ints:
    if not len(launches) or len(found) >= MOST_SESSIONS:
        return found[:0]
    return np.asarray(found[(found > launches[0]) & (found <= launches[-1])])


def _jumps(rec: Recording, process: int) -> Ints:
    """Starts of steps whose number does not follow that of the step before."""
    ids, numbers = steps_of(rec, process)
    if len(ids) < 2:
        return np.zeros(0, np.int64)
    jump = (numbers[1:] != numbers[:-1] + 1) & (numbers[1:] != numbers[:-1])
    return np.asarray(rec.ts[ids[1:][jump]])


def steps_of(rec: Recording, process: int) -> tuple[Ids, Ints]:
    """Numbered steps of one kind of name on the thread that has most of them, by start, and their numbers."""
    ids, numbers, family = rec.named.steps, rec.named.step_number, rec.named.step_family
    mine = (rec.process_of(ids) == process) & (rec.device_of(ids) < 0) & (numbers >= 0)
    ids, numbers, family = ids[mine], numbers[mine], family[mine]
    if not len(ids):
        return ids, numbers
    _, which, count = np.unique(
        np.column_stack((rec.track[ids], family)), axis=0, return_inverse=True, return_counts=True
    )
    mine = which.reshape(-1) == np.argmax(count)
    ids, numbers = ids[mine], numbers[mine]
    order = np.argsort(rec.ts[ids], kind="stable")
    return ids[order], numbers[order]


def _pauses(launches: Ints) -> Ints:
    """Times after which launches begin again."""
    if len(launches) < 3:
        return launches[:0]
    gaps = np.diff(launches)
    usual = float(np.partition(gaps, int(0.99 * (len(gaps) - 1)))[int(0.99 * (len(gaps) - 1))])
    least = max(PAUSE * usual, PAUSE_SHARE * float(launches[-1] - launches[0]))
    return launches[1:][gaps > least]
