"""The hook's ``steps.json`` -> table ``step_times``: every step of the run, recorded or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from profrun.collectors.axis import LIMIT, on_axis
from profrun.contract import json_text
from profrun.contract.codec import from_json
from profrun.contract.steps import FORMAT, StepsFile, StepTime
from profrun.traces.schema import STEP_CLOCKS, WINDOW_PARTS
from profrun.traces.writer import TraceWriter


def add_files(writer: TraceWriter, files: Sequence[Path]) -> Mapping[int, str]:
    """Add the steps of these files to a trace that a reader has made; returns process -> host, as they say.

    A file that is damaged, and steps that have no place in the trace, are rows of ``issues``.
    """
    known: list[StepsFile] = []
    damaged: list[str] = []
    for file in files:
        try:
            value = json_text.read(file, follow=True)
            if not isinstance(value, dict) or value.get("format") != FORMAT:
                raise ValueError(f"it is not of format {FORMAT}")
            known.append(from_json(StepsFile, value))
        except (OSError, ValueError) as error:
            damaged.append(f"{file.parent.name}/{file.name}: {error}")
    writer.issue(
        "steps_unreadable",
        len(damaged),
        "the times of the steps outside of the window are not known: these files are damaged",
        damaged[0] if damaged else None,
    )
    return add(writer, known)


def add(writer: TraceWriter, documents: Sequence[StepsFile]) -> Mapping[int, str]:
    """Add the steps of these ranks to a trace that a reader has made; returns process -> host, as they say.

    A rank's process is the one with its rank and pid; else the one with its pid where ranks are guessed
    (pids in containers differ from those that the host counts, so that the rank counts for more); else the
    first of its rank, one with a GPU before one without. Times become those of the trace (``on_axis``).
    """
    documents = sorted(documents, key=lambda one: (one.rank, one.pid))
    _name_hosts(writer, documents)
    if writer.meta["replayed"] or not documents:
        return {}  # a replayed recording has no time axis that a step could have a place on
    shifts = [on_axis(writer.meta, one.anchor) for one in documents]
    owners = _processes(writer, documents)
    lost = 0
    dropped = 0
    for document, shift, process in zip(documents, shifts, owners, strict=True):
        if process is None:
            lost += bool(document.steps)
        elif shift is not None:
            dropped += _insert(writer, document, shift, process)
    writer.issue(
        "steps_without_axis",
        sum(shift is None and bool(one.steps) for shift, one in zip(shifts, documents, strict=True)),
        "the trace's times are not tied to the host's clock: the steps outside of the window are not in it",
    )
    writer.issue(
        "steps_without_process", lost, "no process of the trace is the rank that left these times of steps"
    )
    writer.issue("step_time_damaged", dropped, "steps whose number or time is impossible, or comes twice")
    pairs = zip(owners, documents, strict=True)
    return {process: one.host for process, one in pairs if process is not None and one.host}


def _name_hosts(writer: TraceWriter, documents: Sequence[StepsFile]) -> None:
    """Name the host of processes whose profiler does not, by their rank; a guessed rank tells nothing."""
    known = {one.rank: one.host for one in documents if one.host}
    # One statement: a trial may have hundreds of ranks.
    writer.con.execute(
        "UPDATE processes SET host = k.host "
        "FROM (SELECT unnest($ranks::BIGINT[]) AS rank, unnest($hosts::VARCHAR[]) AS host) k "
        "WHERE processes.host IS NULL AND processes.rank = k.rank AND NOT coalesce(rank_guessed, true)",
        {"ranks": list(known), "hosts": list(known.values())},
    )


def _processes(writer: TraceWriter, documents: Sequence[StepsFile]) -> list[int | None]:
    """The process of each document; no process is that of two."""
    rows = writer.con.execute(
        "SELECT process, pid, rank, coalesce(rank_guessed, true), "
        "process IN (SELECT process FROM devices) FROM processes ORDER BY process"
    ).fetchall()
    taken: set[int] = set()
    found: list[int | None] = [None] * len(documents)
    for sure in (True, False):
        for place, one in enumerate(documents):
            if found[place] is not None:
                continue
            grades = []
            for process, pid, rank, guessed, gpu in rows:
                same_pid, same_rank = pid == one.pid, rank == one.rank
                fits = same_pid and (same_rank or guessed) if sure else same_rank
                if process not in taken and fits:
                    grades.append((not same_rank, not gpu, process))
            if grades:
                found[place] = min(grades)[2]
                taken.add(min(grades)[2])
    if found == [None] and len(rows) == 1:
        return [rows[0][0]]
    return found


def _insert(writer: TraceWriter, document: StepsFile, shift: int, process: int) -> int:
    """Insert the rows of one rank; returns how many steps were left out."""
    steps: dict[int, StepTime] = {}
    for step in document.steps:
        if 0 <= step.step < LIMIT and 0 <= step.ts_ns < LIMIT:
            steps.setdefault(step.step, step)
    rows = [steps[number] for number in sorted(steps)]
    if rows:
        columns = {
            "step": np.array([row.step for row in rows], dtype=np.int64),
            "ts": np.array([row.ts_ns for row in rows], dtype=np.int64) + shift,
            "dur": _lengths([row.dur_ns for row in rows]),
            "host": _lengths([row.host_ns for row in rows]),
            "clock": np.array([STEP_CLOCKS.index(row.clock or document.clock) for row in rows], np.int8),
            "part": np.array([WINDOW_PARTS.index(row.window) for row in rows], np.int8),
        }
        writer.con.register("new_steps", columns)
        writer.con.execute(
            'INSERT INTO step_times (process, step, ts_ns, dur_ns, host_ns, "clock", part) SELECT ?, step, '
            "ts, nullif(dur, 0), nullif(host, 0), (?::VARCHAR[])[clock + 1], (?::VARCHAR[])[part + 1] "
            "FROM new_steps",
            [process, list(STEP_CLOCKS), list(WINDOW_PARTS)],
        )
        writer.con.unregister("new_steps")
    return len(document.steps) - len(rows)


def _lengths(values: Sequence[int | None]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Durations, ns; 0 where there is none that can be."""
    return np.array([value if value and 0 < value < LIMIT else 0 for value in values], dtype=np.int64)
