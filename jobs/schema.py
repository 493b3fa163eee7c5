"""The table of a whole job spec (``JOB``), made from ``Job`` and from the options of the profilers; its JSON
Schema (``job_schema``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from profrun.contract.profilers import (
    BUILT_IN,
    NEUTRAL,
    TIMELINE,
    Profiler,
    all_names,
    candidates,
    names,
    profiler,
)
from profrun.jobs.kinds import Json
from profrun.jobs.model import Job
from profrun.jobs.spec_kinds import Matrix
from profrun.jobs.tables import Field, Table, table_of

MATRIX = Matrix()


@cache
def block_of(name: str) -> Table[object]:
    """The table of a profiler's block, or of a vendor-neutral collector's."""
    if name in NEUTRAL:
        fields = {found.name: _overlay(name, found) for found in candidates(name)}
        return Table(fields, f"keys of '{name}'", dict)
    found = profiler(name)
    table: Table[object] = table_of(found.options, f"keys of '{name}'")
    return table if table.fields else Table({}, f"keys: '{name}' has no options", found.options)


def _overlay(neutral: str, found: Profiler) -> Field:
    vendor = (found.timeline_on if neutral == TIMELINE else found.counters_on)[0].upper()
    doc = f"Laid over the job's `{found.name}` block for `{neutral}` trials on {vendor}."
    return Field(block_of(found.name), doc)


def _block_field(name: str) -> Field:
    return Field(block_of(name), f"Options of `{name}` trials.")


def _other_block(name: str) -> Field | None:
    """The block of a profiler of another package."""
    return _block_field(name) if name in names() else None


def _fields() -> dict[str, Field]:
    """Key -> field, in the order of ``Job``, with what becomes other fields of it at its place."""
    fields: dict[str, Field] = {}
    for name, field in table_of(Job, "").fields.items():
        if name == "cluster":
            fields |= {block: _block_field(block) for block in (*BUILT_IN, *NEUTRAL)}
        fields[name] = field
        if name == "variants":
            fields["matrix"] = Field(
                MATRIX,
                "Instead of `variants`: the full product of the axes, minus `exclude`, plus `include`.",
            )
    return fields


_FIELDS = _fields()
_KEPT = frozenset(table_of(Job, "").fields)
"""Keys that are fields of ``Job`` under the same name."""


def _job(**values: object) -> Job:
    """The job of a spec, but for its matrix."""
    make: Callable[..., Job] = Job
    blocks = {name: value for name, value in values.items() if name not in _KEPT and name != "matrix"}
    return make(
        **{name: value for name, value in values.items() if name in _KEPT},
        options={name: value for name, value in blocks.items() if name not in NEUTRAL},
        overlays={name: value for name, value in blocks.items() if name in NEUTRAL},
    )


JOB = Table(_FIELDS, "known keys", _job, _other_block)


def job_schema() -> Json:
    """JSON Schema (draft 2020-12) of a job spec.

    It holds what that language can say; placeholders, combinations and references between keys are checked
    by ``load_job`` alone. Profilers of other packages that are installed are in it.
    """
    fields = dict(_FIELDS)
    fields |= {name: _block_field(name) for name in all_names() if name not in fields}
    schema = Table(fields, "known keys", _job).schema()
    schema["not"] = {"required": ["variants", "matrix"]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "profrun job", **schema}
