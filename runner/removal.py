"""Removing runs, or only the profilers' own files of runs: what may go, how much that frees, and doing it.

Nothing outside of the folder of the runs is touched: a run must be a real folder there, and a link inside of
a run is removed itself, never what it points to. A baseline has all of its numbers in its own file, so that
it outlives the runs that it was made from.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profrun.contract.paths import TrialPaths
from profrun.errors import InputError, ProfrunError, UsageError
from profrun.runner.watch import observed_state
from profrun.store.files import explained
from profrun.store.lock import driving
from profrun.store.runs import Run, all_runs
from profrun.store.state import RunState

BLOCK = 512
"""Bytes of a block as ``st_blocks`` counts them, on every file system (`man 3type stat`)."""


_OURS = ("raw/rank*/steps*.json", "raw/rank*/results*.json")
_TRIES = 5
"""How often a folder is removed into which something is written meanwhile."""


@dataclass(frozen=True)
class Removal:
    """What goes of one run.

    Attributes:
        files: the profilers' own files, where only these go; None where the whole folder goes.
        freed: bytes of the disk that this frees.
        log_bytes: size of the run's log when this was worked out.
    """

    run: Run
    files: tuple[Path, ...] | None
    freed: int
    log_bytes: int


@dataclass(frozen=True)
class Kept:
    """A run that may not go, and why."""

    run: Run
    reason: ProfrunError


def plan_removal(run: Run, root: Path, *, raw: bool = False) -> Removal:
    """Work out what goes of a run; nothing is changed.

    Args:
        run: the run.
        root: the folder of the runs.
        raw: only the files of the profilers, of trials that have a trace.

    Raises:
        UsageError: it is no folder of its own in ``root``, or something of it still runs.
    """
    _need_own_folder(run, root)
    state = _state(run)
    _need_ended(run, state)
    files = tuple(_raw_files(run, state)) if raw else None
    freed = disk_bytes([run.path] if files is None else files)
    return Removal(run, files, freed, _size(run.events))


def carry_out(removal: Removal) -> None:
    """Remove what was planned, while nobody else can drive the run.

    Raises:
        UsageError: the run was continued since it was looked at.
        UnavailableError: a file cannot be removed.
    """
    run = removal.run
    with driving(run.lock, run.name), explained(run.path):
        if _size(run.events) != removal.log_bytes:
            raise UsageError(f"{run.name} has changed meanwhile", fix="look at it, then try again")
        if removal.files is not None:
            for file in removal.files:
                file.unlink()
            return
        # The log goes last: a removal that is cut short leaves a folder that is still a run.
        last = (run.events, run.lock)
        for path in [path for path in run.path.iterdir() if path not in last] + list(last):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        _remove_rest(run.path)


def _remove_rest(folder: Path) -> None:
    """The folder, with what another command wrote into it meanwhile: `profrun cancel` asks by a file."""
    for _ in range(_TRIES):
        try:
            shutil.rmtree(folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
            if not folder.exists():
                return
    shutil.rmtree(folder)


def plan_pruning(
    root: Path, *, keep: int | None, created_before_ns: int | None, raw: bool = False
) -> tuple[list[Removal], list[Kept]]:
    """Work out which runs go. A run stays if one of the limits keeps it, or if it may not go.

    Args:
        root: the folder of the runs.
        keep: this many of the newest runs of each job stay; None: no such limit.
        created_before_ns: only runs made before this time go (unix ns); None: no such limit.
        raw: only the files of the profilers go.

    Returns:
        What goes, oldest first; and runs that may not go.
    """
    going: list[Removal] = []
    kept: list[Kept] = []
    newer: dict[str, int] = {}
    for run in reversed(all_runs(root)):
        state = _state(run)
        job = state.job if state else run.name
        newer[job] = newer.get(job, 0) + 1
        made_ns = state.created_ns if state else run.events.stat().st_mtime_ns
        if keep is not None and newer[job] <= keep:
            continue
        if created_before_ns is not None and made_ns >= created_before_ns:
            continue
        try:
            going.append(plan_removal(run, root, raw=raw))
        except UsageError as error:
            kept.append(Kept(run, error))
    return going[::-1], kept[::-1]


def _need_own_folder(run: Run, root: Path) -> None:
    """Refuse a run elsewhere, and a link to one.

    Raises:
        UsageError: the run is not a folder in ``root``.
    """
    if run.path.parent.resolve() != root.resolve():
        raise UsageError(
            f"{run.path} is not in {root}", fix=f"name the folder of the runs: --runs {run.path.parent}"
        )
    if run.path.is_symlink():
        raise UsageError(
            f"{run.name} is a link to {run.path.readlink()}",
            why="only folders in the folder of the runs are removed",
            fix=f"remove the run where it is, then the link by `rm {run.path}`",
        )


def _state(run: Run) -> RunState | None:
    """The run's state; None where its log is too damaged to tell."""
    try:
        return observed_state(run)
    except InputError:
        return None


def _need_ended(run: Run, state: RunState | None) -> None:
    """Refuse a run that somebody drives, or of which a trial still runs.

    Raises:
        UsageError: something of it still runs.
    """
    alive = [record.id for record in state.trials if record.attempt and not record.ended] if state else []
    if state is not None and (state.driven or alive):
        why = "a process drives it" if state.driven else f"trial {alive[0]} has not ended"
        raise UsageError(f"{run.name} still runs", why=why, fix=f"end it first: `profrun cancel {run.name}`")


def _raw_files(run: Run, state: RunState | None) -> Iterator[Path]:
    """The profilers' own files of finished trials that have a trace, without the step times and
    the values that the program computed."""
    if state is None or run.trials.is_symlink():
        return
    for record in state.trials:
        paths = TrialPaths(run.trials / record.id)
        links = any(path.is_symlink() for path in (paths.folder, paths.raw))
        if record.state != "finished" or record.trace is None or record.normalise_error or links:
            continue
        for folder, _, names in os.walk(paths.raw):
            for name in names:
                file = Path(folder, name)
                if not (any(file.match(pattern) for pattern in _OURS) or file.is_symlink()):
                    yield file


def disk_bytes(paths: Sequence[Path]) -> int:
    """Bytes of the disk that are free when these files and folders are gone, as `du` counts them.

    Links are not followed. A file with further hard links counts only if all of them go.
    """
    total = 0
    links: dict[tuple[int, int], int] = {}
    for path in _below(paths):
        about = path.lstat()
        if about.st_nlink > 1 and not path.is_dir():
            inode = (about.st_dev, about.st_ino)
            links[inode] = links.get(inode, 0) + 1
            if links[inode] < about.st_nlink:
                continue
        if sys.platform == "win32":
            total += about.st_size  # blocks are not told there
        else:
            total += about.st_blocks * BLOCK
    return total


def _below(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield path
        if path.is_dir() and not path.is_symlink():
            for folder, folders, files in os.walk(path):
                yield from (Path(folder, name) for name in (*folders, *files))


def _size(path: Path) -> int:
    return path.stat().st_size
