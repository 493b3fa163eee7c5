"""Two sides of several kinds of trials: like is compared with like, and what is left out is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.compared_trial import StepWork
from profrun.analysis.compare.gate import parse_rule
from profrun.analysis.compare.point_pairs import PointPairs, compare_points, gate_of
from profrun.errors import UsageError
from tests.analysis.compare.trials import stops, trial

NONE = {"collector": "none", "tool": "none", "profiled": False, "measure": "event"}
TORCH = {"collector": "torch", "tool": "torch"}
NSYS = {"collector": "nsys", "tool": "nsys"}


def _run(job: str, times: int, *points: dict[str, Any], repeats: int = 3, **more: Any) -> list[ComparedTrial]:
    """A run with so many repeats of each point; steps take about ``times``. Only profilers see kernels."""
    made = [
        trial(
            tuple(times + repeat + wobble for wobble in range(5)),
            job=job,
            **{"variant": "v", **more, **point},
        )
        for point in points
        for repeat in range(repeats)
    ]
    return [one if one.conditions.profiled else replace(one, kernel_groups=()) for one in made]


def _told(found: PointPairs) -> list[tuple[tuple[str | None, str | None], str, bool, tuple[int, int]]]:
    return [
        (pair.variants, pair.recorder.collector, pair.recorder.blocking, pair.comparison.trials)
        for pair in found.pairs
    ]


def test_two_runs_compare_none_with_none_and_torch_with_torch() -> None:
    found = compare_points(_run("r1", 1000, TORCH, NONE), _run("r2", 1500, NONE, TORCH))
    v = ("v", "v")
    assert _told(found) == [(v, "none", False, (3, 3)), (v, "torch", False, (3, 3))]
    assert found.left_out == ()
    assert found.deciding(v).comparison.verdict == "slower"
    assert found.telling(v).recorder.collector == "torch"  # the other one has no kernels of a profiler
    assert found.exit_code == 1
    document: Any = found.to_json()
    assert [(one["collector"], one["verdict"]) for one in document["pairs"]] == [
        ("none", "slower"),
        ("torch", "slower"),
    ]
    assert "left_out" not in document


def test_what_only_one_side_has_is_left_out_and_said() -> None:
    ncu = {"collector": "ncu", "tool": "ncu", "replayed": True}
    a = _run("r1", 1000, NONE, NSYS, ncu, {**NONE, "blocking": True})
    found = compare_points(a, _run("r2", 1500, NONE, TORCH, ncu))
    assert [pair.recorder.collector for pair in found.pairs] == ["none"]
    assert [one.what for one in found.left_out] == [
        "v, nsys of r1: r2 has no such trial",
        "v, ncu: kernels were replayed to read counters, so there is no timeline",
        "v, torch of r2: r1 has no such trial",
        "v, none, blocking of r1: r2 has no such trial",
    ]
    document: Any = found.to_json()
    assert document["verdict"] == "slower"  # one pair: its comparison itself
    assert len(document["left_out"]) == 4


def test_variants_of_the_same_name_are_compared() -> None:
    a = _run("r1", 1000, NONE, variant="eager") + _run("r1", 800, NONE, variant="old")
    b = _run("r2", 1000, NONE, variant="new") + _run("r2", 500, NONE, TORCH, variant="eager")
    found = compare_points(a, b)
    assert found.variants == (("eager", "eager"),)
    assert {one.what for one in found.left_out} == {
        "eager, torch of r2: r1 has no such trial",
        "variant old of r1: r2 has no variant of that name",
        "variant new of r2: r1 has no variant of that name",
    }


def test_the_only_variants_of_both_sides_are_compared_whatever_their_names() -> None:
    found = compare_points(
        _run("r", 1000, NONE, TORCH, variant="a"), _run("r", 900, NONE, TORCH, variant="b")
    )
    assert found.variants == (("a", "b"),)
    assert len(found.pairs) == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (
            _run("r1", 10, NONE, variant="x") + _run("r1", 9, NONE, variant="y"),
            _run("r2", 10, NONE, variant="z"),
        ),
        (_run("r1", 10, NONE, TORCH), _run("r2", 10, NSYS)),
    ],
)
def test_nothing_in_common_is_refused_and_never_mixed(a: list[ComparedTrial], b: list[ComparedTrial]) -> None:
    (pair,) = compare_points(a, b).pairs
    assert pair.comparison.ratio is None
    assert "mixed" in stops(pair.comparison)
    (allowed,) = compare_points(a, b, allow=["mixed", "profiled", "clock", "collector"]).pairs
    assert allowed.comparison.trials == (len(a), len(b))  # asked for by name


def test_timeline_profilers_of_two_vendors_are_one_kind() -> None:
    amd = {"collector": "rocprof", "tool": "rocprof", "vendor": "amd"}
    found = compare_points(_run("r1", 1000, NONE, NSYS), _run("r2", 1500, NONE, amd))
    assert [pair.recorder.collector for pair in found.pairs] == ["none", "nsys/rocprof"]


def test_a_gate_asks_the_unprofiled_pair_of_steps_and_the_profiled_one_of_kernels() -> None:
    a = _run("r1", 1000, NONE) + _run("r1", 3000, TORCH)
    b = _run("r2", 1500, NONE) + _run("r2", 3000, TORCH, name="other")
    rules = [parse_rule("slower > 3%"), parse_rule("kernel 'other' slower > 3%")]
    found = compare_points(a, b)
    assert found.telling(("v", "v")).comparison.kernels
    step, kernel = gate_of(found, rules).results  # steps of profiled trials are longer
    assert (step.outcome, step.message.split(" [")[0]) == ("failed", "step time: 49.9 % slower")
    assert (kernel.outcome, kernel.message.split(" (")[0]) == (
        "passed",
        "kernel other: 1.501 us -> 1.501 us per step",
    )
    assert gate_of(found, rules).exit_code == 1


def test_other_work_that_a_profiler_recorded_stops_the_unprofiled_pair_too() -> None:
    """Steps alone do not tell the work; the torch trials of the same programs do."""
    unknown = [
        [replace(one, work=StepWork(), facts={}) for one in _run(job, 1000, NONE)] for job in ("r1", "r2")
    ]
    alone = compare_points(*unknown).pairs[0].comparison
    assert [one.code for one in alone.reasons if one.code.startswith("work")] == ["work_unproven"]
    torch = [
        [replace(one, work=StepWork(matrix_flops=flops)) for one in _run(job, 1000, TORCH)]
        for job, flops in (("r1", 1e9), ("r2", 4e9))
    ]
    a, b = ([*left, *right] for left, right in zip(unknown, torch, strict=True))
    assert [stops(pair.comparison) for pair in compare_points(a, b).pairs] == [["work"], ["work"]]
    allowed = compare_points(a, b, allow=["work"]).deciding(("v", "v")).comparison
    assert [one.code for one in allowed.reasons if one.allowed] == ["work"]
    assert allowed.ratio is not None


def test_the_gate_asks_for_the_energy_of_the_trials_whose_step_times_decide() -> None:
    """Under the profiler both sides use as much; without it b uses a fifth more."""

    def side(job: str, joules: float) -> list[ComparedTrial]:
        plain, torch = (_run(job, 1000, point) for point in (NONE, TORCH))
        return [
            replace(one, energy_j=energy + number / 1000)
            for trials, energy in ((plain, joules), (torch, 9.0))
            for number, one in enumerate(trials)
        ]

    found = compare_points(side("r1", 2.0), side("r2", 2.4))
    (result,) = gate_of(found, [parse_rule("energy > 5%")]).results
    assert result.outcome == "failed"
    assert result.message.startswith("energy per step: 2.001 J -> 2.401 J: 20.0 % more [")


def test_trials_without_a_profiler_are_divided_by_the_work_that_profiled_ones_tell() -> None:
    """b does four times the work in twice the time, with three times the energy."""

    def side(job: str, time: int, tokens: int, joules: float) -> list[ComparedTrial]:
        plain = [replace(one, work=StepWork(), energy_j=joules) for one in _run(job, time, NONE)]
        return [*plain, *(replace(one, work=StepWork(tokens=tokens)) for one in _run(job, time, TORCH))]

    sides = side("r1", 1000, 100, 2.0), side("r2", 2000, 400, 6.0)
    found = compare_points(*sides, per="token").deciding(("v", "v")).comparison
    assert [one.per for one in found.sides] == [100, 400]
    assert found.ratio == pytest.approx(0.5, abs=0.01)
    energy = next(one for one in found.metrics if one.name == "energy")
    assert energy.a == pytest.approx(0.02)
    assert energy.b == pytest.approx(0.015)
    with pytest.raises(UsageError, match="does not tell its token"):
        compare_points(
            *([one for one in trials if not one.conditions.profiled] for trials in sides), per="token"
        )
