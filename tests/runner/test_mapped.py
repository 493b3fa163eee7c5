"""The addresses of a trace: its own, those of the mapping beside it, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.contract.line_names import Line, line_name
from profrun.errors import InconclusiveError
from profrun.runner import mapped as module
from profrun.runner.mapped import find_mapped, mapped, run_of
from profrun.traces.trace import Trace
from tests.reports.mapped_run import mapped_run
from tests.tracekit import make_trace

A = Line("/me/model.py", 3, "forward")
B = Line("/me/model.py", 4, "forward")


def trace(folder: Path, *, lines: bool = False, stack: bool = False) -> Trace:
    """Two launches, from lines A and B; the first may have its stack."""
    rows: list[tuple[Any, ...]] = [("step", "profrun.step#0", 0, 900, "main", {"depth": 0})]
    for ts, line, kernel in ((100, A, "gemm"), (200, B, "add")):
        round_it = {"parent": 0, "depth": 1}
        if lines:
            rows.append(("range", line_name(line), ts, 50, "main", round_it))
            round_it = {"parent": len(rows) - 1, "depth": 2}
        rows.append(("api", "cudaLaunchKernel", ts + 10, 5, "main", round_it))
        rows.append(("kernel", kernel, ts + 20, 10, "stream 7", {"launch": len(rows) - 1}))
    side = {"stacks": [{"stack": 0, "frame": 0, **A._asdict()}], "call_stacks": [{"slice": 1, "stack": 0}]}
    return make_trace(folder, rows, side=side if stack else None)


def lines_of(found: Trace) -> list[tuple[Line, str] | None]:
    """Line of each kernel and how it was found, in order of time."""
    known = mapped(found)
    return [(known.table[at].lines[0], known.table[at].via) if at >= 0 else None for at in known.of.tolist()]


@pytest.mark.parametrize(
    ("lines", "stack", "beside", "expected"),
    [
        (True, False, False, [(A, "line"), (B, "line")]),
        (False, True, False, [(A, "stack"), None]),
        (False, False, True, [(A, "line"), (B, "line")]),
        (False, True, True, [(A, "line"), (B, "line")]),
    ],
    ids=["a mapping", "stacks alone", "a mapping beside it", "stacks and a mapping beside it"],
)
def test_whose_addresses_count(
    lines: bool,
    stack: bool,
    beside: bool,
    expected: list[tuple[Line, str] | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace(tmp_path / "mapping", lines=True).close()
    monkeypatch.setattr(module, "mapping_beside", lambda _: tmp_path / "mapping" if beside else None)
    with trace(tmp_path / "t", lines=lines, stack=stack) as found:
        assert lines_of(found) == expected


def test_a_trace_of_which_nothing_tells_lines(tmp_path: Path) -> None:
    with (
        trace(tmp_path / "t") as found,
        pytest.raises(InconclusiveError, match="it has no Python stacks, and no mapping of its variant"),
    ):
        mapped(found)


def test_a_mapping_tells_its_own_and_those_of_the_trial_beside_it(tmp_path: Path) -> None:
    run, folder = mapped_run(tmp_path)
    with (
        Trace(run.trial("001-default-torch-r1").trace) as clean,
        Trace(run.trial("002-default-mapping-r1").trace) as mapping,
    ):
        told, own = find_mapped(clean), find_mapped(mapping)
    assert told is not None
    assert own is not None
    assert (told.mapping, own.mapping) == ("002-default-mapping-r1", None)
    files = {line.file for one in told.addresses.table for line in one.lines}
    assert files == {str(folder / "model.py"), str(folder / "train.py")}
    assert (told.addresses.of == own.addresses.of).all()


def test_the_run_of_a_trace(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    found = run_of(run.trial("001-default-torch-r1").trace)
    assert found is not None
    assert found.path == run.path
    assert run_of(tmp_path / "a/b/trace") is None
