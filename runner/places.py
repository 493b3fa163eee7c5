"""Where the GPU work of a trace comes from, as a report shows it: ``places_of``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from profrun.contract.redact import Redactor
from profrun.errors import ProfrunError
from profrun.runner.mapped import find_mapped, run_of

if TYPE_CHECKING:
    from profrun.analysis.trace.addresses import Addresses
    from profrun.analysis.trace.line_table import PlaceTable
    from profrun.reports.content import Places, Source
    from profrun.traces.trace import Trace


NO_SOURCE = (
    "No source is shown: nothing tells from which lines the GPU work comes. `ranges: {lines: true}` in the "
    "job adds one trial per variant that does."
)
"""What a report says that was asked for source and knows no lines."""


def places_of(trace: Trace, *, source: bool = False) -> tuple[Places | None, str]:
    """(what is known of the lines of a trace, what went wrong).

    A mapping that cannot be read does not take the report of another trace with it.

    Args:
        source: whether the report has source text.
    """
    from profrun.analysis.trace.frame import frame
    from profrun.analysis.trace.line_table import place_table
    from profrun.analysis.trace.line_tree import line_tree
    from profrun.reports.content import Places

    try:
        found = find_mapped(trace)
    except ProfrunError as error:
        return None, f"The lines that launched the GPU work are not shown: {error}"
    if found is None:
        return None, NO_SOURCE if source else ""
    columns, known = frame(trace), found.addresses
    lines = place_table(columns, known, "line")
    text = _source(trace, lines, known) if source else None
    modules = place_table(columns, known, "module")
    return Places(lines, modules, line_tree(columns, known), found.mapping, text), ""


def _source(trace: Trace, lines: PlaceTable, known: Addresses) -> Source:
    """The source round the lines of a trace, without the values that its run and this environment hide."""
    from profrun.analysis.trace.frame import frame
    from profrun.reports.content import Source
    from profrun.runner.known_secrets import known_secrets
    from profrun.runner.source_text import source_of

    try:
        redactor = Redactor(known_secrets(run_of(trace.path), os.environ))
    except ProfrunError as error:
        return Source((), (f"no source is shown, because it may hold secrets: {error}",))
    epoch_ns = trace.meta.get("epoch_ns")
    began_ns = epoch_ns + frame(trace).extent[0] if epoch_ns is not None else None
    return source_of(lines, redactor, began_ns, known.digests)
