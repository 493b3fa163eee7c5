"""What a mapping left beside a kineto file becomes tables; a damaged document is an issue of the trace."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.collectors.normalize import normalize
from profrun.contract import generated_code, source_digests
from profrun.contract.codec import to_json
from profrun.contract.generated_code import (
    GeneratedCall,
    GeneratedCode,
    GeneratedFile,
    Operation,
    SourceLine,
)
from profrun.contract.source_digests import SourceDigests, SourceFile
from profrun.traces.trace import Trace

KINETO = {
    "schemaVersion": 1,
    "traceEvents": [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 1,
            "tid": 1,
            "ts": 1.0,
            "dur": 5.0,
            "args": {},
        }
    ],
}
STACK = (SourceLine("/me/train.py", 9, "<module>"), SourceLine("/me/model.py", 3, "forward"))
CODE = GeneratedCode(
    (
        GeneratedFile(
            "/tmp/cab.py",
            (
                GeneratedCall(20, "triton_poi_0:1", (Operation(STACK, "aten.sin.default", "h.0"),)),
                GeneratedCall(30, "extern_kernels.mm:2"),
                GeneratedCall(40, "extern_kernels.mm:3", (Operation((), "aten.mm.default", "h.1"),)),
            ),
        ),
    )
)
SOURCES = SourceDigests((SourceFile("/me/model.py", ("aa", "", "bb")),))


def recording(folder: Path, name: str = "a.pt.trace.json") -> Path:
    """A kineto file with the documents of a mapping beside it."""
    path = folder / name
    path.write_text(json.dumps(KINETO))
    (folder / f"{name}{generated_code.ENDING}").write_text(json.dumps(to_json(CODE)))
    (folder / f"{name}{source_digests.ENDING}").write_text(json.dumps(to_json(SOURCES)))
    return path


def test_documents_are_tables_of_the_trace(tmp_path: Path) -> None:
    normalize([recording(tmp_path)], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        trace.check()
        assert trace.sql("FROM source_lines ORDER BY line").rows == [
            ("/me/model.py", 1, "aa"),
            ("/me/model.py", 3, "bb"),
        ]
        query = "SELECT line, kernel, frame, source_line, op, module, is_view FROM generated ORDER BY 1, 3"
        assert trace.sql(query).rows == [
            (20, "triton_poi_0:1", 0, 9, "aten.sin.default", "h.0", False),
            (20, "triton_poi_0:1", 1, 3, "aten.sin.default", "h.0", False),
            (30, "extern_kernels.mm:2", 0, None, None, None, False),
            (40, "extern_kernels.mm:3", 0, None, "aten.mm.default", "h.1", False),
        ]


def test_a_damaged_document_is_an_issue_and_the_trace_is_made(tmp_path: Path) -> None:
    path = recording(tmp_path)
    Path(f"{path}{generated_code.ENDING}").write_text('{"files": 3}')
    Path(f"{path}{source_digests.ENDING}").write_text("[")
    normalize([path], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        rows = trace.sql("SELECT code, count FROM issues WHERE code = 'mapping_unreadable'").rows
        assert [count for _, count in rows] == [1, 1]
        assert trace.sql("FROM generated").rows == trace.sql("FROM source_lines").rows == []
