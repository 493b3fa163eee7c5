"""Changes from run to run: proven ones only, by the estimator of comparisons, on equal hardware."""

from __future__ import annotations

import numpy as np

from profrun.analysis.compare.history import MeasuredRun, changes
from profrun.analysis.compare.stats import estimate


def run(
    step: float, seed: int, *, trials: int = 3, machine: str = "H200", torch: str = "2.10"
) -> MeasuredRun:
    rng = np.random.default_rng(seed)
    times = [[int(step * rng.normal(1, 0.01)) for _ in range(20)] for _ in range(trials)]
    return MeasuredRun(times, {"GPU": machine}, {"torch": torch})


def test_a_planted_change_is_found_with_its_ratio_and_nothing_else() -> None:
    runs = [run(1e6, seed) for seed in range(20)] + [run(1.2e6, seed, torch="2.11") for seed in range(20, 30)]
    found = changes(runs)
    assert found[0] is None
    marked = [place for place, one in enumerate(found) if one and one.verdict in ("faster", "slower")]
    assert marked == [20]
    change = found[20]
    assert change is not None
    same = estimate(runs[19].times, runs[20].times)
    assert (change.verdict, change.ratio, change.ci95) == ("slower", same.ratio, same.ci95)
    assert change.versions == ("torch: 2.10 -> 2.11",)


def test_other_hardware_is_not_compared() -> None:
    _, change = changes([run(1e6, 1), run(2e6, 2, machine="H100")])
    assert change is not None
    assert (change.verdict, change.ratio, change.machine) == ("incomparable", None, ("GPU: H200 -> H100",))


def test_one_trial_proves_nothing() -> None:
    _, change = changes([run(1e6, 1, trials=1), run(2e6, 2, trials=1)])
    assert change is not None
    assert (change.verdict, change.ci95) == ("inconclusive", None)
    assert changes([]) == []
