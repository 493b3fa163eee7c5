"""The tables of docs/job-spec.md, from the schema: ``python -m profrun.jobs.docs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from profrun.contract.options import REQUIRED
from profrun.contract.profilers import BUILT_IN, NEUTRAL
from profrun.jobs.change_kinds import RESULTS, SEQUENTIAL
from profrun.jobs.cluster import CLUSTER, TOLERATION
from profrun.jobs.expectation import ACHIEVED, BYTES, EXPECT, RATIO, SAME_KERNELS
from profrun.jobs.model import RANGES, RESOURCES, SCHEDULE
from profrun.jobs.schema import JOB, block_of
from profrun.jobs.tables import Field, Table

BLOCKS = (*BUILT_IN, *NEUTRAL)
PAGE = Path(__file__).resolve().parent.parent / "docs" / "job-spec.md"

_GENERATED = re.compile(r"<!-- (keys|blocks) -->\n.*?<!-- end -->", re.DOTALL)


def _cell(text: str) -> str:
    return text.replace("\n", " ")


def _default(field: Field) -> str:
    if field.default is REQUIRED:
        return "**required**"
    if field.default_words:
        words = field.default_words
    elif field.default is None:
        return ""
    elif isinstance(field.default, bool):
        words = str(field.default).lower()
    elif isinstance(field.default, (str, int, float)):
        words = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    else:
        words = ""
    return f"`{words}`" if words and " " not in words else words


def rows(table: Table[object], skip: tuple[str, ...] = ()) -> Iterator[str]:
    """The Markdown table of a spec table."""
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for name, field in table.fields.items():
        if name not in skip:
            value = field.kind.words() if not isinstance(field.kind, Table) else f"a mapping, see `{name}`"
            yield f"| `{name}` | {_cell(value)} | {_default(field)} | {_cell(field.doc)} |"


def _keys() -> str:
    return "\n".join(rows(JOB, BLOCKS))


def _blocks() -> str:
    sections: dict[str, Table[object]] = {
        "`schedule`": SCHEDULE,
        "`ranges`": RANGES,
        "`resources`": RESOURCES,
        "`results`": RESULTS,
        "`sequential`": SEQUENTIAL,
        "`expect`: each entry": EXPECT,
        "`same_kernels` of an entry": SAME_KERNELS,
        "`ratio` of an entry": RATIO,
        "`bytes` of an entry": BYTES,
        "`achieved` of an entry": ACHIEVED,
        **{f"`{name}`": table for name in BLOCKS if (table := block_of(name)).fields},
        "`cluster`": CLUSTER,
        "`cluster.tolerations`: each entry": TOLERATION,
    }
    parts = (f"## {title}\n\n" + "\n".join(rows(table)) for title, table in sections.items())
    return "\n\n".join(parts)


def renewed(page: str) -> str:
    """The page with its generated parts written anew; what stands outside the markers stays."""
    parts = {"keys": _keys, "blocks": _blocks}
    return _GENERATED.sub(lambda m: f"<!-- {m[1]} -->\n{parts[m[1]]()}\n<!-- end -->", page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
