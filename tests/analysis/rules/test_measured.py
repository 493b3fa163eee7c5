"""How often the remedy of a rule helped, counted by hand on two small improvements."""

from __future__ import annotations

from profrun.analysis.rules.measured import Precision, measured_rows, precision
from profrun.store.improvement import ExperimentResult, Improvement, Promised

LOADER = Promised("dataloader-stall", 4_000, 0.4)
FIRST = Improvement(
    "one",
    "default",
    (
        ExperimentResult("w4", ("loader-workers=4",), {}, (LOADER,), "proven", 0.7, (0.68, 0.72)),
        ExperimentResult("w8", ("loader-workers=8",), {}, (LOADER,), "slower", 1.1, (1.08, 1.12)),
        ExperimentResult("tf32", ("tf32",), {}, (Promised("fp32-gemm", None, None),), "failed"),
    ),
    gpus=("H200",),
)
SECOND = Improvement(
    "two",
    "default",
    (ExperimentResult("w4", ("loader-workers=4",), {}, (LOADER,), "proven", 0.5, (0.48, 0.52)),),
)


def test_what_measured_nothing_does_not_count_and_a_promise_is_broken_only_surely() -> None:
    rows = [*measured_rows(FIRST, "a"), *measured_rows(SECOND, "b")]
    assert [(row.program, row.change, round(row.gain, 3)) for row in rows] == [
        ("a", "loader-workers=4", 0.3),
        ("a", "loader-workers=8", -0.1),
        ("b", "loader-workers=4", 0.5),
    ]
    assert [round(row.excess or 0, 3) for row in rows] == [-0.12, -0.52, 0.08]
    assert precision(rows)[0].findings == 2
    assert precision([*rows, *measured_rows(SECOND, "a")])[0].findings == 3, "a on two machines"
    (found,) = precision(rows)
    assert found == Precision("dataloader-stall", 3, 2, 1, 2, 2, (0.5, 1 - 0.7), 1, ("a", "b"))
    assert found.typical == 0.4


def test_a_change_may_give_what_all_findings_promised_that_asked_for_it() -> None:
    asked = (Promised("unfused-attention", 4_000, 0.4), Promised("pointwise-chains", 1_000, 0.1))
    bound = Promised("memory-bound", None, None)
    for low, excess in ((0.45, -0.05), (0.55, 0.05)):
        one = ExperimentResult("c", ("compile=default",), {}, (*asked, bound), "proven", 0.4, (0.38, 1 - low))
        rows = measured_rows(Improvement("one", "default", (one,)), "a")
        assert [row.promised for row in rows] == [0.4, 0.1, None]
        assert [row.excess and round(row.excess, 3) for row in rows] == [excess, excess, None]


def test_promises_of_one_change_are_at_most_the_whole_step() -> None:
    asked = (Promised("overhead-bound", 9_000, 0.9), Promised("pointwise-chains", 8_000, 0.8))
    one = ExperimentResult("c", ("compile=default",), {}, asked, "proven", 0.1, (0.08, 0.12))
    (row, _) = measured_rows(Improvement("one", "default", (one,)), "a")
    assert row.allowed == 1.0
