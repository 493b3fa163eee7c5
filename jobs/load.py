"""YAML to a checked ``Job``: the only place where a spec is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from profrun.contract.codec import given_json
from profrun.contract.profilers import BUILT_IN, MAPPING, candidates, profiler
from profrun.errors import UsageError
from profrun.jobs.checks import check
from profrun.jobs.kinds import BAD
from profrun.jobs.model import Job
from profrun.jobs.nodes import MAX_BYTES, Node, parse
from profrun.jobs.other_files import refuse_others
from profrun.jobs.overrides import Override, apply
from profrun.jobs.points import expand
from profrun.jobs.problems import Problems, Where, nearest
from profrun.jobs.schema import JOB, MATRIX
from profrun.jobs.spec_kinds import Point


@dataclass(frozen=True)
class Spec:
    """A job spec that is not checked yet.

    Attributes:
        text: the YAML.
        name: stands for the file in messages.
        folder: the relative paths of the job count from it.
    """

    text: str
    name: str
    folder: Path


def load_job(path: str | Path, overrides: Iterable[str | Override] = ()) -> Job:
    """Read, override and check a job spec.

    Args:
        path: the YAML file, UTF-8.
        overrides: ``path=value`` as of ``--set``, applied in order.

    Raises:
        UsageError: the file cannot be read, or (``SpecError``) the spec is wrong: one line per mistake,
            ``file:line:column: what; what to do``, all that were found.
    """
    name = str(path)
    return load_text(read_spec(Path(path)), name, overrides)


def load_text(text: str, name: str = "job.yaml", overrides: Iterable[str | Override] = ()) -> Job:
    """As ``load_job`` for a spec's text; ``name`` stands for the file in messages."""
    problems = Problems(name)
    root = parse(text, problems)
    root = apply(root, list(overrides), problems)
    read = JOB.read(root, "", problems)
    if read is BAD or problems.found:
        raise problems.error()
    if read.ranges.lines and MAPPING not in read.collectors:
        read = replace(read, collectors=(*read.collectors, MAPPING))
    job = replace(read, variants=_variants(read, root, problems), options=_options(read), source=name)
    if problems.found:
        raise problems.error()
    check(job, root, problems)
    if problems.found:
        raise problems.error()
    return replace(job, warnings=tuple(problems.warnings))


def read_spec(path: Path) -> str:
    """The text of a job spec.

    Raises:
        UsageError: the file cannot be read, or it is plainly something else than a job spec.
    """
    try:
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no regular file"
            raise UsageError(f"{path} is {what}", fix="give the path of a job's YAML file")
        with path.open("rb") as file:
            content = file.read(4 * MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"there is no job spec at {path}", fix=_similar(path)) from None
    except OSError as error:
        raise UsageError(
            f"cannot read {path}", why=error.strerror or str(error), fix="check its permissions"
        ) from None
    except ValueError:  # a NUL in the name
        raise UsageError(f"{str(path)!r} is no file name", fix="give the path of a job's YAML file") from None
    refuse_others(path, content)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig")
        where = Where(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        problems = Problems(str(path))
        problems.bad(where, f"the byte 0x{content[error.start]:02x} is not UTF-8", "save the file as UTF-8")
        raise problems.error() from None


def _similar(path: Path) -> str:
    """What to do about a missing spec: the most similar name beside it, or the specs there are."""
    try:
        specs = sorted(entry.name for entry in path.parent.iterdir() if entry.suffix in (".yaml", ".yml"))
    except OSError:
        return "check the path"
    close = nearest(path.name, specs) or nearest(path.name + ".yaml", specs)
    return f"did you mean {path.parent / close}?" if close else "check the path"


def _variants(job: Job, root: Node, problems: Problems) -> Mapping[str, Point]:
    node = root.get("matrix")
    matrix = MATRIX.read(node, "matrix", problems) if node is not None else BAD
    if node is None or matrix is BAD:
        return job.variants or {"default": {}}
    if job.variants:
        key = root.key("matrix") or node
        problems.bad(key.where, "both 'variants' and 'matrix' are given", "keep one of them")
    return expand(matrix, node, problems)


def _options(job: Job) -> dict[str, object]:
    """The blocks that hold something, and empty ones for profilers that are used without."""
    used = {found.name for name in job.collectors for found in candidates(name)}
    given = {name: options for name, options in job.options.items() if given_json(options)}
    names = (*BUILT_IN, *sorted((used | given.keys()) - set(BUILT_IN)))
    return {
        name: given.get(name) or profiler(name).options() for name in names if name in used or name in given
    }
