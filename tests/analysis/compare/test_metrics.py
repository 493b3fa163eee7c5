"""Quantities beside the step time, each with its own interval."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.compared_trial import KernelGroup, StepSample
from profrun.analysis.compare.metrics import energy_note, metrics
from profrun.analysis.compare.sides import Side
from tests.analysis.compare.trials import trial


def _trial(scale: int, copy_ns: int) -> ComparedTrial:
    """Three steps: two kernels of 40 ns at the same time on two streams, and a copy."""
    made = trial((1, 2, 3), label=f"{scale}")
    samples = tuple(
        StepSample(n, 0, 500 * scale, 90 * scale, 80 * scale + copy_ns, 40 * scale + copy_ns, 2, 3)
        for n in range(3)
    )
    copy = KernelGroup("Memcpy HtoD", "memcpy", "memcpy", (), "", None, False, 3, 3 * copy_ns)
    return replace(
        made,
        samples=samples,
        kernel_groups=(*made.kernel_groups, copy),
        series={"k": (80 * scale,) * 3, "Memcpy HtoD": (copy_ns,) * 3},
    )


def test_work_busy_time_and_kernel_time_are_quantities_of_their_own() -> None:
    sides = Side([_trial(1, 20), _trial(1, 30)]), Side([_trial(2, 20), _trial(2, 30)])
    found = {one.name: one for one in metrics(sides, "median", 0.01)}
    assert list(found) == ["step, mean", "GPU work", "GPU busy", "host", "kernel time"]
    assert round(found["GPU work"].a ** 2) == 100 * 110  # geometric mean over both trials
    assert round(found["GPU busy"].a ** 2) == 60 * 70
    assert (round(found["kernel time"].a), round(found["kernel time"].b)) == (80, 160)
    assert found["kernel time"].verdict == "slower"


def test_kernel_time_needs_the_time_of_every_kernel() -> None:
    one = _trial(1, 20)
    part = replace(one, series={"Memcpy HtoD": (20,) * 3})
    found = metrics((Side([part, part]), Side([one, one])), "median", 0.01)
    assert "kernel time" not in {metric.name for metric in found}


def test_a_quantity_among_several_needs_more_proof_than_one_alone() -> None:
    """Busy time differs a little in b; its own interval just excludes 1; the other quantities are equal."""

    def side(busy: tuple[int, ...]) -> Side:
        steps = [(500, 500), (502, 498), (498, 502)]
        return Side(
            [
                replace(
                    _trial(1, 20),
                    samples=tuple(
                        StepSample(n, 0, time, 400 + n, 100, ns, 2, 3) for n, time in enumerate(pair)
                    ),
                )
                for pair, ns in zip(steps, busy, strict=True)
            ]
        )

    found = {one.name: one for one in metrics((side((60, 61, 62)), side((63, 64, 65))), "median", 0.01)}
    busy = found["GPU busy"]
    assert busy.ci95 is not None
    assert busy.ci95[0] > 1
    assert busy.verdict == "inconclusive"


def _side(*joules: float | None, per: float = 1.0, note: str | None = None) -> Side:
    return Side([replace(_trial(1, 20), energy_j=one, energy_note=note) for one in joules], per)


def test_energy_has_one_value_per_trial_and_words_of_its_own() -> None:
    sides = _side(2.00, 2.02, 1.98), _side(2.20, 2.22, 2.18)
    found = {one.name: one for one in metrics(sides, "median", 0.01)}["energy"]
    assert (found.unit, found.verdict) == ("J", "more")
    assert round(found.a, 2) == 2.0
    assert round(found.ratio, 2) == 1.1
    assert found.ci95 is not None
    assert 1.05 < found.ci95[0] < 1.1 < found.ci95[1] < 1.15
    less = {one.name: one for one in metrics((sides[1], sides[0]), "median", 0.01)}["energy"]
    assert less.verdict == "less"
    assert energy_note(sides) is None


def test_energy_is_divided_by_the_work() -> None:
    found = metrics((_side(2.0, 2.0, per=1000), _side(8.0, 8.0, per=2000)), "median", 0.01)
    energy = next(one for one in found if one.name == "energy")
    assert (round(energy.a, 6), round(energy.b, 6)) == (0.002, 0.004)


def test_energy_that_one_trial_does_not_tell_is_not_compared_and_the_reason_is_given() -> None:
    short = "400 ms of steady steps; 4 s are needed: run at least 42 steady steps"
    sides = _side(2.0, 2.0), _side(2.0, None, note=short)
    assert "energy" not in {one.name for one in metrics(sides, "median", 0.01)}
    assert energy_note(sides) == f"1: {short}"
    assert energy_note((_side(2.0), _side(None))) == "no GPU of 1 was sampled"
    assert energy_note((_side(None), _side(None))) is None
