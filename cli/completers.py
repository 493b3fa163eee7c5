"""Words for the shell's completion: runs, trials, points, variants and names of fixed lists.

A function here is given the context of the command line so far and the word to complete. It returns (word,
help) pairs; only those that begin with the word are shown. Where it returns none, the shell completes files.
It reads names of folders and opens no document, except for variants.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from profrun.store.runs import Run

Word = tuple[str, str]
"""A word and a line that zsh and fish show beside it."""


def _quiet(
    find: Callable[[typer.Context, str], Iterable[Word]],
) -> Callable[[typer.Context, str], list[Word]]:
    """Complete nothing where an error comes: its message would stand in the middle of what the user types."""

    def words(ctx: typer.Context, incomplete: str) -> list[Word]:
        try:
            return list(find(ctx, incomplete))
        except Exception:
            return []

    return words


@_quiet
def runs(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """RUN: names of runs, and ``last``."""
    return _beside_files([*_run_words(ctx)], incomplete)


@_quiet
def traces(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """TRACE: trials with a trace, as RUN/TRIAL; first the runs, and their trials once one run is left."""
    heads = [(f"{name}/", about) for name, about in _run_words(ctx)]
    fitting = [head for head in heads if head[0].startswith(incomplete)]
    if "/" in incomplete or len(fitting) == 1:
        return _trial_words(ctx, incomplete if "/" in incomplete else fitting[0][0])
    return _beside_files(fitting, incomplete)


@_quiet
def runs_and_traces(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """RUN or TRACE: names of runs; with a slash, the trials of one."""
    if "/" in incomplete:
        return _trial_words(ctx, incomplete)
    return _beside_files([*_run_words(ctx)], incomplete)


@_quiet
def sides(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """A... vs B...: runs, points and trials, and the word between the sides."""
    if "/" in incomplete:
        return [*_point_words(ctx, incomplete), *_trial_words(ctx, incomplete)]
    given = [str(word) for value in ctx.params.values() if isinstance(value, (list, tuple)) for word in value]
    between = [("vs", "then what is compared with it")] if given and "vs" not in given else []
    words = [*between, *_run_words(ctx)]
    fitting = [name for name, _ in words if name.startswith(incomplete) and name != "vs"]
    more = _point_words(ctx, f"{fitting[0]}/") if len(fitting) == 1 else []
    return _beside_files([*words, *more], incomplete)


@_quiet
def trials_of_run(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """TRIAL after a RUN: ids and numbers of its trials."""
    run = _run(ctx, _given(ctx, "run") or "last")
    return _ids_and_numbers([path.name for path in _folders(run.trials)], "", incomplete)


@_quiet
def variants_of_run(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """A variant of the run that the command names."""
    from profrun.store.runs import read_plan

    run = _run(ctx, _given(ctx, "sides") or "last")
    return [(name, "") for name in dict.fromkeys(trial.variant for trial in read_plan(run).trials)]


@_quiet
def variants_of_job(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """A variant of the job file that the command names; after a comma, one more."""
    from profrun.jobs.load import load_job

    before, comma, _ = incomplete.rpartition(",")
    variants = load_job(Path(_given(ctx, "job"))).variants
    return [(f"{before}{comma}{name}", "") for name in variants]


@_quiet
def collectors(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """Names of collectors; after a comma, one more."""
    from profrun.contract.profilers import all_names

    before, comma, _ = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", "") for name in all_names()]


@_quiet
def examples(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """Names of the jobs that come with profrun, but for those that are given already."""
    from profrun.jobs.examples import names, question

    given = ctx.params.get("chosen") or ()
    return [(name, question(name)) for name in names() if name not in given]


@_quiet
def backends(ctx: typer.Context, incomplete: str) -> Iterable[Word]:
    """Names of backends."""
    from profrun.backends.base import BACKENDS

    return [(name, "") for name in BACKENDS]


def _given(ctx: typer.Context, name: str) -> str:
    """The value of an argument, the first of several; empty where it is not given.

    Behind an option that waits for its value, click leaves the arguments in ``ctx.args``.
    """
    value = ctx.params.get(name) or ctx.args
    return str(value[0] if isinstance(value, (list, tuple)) and value else value or "")


def _root(ctx: typer.Context) -> Path:
    from profrun.store.runs import runs_root

    return runs_root(ctx.params.get("runs"))


def _run(ctx: typer.Context, reference: str) -> Run:
    """The run meant; names of runs are read with little of the store, because that is fast."""
    from profrun.store.runs import find

    return find(_root(ctx), reference)


def _run_words(ctx: typer.Context) -> Iterator[Word]:
    """``last``, then the runs, newest first."""
    from profrun.store.runs import all_runs

    names = [run.name for run in reversed(all_runs(_root(ctx)))]
    if names:
        yield "last", names[0]
    yield from ((name, "") for name in names)


def _trial_words(ctx: typer.Context, incomplete: str) -> list[Word]:
    """RUN/TRIAL for each trial of a run that has a trace."""
    head, _, tail = incomplete.rpartition("/")
    names = [path.name for path in _folders(_run(ctx, head).trials) if (path / "trace/meta.json").exists()]
    return _ids_and_numbers(names, f"{head}/", tail)


def _point_words(ctx: typer.Context, incomplete: str) -> list[Word]:
    """RUN/POINT for each point of a run: its trials without number and repeat."""
    head, _, _ = incomplete.rpartition("/")
    trials = [path.name for path in _folders(_run(ctx, head).trials)]
    points = dict.fromkeys(name.partition("-")[2].rpartition("-r")[0] for name in trials)
    return [(f"{head}/{point}", "all repeats") for point in points]


def _ids_and_numbers(names: Sequence[str], head: str, tail: str) -> list[Word]:
    """Ids of trials; their numbers too where the user types one that no id begins with."""
    if tail.isdigit() and not any(name.startswith(tail) for name in names):
        return [(f"{head}{int(name.partition('-')[0])}", name) for name in names]
    return [(head + name, "") for name in names]


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _beside_files(words: Sequence[Word], incomplete: str) -> list[Word]:
    """The words that fit, with the files that fit too; none where no word fits: the shell knows files better.

    Args:
        words: names of runs or trials.
        incomplete: what the user has typed.
    """
    fitting = [word for word in words if word[0].startswith(incomplete)]
    if not fitting or not incomplete:
        return fitting
    head, slash, tail = incomplete.rpartition("/")
    found = sorted(path for path in Path(head + slash).iterdir() if path.name.startswith(tail))
    files = [head + slash + path.name + "/" * path.is_dir() for path in found]
    known = {name for name, _ in fitting}
    new = [name for name in files if name.rstrip("/") not in known and shlex.quote(name) == name]
    return fitting + [(name, "") for name in new]
