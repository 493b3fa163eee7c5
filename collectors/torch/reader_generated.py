"""What stands behind generated code: ``*.generated.json`` beside a kineto file, where a mapping left one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profrun.collectors.reading import Source
from profrun.contract import json_text
from profrun.contract.codec import DocumentError, from_json
from profrun.contract.generated_code import ENDING, GeneratedCode, GeneratedFile
from profrun.traces.writer import TraceWriter

_COLUMNS = (
    "file",
    "line",
    "kernel",
    "stack",
    "frame",
    "source_file",
    "source_line",
    "source_function",
)


def generated(writer: TraceWriter, sources: Sequence[Source]) -> None:
    """Fill ``generated``; a file of generated code that several ranks have is told once."""
    found: dict[str, GeneratedFile] = {}
    damaged = 0
    example = None
    for source in sources:
        path = source.path.with_name(source.path.name + ENDING)
        if not path.is_file():
            continue
        try:
            code = from_json(GeneratedCode, json_text.read(path))
        except (OSError, ValueError, DocumentError) as error:
            damaged, example = damaged + 1, f"{path.name}: {error}"
            continue
        found |= {file.path: file for file in code.files}
    rows = [row for name in sorted(found) for row in _rows(found[name])]
    if rows:
        writer.insert("generated", _COLUMNS, rows)
    writer.issue(
        "generated_code_unreadable",
        damaged,
        f"files *{ENDING} cannot be read: kernels of torch.compile have no lines",
        example,
    )


def _rows(file: GeneratedFile) -> Iterator[tuple[object, ...]]:
    for call in file.calls:
        for number, stack in enumerate(call.stacks):
            for frame, line in enumerate(stack):
                yield file.path, call.line, call.kernel, number, frame, line.file, line.line, line.function
