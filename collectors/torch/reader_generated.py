"""What stands behind generated code: ``*.generated.json`` beside a kineto file, where a mapping left one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profrun.collectors.reading import Source
from profrun.collectors.torch.documents_beside import documents
from profrun.contract.generated_code import ENDING, GeneratedCode, GeneratedFile
from profrun.traces.writer import TraceWriter

_COLUMNS = (
    *("file", "line", "kernel", "operation", "frame"),
    *("source_file", "source_line", "source_function", "is_own", "op", "module", "is_view"),
    "is_gradient_sum",
)

_NO_LINE = (None, None, None, None)


def generated(writer: TraceWriter, sources: Sequence[Source]) -> None:
    """Fill ``generated``; a file of generated code that several ranks have is told once."""
    found = documents(writer, sources, ENDING, GeneratedCode, "kernels of torch.compile have no lines")
    files = {file.path: file for one in found for file in one.files}
    rows = [row for name in sorted(files) for row in _rows(files[name])]
    if rows:
        writer.insert("generated", _COLUMNS, rows)


def _rows(file: GeneratedFile) -> Iterator[tuple[object, ...]]:
    for call in file.calls:
        if not call.operations:
            yield (file.path, call.line, call.kernel, 0, 0, *_NO_LINE, None, None, False, False)
        for number, op in enumerate(call.operations):
            lines = [(one.file, one.line, one.function, one.own) for one in op.stack]
            for frame, line in enumerate(lines or [_NO_LINE]):
                place = (file.path, call.line, call.kernel, number, frame)
                yield *place, *line, op.name, op.module, op.view, op.gradient_sum
