"""YAML to a checked ``Job``: the only place where a spec is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from profrun.contract.command import Ranges
from profrun.contract.profilers import candidates
from profrun.contract.schedule import Schedule
from profrun.errors import UsageError
from profrun.jobs.checks import check
from profrun.jobs.kinds import BAD
from profrun.jobs.model import Expectation, Job, Resources
from profrun.jobs.nodes import MAX_BYTES, Node, parse
from profrun.jobs.options import BLOCKS
from profrun.jobs.overrides import apply
from profrun.jobs.points import expand
from profrun.jobs.problems import Problems, Where, nearest
from profrun.jobs.schema import CHECKS, JOB


def load_job(path: str | Path, overrides: Iterable[str] = ()) -> Job:
    """Read, override and check a job spec.

    Args:
        path: the YAML file, UTF-8.
        overrides: ``path=value`` as of ``--set``, applied in order.

    Raises:
        UsageError: the file cannot be read, or (``SpecError``) the spec is wrong: one line a mistake,
            ``file:line:column: what; what to do``, all that were found.
    """
    name = str(path)
    return load_text(_read(Path(path)), name, overrides)


def load_text(text: str, name: str = "job.yaml", overrides: Iterable[str] = ()) -> Job:
    """As ``load_job`` for a spec's text; ``name`` stands for the file in messages."""
    problems = Problems(name)
    root = parse(text, problems)
    root = apply(root, list(overrides), problems)
    values = JOB.read(root, "", problems)
    if values is BAD or problems.found:
        raise problems.error()
    variants = _variants(values, root, problems)
    if problems.found:
        raise problems.error()
    check(values, variants, root, problems)
    if problems.found:
        raise problems.error()
    return _job(values, variants, name, problems.warnings)


def _read(path: Path) -> str:
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


def _variants(values: Mapping[str, Any], root: Node, problems: Problems) -> dict[str, Any]:
    matrix, node = values.get("matrix"), root.key("matrix")
    if matrix is not None and node is not None:
        if "variants" in values:
            problems.bad(node.where, "both 'variants' and 'matrix' are given", "keep one of them")
        return expand(matrix, root.get("matrix") or node, problems)
    return dict(values.get("variants", {"default": {}}))


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The blocks that hold something, and empty ones for collectors that are used without."""
    used = set(values["collectors"])
    for name in values["collectors"]:
        used.update(found.name for found in candidates(name))
    return {name: values.get(name, {}) for name in BLOCKS if name in used or values.get(name)}


def _job(values: Mapping[str, Any], variants: Mapping[str, Any], source: str, warnings: list[str]) -> Job:
    resources = dict(values["resources"])
    for name in ("timeout", "grace"):
        if name in resources:
            resources[name] = float(resources[name])
    expect = tuple(
        Expectation(
            variant=item.get("variant"),
            vendor=item.get("vendor"),
            collector=item.get("collector"),
            checks={name: item[name] for name in CHECKS if name in item},
        )
        for item in values["expect"]
    )
    same = (
        "name",
        "command",
        "image",
        "collectors",
        "launch_blocking",
        "repeats",
        "env",
        "secrets",
        "env_file",
    )
    return Job(
        **{name: values[name] for name in (*same, "workdir", "mounts", "network", "cluster")},
        variants=variants,
        schedule=Schedule(**values["schedule"]),
        ranges=Ranges(**values["ranges"]),
        resources=Resources(**resources),
        expect=expect,
        options=_options(values),
        source=source,
        warnings=tuple(warnings),
    )
