"""``matrix:`` to named variants: the product of the axes, minus ``exclude``, plus ``include``; a job with
some of its variants."""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import replace

from profrun.contract.points import value_word
from profrun.contract.redact import Redactor
from profrun.errors import UsageError
from profrun.jobs.command import text_of
from profrun.jobs.expectation import Expectation
from profrun.jobs.model import Job
from profrun.jobs.nodes import Node, Scalar
from profrun.jobs.problems import Problems, suggest
from profrun.jobs.spec_kinds import MatrixSpec, Point

MAX_POINTS = 1000


def expand(matrix: MatrixSpec, node: Node, problems: Problems) -> dict[str, Point]:
    """Name -> values of each point, in the order of the axes (the last one changes fastest).

    Notes a problem for an exclusion that names no axis or takes nothing out, for an inclusion that is there
    already, for more than 1000 points, and for none.
    """
    axes, exclude, include = matrix
    count = math.prod(len(values) for values in axes.values())
    if count > MAX_POINTS:
        problems.bad(
            node.where, f"matrix: {count} points", f"keep to {MAX_POINTS}: fewer values, or 'variants:'"
        )
        return {}
    points: list[dict[str, Scalar]] = [
        dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
    ]
    full = list(points)
    for i, exclusion in enumerate(exclude):
        where = _item(node, "exclude", i).where
        unknown = next((name for name in exclusion if name not in axes), None)
        if unknown is not None:
            problems.bad(where, f"matrix.exclude: '{unknown}' is no axis", suggest(unknown, axes, "axes"))
        elif not any(_matches(point, exclusion) for point in full):
            problems.bad(where, "matrix.exclude: no point fits this", "use values that the axes have")
        points = [point for point in points if not _matches(point, exclusion)]
    for i, inclusion in enumerate(include):
        if any(_same(point, inclusion) for point in points):
            where = _item(node, "include", i).where
            problems.bad(where, "matrix.include: this point is there already", "leave it out")
        points.append(dict(inclusion))
    if not points and not problems.found:
        problems.bad(node.where, "matrix: every point is excluded", "exclude fewer")
    return _named(points)


def _item(node: Node, key: str, index: int) -> Node:
    part = node.get(key)
    return part.items[index] if part is not None and index < len(part.items) else node


def _equal(a: Scalar, b: Scalar) -> bool:
    """1, 1.0 and true are three values here."""
    return type(a) is type(b) and a == b


def _matches(point: Point, pattern: Point) -> bool:
    return all(name in point and _equal(point[name], value) for name, value in pattern.items())


def _same(a: Point, b: Point) -> bool:
    return a.keys() == b.keys() and _matches(a, b)


def _named(points: list[dict[str, Scalar]]) -> dict[str, Point]:
    """Names that can be folders: ``batch_8-precision_fp16``, with a digest where two would be the same.

    Values of an axis that holds secrets are counted instead: ``token_1``, ``token_2``.
    """
    order = _secret_axes(points)
    names: dict[str, Point] = {}
    for point in points:
        words = (
            f"{key}_{order[key].index(value) + 1}" if key in order else value_word(key, text_of(value))
            for key, value in point.items()
        )
        name = "-".join(words).lstrip("_")
        if len(name) > 64 or name in names or not name:
            digest = hashlib.sha256(repr(sorted(point.items())).encode()).hexdigest()[:8]
            name = f"{name[:50]}-{digest}".lstrip("-")
        names[name] = point
    return names


def _secret_axes(points: list[dict[str, Scalar]]) -> dict[str, list[Scalar]]:
    """The axes whose values must not be in names, with their values in order."""
    axes: dict[str, list[Scalar]] = {}
    for point in points:
        for key, value in point.items():
            axes.setdefault(key, []).append(value)
    return {
        key: list(dict.fromkeys(values))
        for key, values in axes.items()
        if any(Redactor().named(key, value) != value for value in values)
    }


def keep_only(job: Job, wanted: Iterable[str]) -> Job:
    """The job with only some of its variants, and without what is about the others.

    The job's warnings say how many expectations that are. It runs no rounds any more where the base is left
    out, or everything else.

    Args:
        wanted: names or globs.

    Raises:
        UsageError: one of them fits no variant.
    """
    kept: set[str] = set()
    for pattern in wanted:
        fits = fnmatch.filter(job.variants, pattern)
        if not fits:
            raise UsageError(
                f"there is no variant '{pattern}'", fix=suggest(pattern, job.variants, "variants are")
            )
        kept.update(fits)
    expect = tuple(left for item in job.expect if (left := _about(item, kept)) is not None)
    lost = len(job.expect) - len(expect)
    rounds = job.sequential is not None and job.sequential.base in kept and len(kept) > 1
    note = f"{lost} of {len(job.expect)} expectations need variants that are left out: they are not checked"
    return replace(
        job,
        variants={name: values for name, values in job.variants.items() if name in kept},
        changes={name: changes for name, changes in job.changes.items() if name in kept},
        sequential=job.sequential if rounds else None,
        expect=expect,
        warnings=(*job.warnings, *([note] if lost else [])),
    )


def _about(item: Expectation, kept: set[str]) -> Expectation | None:
    """What is left of an expectation with these variants alone, None where nothing is."""
    globs = item.variant and tuple(glob for glob in item.variant if fnmatch.filter(kept, glob))
    if globs == () or not kept >= set(item.others.values()):
        return None
    return replace(item, variant=globs)
