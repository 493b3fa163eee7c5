"""Programs without steps that were recorded as a whole on an H200 (tests/data/h200/whole)."""

from __future__ import annotations

import lzma
import sqlite3
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.conftest import ROOT

WHOLE = ROOT / "tests" / "data" / "h200" / "whole"
STEPS = "SELECT name FROM slices WHERE kind = 'step'"
KERNELS = (
    "SELECT l.step, count(*) FROM step_launches l JOIN slices s USING (slice) WHERE s.kind = 'kernel' "
    "GROUP BY l.step ORDER BY l.step"
)


def unpacked(tmp_path: Path, program: str) -> Path:
    """The export of nsys, with the steps.json of the hook beside it."""
    kept = WHOLE / program / "nsys" / "rank0"
    place = tmp_path / "rank0"
    place.mkdir()
    (place / "report.sqlite").write_bytes(lzma.decompress((kept / "report.sqlite.xz").read_bytes()))
    (place / "steps.json").write_bytes((kept / "steps.json").read_bytes())
    return place / "report.sqlite"


@pytest.mark.parametrize(
    ("program", "kernels"),
    [("bare", 402), ("cp", 302), ("jx-run", 484), ("vec", 100)],
    ids=["torch, bare loop", "CuPy", "JAX", "CUDA C"],
)
def test_a_run_is_one_step_with_all_its_kernels(tmp_path: Path, program: str, kernels: int) -> None:
    export = unpacked(tmp_path, program)
    with sqlite3.connect(export) as raw:
        assert raw.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone() == (kernels,)
    normalize([export], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert trace.sql(STEPS).rows == [("profrun.run",)]
        assert trace.sql(KERNELS).rows == [(0, kernels)]


def test_the_bare_loop_is_the_same_under_torch_and_nsys(tmp_path: Path) -> None:
    """200 products, 200 additions and the two kernels that fill the inputs, and the same work."""
    normalize([unpacked(tmp_path, "bare")], tmp_path / "trace")
    found = []
    for folder in (tmp_path / "trace", WHOLE / "bare" / "torch" / "trace"):
        with Trace(folder) as trace:
            (work,) = trace.sql("SELECT sum(dur_ns) FROM slices WHERE kind = 'kernel'").rows
            found.append((trace.sql(STEPS).rows, trace.sql(KERNELS).rows, work[0]))
    (*nsys, nsys_ns), (*torch, torch_ns) = found
    assert nsys == torch == [[("profrun.run",)], [(0, 402)]]
    assert nsys_ns == pytest.approx(torch_ns, rel=0.001)


def test_calls_of_a_jitted_function_are_steps_without_torch(tmp_path: Path) -> None:
    """JAX: the window of three steps of 100, each with the product and what follows it."""
    normalize([unpacked(tmp_path, "jx")], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert trace.sql(KERNELS).rows == [(2, 2), (3, 2), (4, 2)]
