"""What a trial's own files say: how it ended (``exit.json``) and how long its steps took (``steps.json``)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profrun.errors import InputError
from profrun.store.files import read_json

TRACE_STATES = ("whole",)
"""Artefact states that are worth normalising; truncated ones are kept and named."""


@dataclass(frozen=True)
class Steps:
    """Step times of one trial.

    Attributes:
        how: explicit, optimizer, module or none; None when no rank wrote a file.
        clock: cuda_event, hip_event or wall.
        count: steps seen, of the rank that saw the most.
        measured: duration in ns of each step inside the recorded window (``active``), in order; of several
            ranks the slowest of each step, because the others wait for it.
        all_ns: the same for every step of the trial.
        out_of_memory: some rank ran out of GPU memory.
    """

    how: str | None = None
    clock: str | None = None
    count: int = 0
    measured: tuple[int, ...] = ()
    all_ns: tuple[int, ...] = ()
    out_of_memory: bool = False

    @property
    def median_ns(self) -> int | None:
        """Median of ``measured`` in ns, rounded to a whole ns; None when nothing was measured."""
        return median_ns(self.measured)


def median_ns(values: Iterable[int]) -> int | None:
    """Median in whole ns (even count: mean of the two in the middle); None of nothing."""
    found = list(values)
    return round(statistics.median(found)) if found else None


def read_steps(trial: Path) -> Steps:
    """Step times from ``raw/rank*/steps.json``; an empty value when no rank wrote one.

    Raises:
        InputError: a file is there and is not what the hook writes.
    """
    documents = []
    for file in sorted((trial / "raw").glob("rank*/steps.json")):
        document = read_json(file)
        if document is not None:
            documents.append((file, document))
    return fold_steps(documents)


def fold_steps(documents: Sequence[tuple[Path, Mapping[str, Any]]]) -> Steps:
    """One trial's steps from the documents of its ranks: each step as long as its slowest rank."""
    if not documents:
        return Steps()
    slowest: dict[int, int] = {}
    active: set[int] = set()
    count = 0
    try:
        for _, document in documents:
            steps = document["steps"]
            count = max(count, len(steps))
            for step in steps:
                if step["dur_ns"] is None:
                    continue
                number, duration = int(step["step"]), int(step["dur_ns"])
                slowest[number] = max(duration, slowest.get(number, 0))
                if step["window"] == "active":
                    active.add(number)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{documents[0][0]} is not a steps file", why=f"{type(error).__name__}: {error}"
        ) from error
    first = documents[0][1]
    return Steps(
        how=first.get("how"),
        clock=first.get("clock"),
        count=count,
        measured=tuple(slowest[number] for number in sorted(active)),
        all_ns=tuple(slowest[number] for number in sorted(slowest)),
        out_of_memory=any(bool(document.get("out_of_memory")) for _, document in documents),
    )


def read_exit(trial: Path, attempt: int | None = None) -> dict[str, Any] | None:
    """``exit.json`` of this attempt or a later one (any when None); None when it is not there or is older.

    Later ones are those that a queue started by itself (requeue, preemption). A file that cannot be read
    counts as not there: unknown is never success.
    """
    try:
        document = read_json(trial / "exit.json")
    except InputError:
        return None
    if document is None or not isinstance(document.get("state"), str):
        return None
    if attempt is not None and int(document.get("attempt") or attempt) < attempt:
        return None
    return document


def finalising(trial: Path) -> bool:
    """Does a living trial write its report now? By the phase that its wrapper wrote down last."""
    try:
        phase = (read_json(trial / "phase") or {}).get("phase")
    except InputError:
        return False
    return phase in ("finalise", "export")


def interrupted(document: Mapping[str, Any]) -> bool:
    """Was this trial ended by a signal that nobody of ours meant: preempted, evicted, its node drained?

    The wrapper calls it a timeout, because a scheduler's time limit looks the same from inside; whether the
    trial is started again, only the scheduler knows. Its own time limit is no such end.
    """
    return document.get("state") == "timeout" and str(document.get("stopped_by")).startswith("SIG")


def whole_artefacts(trial: Path, exit_document: Mapping[str, Any] | None) -> list[Path]:
    """Profiler files of a trial that are there and whole, as ``exit.json`` lists them."""
    found: list[Path] = []
    for artefact in (exit_document or {}).get("artefacts") or ():
        if artefact.get("state") in TRACE_STATES:
            path = trial / str(artefact["path"])
            if path.exists():
                found.append(path)
    return found
