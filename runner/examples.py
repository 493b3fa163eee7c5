"""The jobs that come with profrun: what is in each, and copies of them with the programs that they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profrun.analysis.compare.expect.claims import needs_gpu
from profrun.errors import UsageError
from profrun.jobs.examples import FOLDER, names, path_of, question
from profrun.jobs.load import load_job
from profrun.jobs.problems import suggest
from profrun.plans.make import make_plan
from profrun.store.files import make_dir, write_text

_ELSEWHERE = "name another folder with --out DIR"


@dataclass(frozen=True)
class Example:
    """A job that comes with profrun.

    Attributes:
        name: of the job and, with ``.yaml``, of its file.
        question: what it asks, in one line.
        variants: how many it has.
        claims: how many it has. gpu_claims: those of them that no run without a GPU can check.
        files: its file, and every file that its commands name; relative to the folder of the examples.
    """

    name: str
    question: str
    variants: int
    claims: int
    gpu_claims: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Copy:
    """One file to be written: its text and its place."""

    text: str
    target: Path


def example(name: str) -> Example:
    """The example of this name.

    Raises:
        UsageError: there is none.
    """
    known = names()
    if name not in known:
        raise UsageError(f"there is no example '{name}'", fix=suggest(name, known, "examples"))
    job = load_job(path_of(name))
    words = dict.fromkeys(word for trial in make_plan(job).trials for word in trial.argv)
    return Example(
        name=name,
        question=question(name),
        variants=len(job.variants),
        claims=len(job.expect),
        gpu_claims=sum(map(needs_gpu, job.expect)),
        files=(path_of(name).name, *(word for word in words if (FOLDER / word).is_file())),
    )


def plan_copies(examples: Sequence[Example], folder: Path) -> list[Copy]:
    """The files that copies of some examples consist of, each once, below a folder."""
    files = dict.fromkeys(name for one in examples for name in one.files)
    return [Copy((FOLDER / name).read_text(encoding="utf-8"), folder / name) for name in files]


def write_copies(copies: Sequence[Copy], *, force: bool) -> list[Path]:
    """Write all files or, where one of them exists with another content, none.

    Args:
        force: replace such files.

    Returns:
        The files that were written; those that exist with the same content are not.

    Raises:
        UsageError: files exist with another content.
        UnavailableError: one cannot be written.
    """
    wanted = [copy for copy in copies if _content(copy.target) != copy.text.encode()]
    taken = [str(copy.target) for copy in wanted if copy.target.exists()]
    if taken and not force:
        raise UsageError(
            f"{', '.join(taken)} {'exists' if len(taken) == 1 else 'exist'} with another content",
            fix=f"{_ELSEWHERE}, or replace with --force",
        )
    for copy in wanted:
        make_dir(copy.target.parent, fix=_ELSEWHERE)
        write_text(copy.target, copy.text, durable=False, fix=_ELSEWHERE)
    return [copy.target for copy in wanted]


def _content(path: Path) -> bytes | None:
    """What a file holds, None where there is no file."""
    return path.read_bytes() if path.is_file() else None
