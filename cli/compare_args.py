"""The two sides of a comparison on the command line: ``A... vs B...``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.cli.traces import labelled
from profrun.errors import InputError, UsageError

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.contract.provenance import Provenance

WORD = "vs"
FORMAT = 1
"""Of baseline files."""


@dataclass(frozen=True)
class Sides:
    """(label, trace) of each trial of each side; ``a`` is the base."""

    a: tuple[tuple[str, Path], ...]
    b: tuple[tuple[str, Path], ...]


def split_sides(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide the words of a command at ``vs``, so that shell globs work on both sides.

    Raises:
        UsageError: there is no ``vs``, more than one, or nothing on a side of it.
    """
    count = words.count(WORD)
    if count != 1:
        raise UsageError(
            f"compare needs the word '{WORD}' once between its two sides, and it is there {count} times",
            fix="e.g. `profrun compare last/baseline-none vs last/optimised-none`",
        )
    at = words.index(WORD)
    a, b = list(words[:at]), list(words[at + 1 :])
    if not a or not b:
        side = "before" if not a else "after"
        raise UsageError(
            f"there is nothing {side} '{WORD}'", fix="name a trace, RUN/TRIAL, RUN/POINT or a run"
        )
    return a, b


def find_sides(words: Sequence[str], root: Path) -> Sides:
    """The traces of both sides.

    Raises:
        UsageError: the words are wrong, a trace is on both sides or named twice, or nothing is there.
        InputError: a run or trial has no trace.
    """
    a, b = (expand(side, root) for side in split_sides(words))
    both = {path.resolve() for _, path in a} & {path.resolve() for _, path in b}
    if both:
        raise UsageError(f"{min(both)} is on both sides", fix="compare it with another trace")
    return Sides(tuple(a), tuple(b))


def expand(references: Sequence[str], root: Path) -> list[tuple[str, Path]]:
    """(label, trace or baseline file) of each thing that the words of one side name.

    Raises:
        UsageError: nothing is there, or a thing is named twice.
        InputError: a run or trial has no trace.
    """
    found: dict[Path, tuple[str, Path]] = {}
    for reference in references:
        named = [(Path(reference).stem, Path(reference))] if Path(reference).is_file() else None
        for label, path in named or labelled(reference, root):
            if path.resolve() in found:
                raise UsageError(f"{path} is named twice on one side", fix="name each trial once")
            found[path.resolve()] = (label, path)
    return list(found.values())


def read_trials(side: Sequence[tuple[str, Path]]) -> list[ComparedTrial]:
    """Each trace of a side as a comparison takes it, with the provenance beside it where there is one."""
    import profrun
    from profrun.analysis.compare import read_trial

    trials = []
    for label, path in side:
        if path.is_file():
            trials += read_baseline(path)
            continue
        with profrun.open(path) as trace:
            trials.append(read_trial(trace, label=label, provenance=provenance_of(path)))
    return trials


def provenance_of(path: Path) -> Provenance | None:
    """The trial's ``provenance.json``, of a trace that is a trial's.

    Raises:
        InputError: the file is damaged.
    """
    from profrun.contract.codec import DocumentError, from_json
    from profrun.contract.provenance import Provenance
    from profrun.store.files import read_json

    file = path.parent / "provenance.json"
    document = read_json(file) if path.name == "trace" else None
    if document is None:
        return None
    try:  # comparisons do not need the preflight, and format 1 spells it in another way
        return from_json(Provenance, {**document, "preflight": ()})
    except DocumentError as error:
        raise InputError(f"{file} is damaged", why=str(error)) from error


def read_baseline(path: Path) -> list[ComparedTrial]:
    """The trials that ``profrun baseline save`` kept.

    Raises:
        InputError: the file is no baseline, or of a format this profrun does not read.
    """
    from profrun.analysis.compare import trial_from_json
    from profrun.store.files import read_json

    fix = "make it with `profrun baseline save`; a profiler's file needs `profrun normalize` first"
    try:
        document = read_json(path) or {}
    except InputError as error:
        raise InputError(f"{path} is no baseline", why="it is no JSON object", fix=fix) from error
    if document.get("profrun_baseline") != FORMAT:
        raise InputError(f"{path} is no baseline of format {FORMAT}", fix=fix)
    try:
        return [trial_from_json(trial) for trial in document["trials"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is a damaged baseline", why=str(error), fix=fix) from error
