"""Paths in any locale, and paths that are no text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.errors import InputError
from profrun.traces.engine_path import engine_path, sql_path
from profrun.traces.writer import TraceWriter

MAKE = """
import sys
from pathlib import Path
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
assert sys.getfilesystemencoding() == "ascii", sys.getfilesystemencoding()
out = Path(sys.argv[1])
with TraceWriter(out) as writer:
    writer.meta.update({"source": "x", "collector": "none"})
    writer.insert("processes", ("process", "pid", "rank"), [(0, 1, 0)])
    writer.finish(check=True)
with Trace(out) as trace:
    assert trace.sql("SELECT pid FROM processes").rows == [(1,)]
"""


def test_a_trace_in_a_folder_of_another_alphabet_under_lc_all_c(tmp_path: Path) -> None:
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", MAKE, str(tmp_path / "ü 'q'")], env=env, check=True)
    assert (tmp_path / "ü 'q'" / "meta.json").exists()


def test_quotes_are_doubled() -> None:
    assert sql_path(Path("a'b")) == "'a''b'"


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(InputError, match=r"xff.* cannot be used: it is no UTF-8 text"):
        engine_path(odd)
    with pytest.raises(InputError), TraceWriter(odd):
        pass
