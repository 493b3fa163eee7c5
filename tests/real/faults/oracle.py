"""What must hold after a fault. Every function returns sentences, one for each promise that was broken."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profrun.contract.states import TERMINAL
from tests.conftest import ROOT
from tests.real.faults.desk import Answer, Desk
from tests.real.faults.jobs import Beats, beats_of
from tests.real.faults.plan import Shape

TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Finished:
    """A trial that has finished: its ``exit.json`` as it was seen, and how many earlier attempts it had."""

    trial: str
    inode: int
    changed_ns: int
    content: bytes
    attempts: int


def finished(run: Path) -> list[Finished]:
    """Every trial of a run that has finished by now."""
    found = []
    for path in sorted(run.glob("trials/*/exit.json")):
        with path.open("rb") as file:
            content, stat = file.read(), os.fstat(file.fileno())
        if json.loads(content)["state"] == "finished":
            attempts = sum(1 for _ in path.parent.glob("attempts/*"))
            found.append(Finished(path.parent.name, stat.st_ino, stat.st_mtime_ns, content, attempts))
    return found


def kept(run: Path, before: Sequence[Finished]) -> list[str]:
    """What had finished is still there, is the same file, and was not repeated."""
    now = {one.trial: one for one in finished(run)}
    broken = []
    for one in before:
        after = now.get(one.trial)
        if after is None:
            broken.append(f"lost: {one.trial} had finished and has not any more")
        elif after.attempts != one.attempts:
            broken.append(f"lost: {one.trial} had finished and was repeated")
        elif after != one:
            broken.append(f"lost: exit.json of {one.trial} was changed")
    return broken


def answered(answers: Iterable[Answer], allowed: Sequence[int] = (0,)) -> list[str]:
    """Each command came to its end in time, with an exit code that is allowed."""
    broken = []
    for answer in answers:
        what = f"`{' '.join(answer.argv[:1])}`"
        if answer.code is None:
            broken.append(f"hung: {what} did not come to its end")
        elif answer.code not in allowed:
            broken.append(f"{what} ended with {answer.code}: {answer.err.strip()[-300:]}")
    return broken


def states(answer: Answer, expected: int) -> list[str]:
    """Once nothing of the run lives, each trial has ended or never began, and says why it did not finish."""
    if answer.code != 0:
        return []
    document = json.loads(answer.out)
    broken = []
    trials = document["trials"]
    if document["state"] != "broken" and len(trials) != expected:
        broken.append(f"status names {len(trials)} trials of {expected}")
    for trial in trials:
        if trial["state"] not in {*TERMINAL, "planned"}:
            broken.append(f"{trial['trial']} is {trial['state']}, and no process of it lives")
        elif trial["state"] not in ("finished", "planned") and not trial["reason"]:
            broken.append(f"{trial['trial']} is {trial['state']} without a reason")
    return broken


def whole(answer: Answer, shape: Shape) -> list[str]:
    """The run is like an undisturbed one: all trials have finished, with all their steps.

    A trial may lack steps where a critical warning says so: the hook could not write them.
    """
    if answer.code != 0:
        return []
    document: dict[str, Any] = json.loads(answer.out)
    found = [
        (trial["state"], shape.steps if _told(trial) else trial["steps"]) for trial in document["trials"]
    ]
    if found == [("finished", shape.steps)] * shape.trials and document["state"] == "finished":
        return []
    why = next((trial["reason"] for trial in document["trials"] if trial["reason"]), "")
    return [f"after resume the run is {document['state']}: {found} {why}"]


def _told(trial: dict[str, Any]) -> bool:
    """Whether a trial says itself that its steps are not to be trusted."""
    return any(one["severity"] == "critical" and one["code"] == "hook-failed" for one in trial["warnings"])


def apart(beats: Sequence[Beats]) -> list[str]:
    """No execution of the program overlaps with another one of the same run."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for one in beats:
        key = one.trial, one.execution
        low, high = spans.get(key, (one.began, one.last))
        spans[key] = min(low, one.began), max(high, one.last)
    order = sorted(spans.items(), key=lambda item: item[1])
    broken = []
    for (first, (_, end)), (second, (start, _)) in itertools.pairwise(order):
        if start < end:
            broken.append(
                f"overlap: {second[0]} was started {(end - start) / 1e9:.2f} s before {first[0]} ended"
            )
    return broken


def no_lock(run: Path) -> list[str]:
    """Nobody holds the run's lock or a trial's."""
    broken = []
    for path in [run / "lock", *run.glob("trials/*/live")]:
        if not path.exists():
            continue
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                broken.append(f"left: {path.relative_to(run)} is held")
    return broken


def nothing_outside(desk: Desk) -> list[str]:
    """No temporary file was left outside the run's folder, and no traceback of a bug anywhere."""
    left = [path for path in (desk.folder / "tmp").rglob("*") if path.is_file()]
    broken = [f"left: {path.relative_to(desk.folder)}" for path in left]
    for name in ("tmp", "state"):
        for path in (desk.folder / name).rglob("crash-*.log"):
            broken.append(f"bug: {path.read_text(errors='replace').strip().splitlines()[-1]}")
    return broken


def no_traceback(desk: Desk) -> list[str]:
    """No traceback of profrun's was printed, neither by a command nor into a log of the run."""
    texts = [(f"`{' '.join(said.argv[:1])}`", said.out + said.err) for said in desk.said]
    run = desk.run
    logs = [] if run is None else [*run.glob("*.log"), *run.glob("trials/**/*.log")]
    texts += [(str(path.name), path.read_text(errors="replace")) for path in logs]
    return [f"traceback: {where}: {_last(text)}" for where, text in texts if ours(text)]


_OURS = re.compile(rf'File "(?:{re.escape(str(ROOT))}/(?!tests/)|[^"]*/_profrun/|[^"]*/bundle/)')


def ours(text: str) -> bool:
    """Whether a text has a traceback in which profrun stands."""
    return any(_OURS.search(part) for part in text.split(TRACEBACK)[1:])


def _last(text: str) -> str:
    """The error of the first traceback."""
    lines = text.split(TRACEBACK, 1)[1].splitlines()
    return next((line for line in lines[1:] if line and not line.startswith(" ")), "")[:200]


def of_the_run(desk: Desk, run: Path, before: Sequence[Finished]) -> list[str]:
    """The promises that hold at every moment when nothing of the run lives."""
    return [
        *kept(run, before),
        *apart(beats_of(desk.folder)),
        *no_lock(run),
        *nothing_outside(desk),
        *no_traceback(desk),
    ]
