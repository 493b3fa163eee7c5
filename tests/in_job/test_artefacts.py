"""Files that a trial left: whole, truncated or missing."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

from profrun.in_job import artefacts


def test_artefacts_are_judged_by_their_own_end(tmp_path: Path) -> None:
    raw = tmp_path / "raw/rank0"
    raw.mkdir(parents=True)
    packed = gzip.compress(b'{"traceEvents": []}' * 1000)
    (raw / "whole.json.gz").write_bytes(packed)
    (raw / "cut.json.gz").write_bytes(packed[:-20])
    (raw / "cut.json").write_text('{"a": [1, 2')
    (raw / "whole.csv").write_text("a,b\n1,2\n")
    (raw / "cut.csv").write_text("a,b\n1,")
    (raw / "empty.nsys-rep").touch()
    (raw / "x.partial").write_text("half")
    connection = sqlite3.connect(raw / "whole.sqlite")
    connection.execute(
        "CREATE TABLE t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 5000) "
        "SELECT x FROM n"
    )
    connection.commit()
    connection.close()
    content = (raw / "whole.sqlite").read_bytes()
    (raw / "cut.sqlite").write_bytes(content[: len(content) // 2])
    (raw / "zeroed.sqlite").write_bytes(b"\0" * 4096)
    rows = artefacts.collect(tmp_path, 0, ("*.csv", "*.ncu-rep"))
    states = {row.path.removeprefix("raw/rank0/"): row.state for row in rows}
    assert {name for name, state in states.items() if state == "whole"} == {
        "whole.json.gz",
        "whole.csv",
        "whole.sqlite",
    }
    assert {name for name, state in states.items() if state == "missing"} == {"*.ncu-rep"}
    assert len([state for state in states.values() if state == "truncated"]) == 7
