"""Documents that a mapping leaves beside a kineto file: ``documents`` reads those of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from profrun.collectors.reading import Source
from profrun.contract import json_text
from profrun.contract.codec import DocumentError, from_json
from profrun.traces.writer import TraceWriter

Document = TypeVar("Document")


def documents(
    writer: TraceWriter, sources: Sequence[Source], ending: str, kind: type[Document], lost: str
) -> list[Document]:
    """The documents beside these files; one that cannot be read is an issue of the trace.

    Args:
        ending: of their names, after the whole name of the kineto file.
        kind: the dataclass that they hold.
        lost: what is not known where one cannot be read.
    """
    found: list[Document] = []
    damaged, example = 0, None
    for source in sources:
        path = source.path.with_name(source.path.name + ending)
        if path.is_file():
            try:
                found.append(from_json(kind, json_text.read(path)))
            except (OSError, ValueError, DocumentError) as error:
                damaged, example = damaged + 1, f"{path.name}: {error}"
    writer.issue("mapping_unreadable", damaged, f"files *{ending} cannot be read: {lost}", example)
    return found
