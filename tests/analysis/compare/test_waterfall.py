"""From one side to the other: the bars add up to the difference, to the last ns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profrun.analysis.compare import Comparison, compare
from profrun.analysis.compare.waterfall import MOST, Bar, gpu_waterfall, step_waterfall
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import OTHER, trial


def _adds_up(bars: tuple[Bar, ...], a_ns: float, b_ns: float) -> None:
    first, *changes, last = bars
    assert (first.kind, first.end_ns, last.kind, last.end_ns) == ("side", a_ns, "side", b_ns)
    at = a_ns
    for bar in changes:
        assert bar.begin_ns == pytest.approx(at)
        at = bar.end_ns
    assert at == pytest.approx(b_ns, abs=0.5)
    assert sum(bar.delta_ns for bar in changes) == pytest.approx(b_ns - a_ns, abs=0.5)


def test_a_real_pair_adds_up(recorded: Recorded) -> None:
    found = compare([recorded("h200/torch/mlp")], [recorded("h200/torch/mlp_compile")])
    parts = found.parts
    step = step_waterfall(found)
    _adds_up(step, sum(part.a_ns for part in parts), sum(part.b_ns for part in parts))
    assert found.total_delta_ns == pytest.approx(sum(bar.delta_ns for bar in step[1:-1]))
    _adds_up(gpu_waterfall(found), parts[0].a_ns, parts[0].b_ns)
    assert (step[0].name, step[-1].name) == ("mlp", "mlp_compile")


def test_further_rows_are_one_bar() -> None:
    found = compare([trial()], [trial(OTHER)])
    (row,) = found.kernels
    rows = tuple(replace(row, label=f"k{n}", delta_ns=(-1) ** n * (100.0 - n)) for n in range(MOST + 4))
    bars = gpu_waterfall(replace(found, kernels=rows))
    assert [bar.name for bar in bars[1:4]] == ["k0", "k1", "k2"]
    rest = bars[-2]
    assert (rest.name, rest.kind, rest.rows) == ("4 more", "rest", 4)
    assert rest.delta_ns == sum(one.delta_ns for one in rows[MOST:])


def test_a_refused_comparison_has_none() -> None:
    refused: Comparison = compare([trial()], [trial(OTHER, ranks=2)])
    assert (step_waterfall(refused), gpu_waterfall(refused)) == ((), ())
