"""Every address of recorded programs is right, as the grids of their kernels tell. Recorded on an H200.

``programs.py`` wrote the programs (seed 1), ``tests/data/h200/README.md`` has the command. Each was recorded
as a mapping, and again under torch.profiler alone: the addresses of the second come from the first.
"""

from __future__ import annotations

import re
import statistics
import tarfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from profrun.analysis.compare import compare, read_trial
from profrun.analysis.compare.address_join import joined
from profrun.analysis.trace.addresses import addresses
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.conftest import ROOT
from tests.truth.judge import judged
from tests.truth.programs import CASES, size_of, sizes, source

RECORDED = ROOT / "tests/data/h200/truth"
RIGHT: dict[str, dict[str, int]] = {
    "eager": {"line": 33, "autograd": 66},
    "compiled": {"compiled": 60, "line": 3},
    "graph": {"line replayed": 30, "autograd replayed": 66, "line": 3},
    "both": {"compiled replayed": 60, "line": 3},
    "checkpoint": {"line": 54, "autograd": 66},
    "function": {"line": 63},
    "triton": {"line": 33, "autograd": 30},
    "threads": {"autograd": 66, "line": 3},
    "ddp": {"line": 33, "autograd": 66, "backward": 30},
    "ddp-compiled": {"compiled": 60, "backward": 30, "line": 3},
}
"""GPU work of three steps whose address is right, by how it was found and whether a graph replayed it."""
MORE = {("threads", "mapping"): {"line": 5}}
"""What a mapping tells beyond what can be carried over."""
UNTOLD = {
    ("threads", "clean"): {"no-line": 24, "ambiguous": 6},
    ("threads", "mapping"): {"no-line": 28},
}
"""Work without an address: each forward runs in a thread of its own, which ends. In kineto's file, the calls
of all these threads have the id of the first. So only the calls of the first have their lines round them."""
OTHER = {
    "both": Counter({"multi_tensor_apply": 3}),
    "ddp": Counter({"Memcpy DtoD": 30}),
    "ddp-compiled": Counter({"Memcpy DtoD": 30}),
}
"""Work with an address that no grid tells: copies of inputs to a graph, and of gradients out of buckets."""


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Its name, and a folder with the program and the traces ``mapping`` and ``clean``."""
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(RECORDED / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    for name in ("mapping", "clean"):
        normalize(sorted((folder / name).glob("*.trace.json")), folder / "traces" / name)
    return request.param, folder


@pytest.mark.thorough
@pytest.mark.parametrize("trial", ["mapping", "clean"])
def test_every_address_is_right(case: tuple[str, Path], trial: str) -> None:
    name, folder = case
    with Trace(folder / "traces/mapping") as mapping, Trace(folder / "traces" / trial) as trace:
        found = addresses(mapping) if trial == "mapping" else joined(trace, mapping)
        assert found is not None
        result = judged(folder / "program.py", trace, found)
    assert result.wrong == []
    assert result.right == RIGHT[name] | MORE.get((name, trial), {})
    assert result.unresolved == UNTOLD.get((name, trial), {})
    assert (result.share == 1.0) == ((name, trial) not in UNTOLD)
    found_other = Counter[str]()
    for text, count in result.other.items():
        found_other[next(one for one in OTHER[name] if one in text)] += count
    assert found_other == OTHER.get(name, Counter())


def test_a_grid_tells_the_size_whatever_a_block_does() -> None:
    known = sizes(14)
    for block in (128, 512, 1024, 4096):
        assert [size_of(-(-size // block), known) for size in known] == known
    assert size_of(7, known) is None


@pytest.mark.parametrize("name", CASES)
def test_a_program_can_be_written_with_and_without_a_line(name: str) -> None:
    whole, less = source(name, 3), source(name, 3, without=2)
    compile(whole, "program.py", "exec")
    compile(less, "program.py", "exec")
    assert whole.count("# n=") == less.count("# n=") + 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["eager", "compiled"])
def test_the_time_that_vanishes_with_a_line_lies_within_the_interval_of_its_row(
    name: str, tmp_path: Path
) -> None:
    """Three trials with the line and three without: the row says what the kernels of its grid took."""
    with tarfile.open(ROOT / f"tests/data/h200/deleted/{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    texts = [(tmp_path / side / "program.py").read_text() for side in ("with", "without")]
    sizes_of = [{int(size) for size in re.findall(r"# n=(\d+)", text)} for text in texts]
    (size,) = sizes_of[0] - sizes_of[1]
    sides, vanished = [], []
    for folder in (tmp_path / "with", tmp_path / "without"):
        trials = []
        normalize(sorted((folder / "mapping").glob("*.trace.json")), folder / "mapping/trace")
        for place in sorted(folder.glob("clean*")):
            normalize(sorted(place.glob("*.trace.json")), place / "trace")
            with Trace(folder / "mapping/trace") as mapping, Trace(place / "trace") as trace:
                trials.append(read_trial(trace, mapped=joined(trace, mapping)))
                vanished.append(of_grid(trace, size, sizes_of[0]))
        sides.append(trials)
    result = compare(sides[0], sides[1], by="line", allow=["work"])
    (row,) = [row for row in result.rows if row.status == "removed"]
    (line,) = [at for at, text in enumerate(texts[0].splitlines(), 1) if text.endswith(f"# n={size}")]
    assert row.label == f"program.py:{line} forward"
    assert row.only_ci95 is not None
    low, high = row.only_ci95
    assert low < statistics.fmean(vanished[:3]) < high
    assert vanished[3:] == [0.0, 0.0, 0.0]


def of_grid(trace: Trace, size: int, known: Iterable[int]) -> float:
    """ns per step of the kernels whose grid tells this size."""
    (steps,) = trace.sql("SELECT count(*) FROM slices WHERE kind = 'step'").rows[0]
    query = "SELECT grid_x, dur_ns FROM kernels JOIN slices USING (slice)"
    times = [int(ns) for grid, ns in trace.sql(query).rows if size_of(grid or 0, known) == size]
    return sum(times) / int(steps)


@pytest.mark.thorough
def test_lines_of_an_eager_and_of_a_compiled_program_are_compared(tmp_path: Path) -> None:
    """The compiled one has a line more, so all lines below it have moved."""
    sides = []
    for name in ("eager", "compiled"):
        with tarfile.open(RECORDED / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path / name, filter="data")
        folders = [tmp_path / name / one for one in ("mapping", "clean")]
        for folder in folders:
            normalize(sorted(folder.glob("*.trace.json")), folder / "trace")
        with Trace(folders[0] / "trace") as mapping, Trace(folders[1] / "trace") as trace:
            sides.append(read_trial(trace, mapped=joined(trace, mapping)))
    result = compare([sides[0]], [sides[1]], by="line", allow=["work"])
    rows = {row.label: row for row in result.rows}
    text = (tmp_path / "eager/program.py").read_text().splitlines()
    forward = [f"program.py:{at} forward" for at, line in enumerate(text, 1) if "# n=" in line]
    assert [name for name in forward if not (rows[name].a_ns and rows[name].b_ns)] == []
    (step,) = [at for at, line in enumerate(text, 1) if line == "    opt.step()"]
    assert f"program.py:{step} -> {step + 1} <module>" in rows
    whole = result.sides[1].gpu_ns - result.sides[0].gpu_ns
    assert sum(row.delta_ns for row in result.rows) == pytest.approx(whole)
