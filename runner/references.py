"""From what a user names to traces: a trace folder, a trial, a point, a run, or a profiler's own file."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.errors import InputError, UsageError

if TYPE_CHECKING:
    from profrun.store.runs import Run
    from profrun.traces.trace import Trace


def run_meant(reference: str, root: Path) -> Run | None:
    """The run that a reference names; None when it names a trace, a trial or a file.

    Raises:
        UsageError: it names nothing.
    """
    from profrun.store.runs import find

    path = Path(reference)
    if path.is_file() or (path / "meta.json").exists() or (path / "trace").exists():
        return None
    try:
        return find(root, reference)
    except UsageError:
        if "/" in reference:  # RUN/TRIAL
            return None
        raise


def trace_paths(reference: str, root: Path) -> list[Path]:
    """The traces meant: a trace folder, a trial's (folder or ``RUN/TRIAL``), a point's, or all of a run.

    A mapping is meant only where it is named or alone: it measures nothing.

    Raises:
        UsageError: nothing of that name is there.
        InputError: it is a run or a trial without traces.
    """
    from profrun.store.runs import Run, is_run
    from profrun.store.state import read_state

    path = Path(reference)
    if (path / "meta.json").is_file():
        return [path]
    if (path / "trace" / "meta.json").is_file():
        return [path / "trace"]
    name, _, trial = reference.partition("/")
    if not path.exists() and is_run(path.parent):  # a point or trial of a run that was named by its folder
        return _traces_in(str(path.parent), path.name, root)
    if path.is_absolute() and not path.exists():
        raise UsageError(f"{reference} is not there", fix="check the path")
    if trial and not path.exists():
        return _traces_in(name, trial, root)
    run_path = _run_path(reference, root)
    found = sorted(run_path.glob("trials/*/trace/meta.json"))
    maps = {one.id for one in read_state(Run(run_path)).trials if one.maps} if found else set()
    found = [file for file in found if file.parent.parent.name not in maps] or found
    if not found:
        raise InputError(
            f"{reference} has no traces",
            why="none of its trials has made one",
            fix=f"see `profrun status {run_path.name}`",
        )
    return [file.parent for file in found]


def _traces_in(name: str, wanted: str, root: Path) -> list[Path]:
    """``RUN/TRIAL``: a trial by its id, the beginning of it, or its number; ``RUN/POINT``: all repeats of a
    point, ``<variant>-<collector>[-blocking]``; ``RUN/VARIANT``: all trials of a variant but its mapping."""
    from profrun.runner.default_comparisons import point_name
    from profrun.runner.watch import pick_trial
    from profrun.store.runs import find
    from profrun.store.state import read_state

    run = find(root, name)
    trials = read_state(run).trials
    repeats = [one for one in trials if point_name(one.variant, one.collector, one.blocking) == wanted]
    repeats = repeats or [one for one in trials if one.variant == wanted and not one.maps]
    made = [record.trace for record in repeats if record.trace is not None and record.state == "finished"]
    if made:
        return made
    record = repeats[0] if repeats else pick_trial(run, wanted)
    if record.trace is None:
        raise InputError(
            f"{record.id} has no trace",
            why=record.normalise_error or f"it is {record.state}",
            fix=f"see `profrun status {name}`",
        )
    return [record.trace]


def _run_path(reference: str, root: Path) -> Path:
    from profrun.store.runs import find

    try:
        return find(root, reference).path
    except UsageError:
        if Path(reference).is_dir():
            raise InputError(
                f"{reference} is neither a trace nor a trial nor a run",
                why="it has no meta.json, no trace/ and no events.jsonl",
                fix="make a trace with `profrun normalize FILE --out DIR`",
            ) from None
        if Path(reference).suffix and not Path(reference).exists():
            raise UsageError(
                f"{reference} is not there",
                why=f"no file has that name, and no run in {root}",
                fix="check the path; `profrun runs` shows the runs",
            ) from None
        raise


@contextlib.contextmanager
def opened(reference: str, root: Path, *, answers: Sequence[Path] = ()) -> Iterator[Trace]:
    """Open the one trace meant. A profiler's own file is read into a temporary trace first.

    Args:
        answers: files that the caller writes answers into by the trace's engine.

    Raises:
        UsageError: nothing is there, or a run with several traces was named.
        InputError: it is no trace and no profiler's file.
    """
    from profrun.traces.trace import Trace

    path = Path(reference)
    if path.is_file():
        from profrun.collectors.normalize import normalize

        with tempfile.TemporaryDirectory(prefix="profrun-") as folder:
            normalize([path], Path(folder) / "trace")
            with Trace(Path(folder) / "trace", answers=answers) as trace:
                yield trace
        return
    with Trace(one_trace(reference, root), answers=answers) as trace:
        yield trace


def one_trace(reference: str, root: Path) -> Path:
    """The one trace meant.

    Raises:
        UsageError: nothing is there, or a run or point with several traces was named.
        InputError: it is no trace.
    """
    found = trace_paths(reference, root)
    if len(found) > 1:
        examples = ", ".join(item.parent.name for item in found[:3])
        raise UsageError(
            f"{reference} has {len(found)} traces",
            why=f"of trials {examples}{', ...' if len(found) > 3 else ''}",
            fix=f"name one, e.g. {_one_trial(reference, found[0].parent.name)}",
        )
    return found[0]


def _one_trial(reference: str, trial: str) -> str:
    """``RUN/NUMBER`` of a trial, of a reference ``RUN`` or ``RUN/POINT`` that stands for several."""
    number, _, rest = trial.partition("-")
    run, _, point = reference.rpartition("/")
    return f"{run if point == rest.rpartition('-r')[0] else reference}/{number}"


def labelled(reference: str, root: Path) -> list[tuple[str, Path]]:
    """(name to show, trace) for each trace meant; the name is the trial's where there is one."""
    return [(trace_name(path), path) for path in trace_paths(reference, root)]


def trace_name(path: Path) -> str:
    """A short name for a trace: the trial's where there is one, else the folder's."""
    path = path.absolute()
    return path.parent.name if path.name == "trace" else path.name


def shown_name(reference: str, path: Path) -> str:
    """A short name for what was opened: the trial's, the trace folder's, or the profiler file's."""
    if Path(reference).is_file():
        return Path(reference).name.split(".")[0]
    return trace_name(path)
