"""What is said where the step times of two sides prove nothing: what can be judged, and what varies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, compare
from profrun.analysis.compare.compared_trial import StepSample
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import trial


def _trial(step_us: float, gpu_us: float, host_us: float, **changes: Any) -> ComparedTrial:
    """A trial of five steps that take so long, with GPU work of one stream and host time."""
    made = trial(
        (1, 2, 3, 4, 5), fingerprint=repr((step_us, gpu_us, host_us)), label=f"t{step_us:g}", **changes
    )
    step_ns, gpu_ns, host_ns = (int(1000 * value) for value in (step_us, gpu_us, host_us))
    samples = tuple(
        StepSample(n, 0, step_ns + n, host_ns + n, gpu_ns + n, gpu_ns + n, 1, 1) for n in range(5)
    )
    return replace(made, samples=samples)


def _codes(a: list[ComparedTrial], b: list[ComparedTrial]) -> list[str]:
    found = compare(a, b)
    assert found.verdict == "inconclusive"
    return [one.code for one in found.next_steps]


def test_the_gpu_is_judged_where_the_host_varies() -> None:
    """Host time differs 2 times between trials of side a; GPU work is 6 % less in b in every trial."""
    a = [_trial(400, 100, 390), _trial(600, 100.1, 590), _trial(800, 99.9, 790)]
    b = [_trial(500, 94, 490), _trial(650, 94.1, 640), _trial(790, 94, 780)]
    found = compare(a, b)
    assert found.verdict == "inconclusive"
    gpu, varies = found.next_steps[0], found.next_steps[-1]
    assert gpu.code == "gpu_can_be_judged"
    assert gpu.what.startswith(
        "the GPU's work alone can be judged: t*00 100 us -> t*0 94.04 us per step: 6.0 % faster"
    )
    assert varies.code == "host_varies"
    assert varies.what == (
        "the host time of t*00 differs 2.03 times between trials (390 us to 790 us), "
        "its GPU busy time only 1.00 times between trials (99.9 us to 100.1 us)"
    )


def test_one_trial_that_is_far_from_the_others_is_named() -> None:
    a = [_trial(500, 100, 100), _trial(505, 100, 100), _trial(900, 100, 100)]
    b = [_trial(490, 100, 100), _trial(501, 100, 100), _trial(507, 100, 100)]
    found = compare(a, b)
    (outlying,) = [one for one in found.next_steps if one.code == "outlying_trial"]
    assert outlying.what == "trial t900 of a takes 900 us per step, the others 500 us to 505 us"


def test_times_that_are_divided_by_work_are_told_per_work() -> None:
    """100 us of GPU work per step of 10 tokens against 940 us of 100 tokens: 10 us and 9.4 us per token."""
    a = [_trial(400, 100, 390), _trial(600, 100.1, 590), _trial(800, 99.9, 790)]
    b = [_trial(5000, 940, 4900), _trial(6500, 941, 6400), _trial(7900, 940, 7800)]
    found = compare(a, b, per="10,100")
    texts = [one.what for one in found.next_steps]
    assert "a 10 us -> b 9.403 us per 10,100: 6.0 % faster" in texts[0]
    assert "(39 us to 79 us per 10,100), its GPU busy time only" in texts[-1]
    assert not any("per step" in text for text in texts)


def test_clocks_are_named_where_they_differ() -> None:
    a = [_trial(500, 100, 100, sm_mhz=1980.0), _trial(700, 140, 100, sm_mhz=1410.0)]
    assert _codes(a, [_trial(550, 110, 100), _trial(560, 110, 100)])[-1] == "clocks_vary"


def test_trials_that_vary_for_an_unknown_reason_are_said_to_vary() -> None:
    a = [_trial(500, 100, 100), _trial(600, 150, 100), _trial(700, 200, 100)]
    assert _codes(a, [_trial(550, 110, 100), _trial(660, 160, 100)])[-1] == "trials_vary"


def test_a_number_of_trials_is_named_only_if_somebody_would_run_so_many() -> None:
    near = [_trial(500, 100, 100), _trial(530, 106, 100), _trial(515, 103, 100)]
    more = [_trial(531, 106, 100), _trial(560, 112, 100), _trial(545, 109, 100)]
    assert "more_trials" in _codes(near, more)  # 6 % more, and trials differ by 6 %
    far = [_trial(502, 100, 100), _trial(529, 106, 100), _trial(516, 103, 100)]
    codes = _codes(near, far)
    assert "more_trials" not in codes  # next to no change: thousands would be needed
    assert "more_trials_no_help" in codes


def test_one_trial_per_side_says_how_many_to_record() -> None:
    (only,) = compare([_trial(500, 100, 100)], [_trial(600, 100, 100)]).next_steps
    assert (only.code, only.severity) == ("one_trial", "info")
    assert "record at least 3 trials per side (`repeats: 3` in the job)" in only.what


@pytest.mark.parametrize("b_us", [500, 1000])
def test_nothing_is_said_where_the_step_times_prove_something(b_us: int) -> None:
    a = [_trial(500 + wobble / 10, 100, 100) for wobble in range(4)]
    b = [_trial(b_us + wobble / 10 + 0.01, 100, 100) for wobble in range(4)]
    found = compare(a, b)
    assert found.verdict in ("same", "slower")
    assert found.next_steps == ()


@pytest.mark.thorough
def test_eager_and_compiled_code_on_a_busy_machine(recorded: Recorded) -> None:
    """Three repeats each on an H200: host time differs too much for a verdict, the GPU's work does not."""
    a, b = (
        [recorded(f"h200/torch/rep{number}_{name}") for number in (1, 2, 3)]
        for name in ("mlp", "mlp_compile")
    )
    found = compare(a, b)
    assert found.too_wide
    assert [one.code for one in found.next_steps] == ["gpu_can_be_judged", "more_trials", "outlying_trial"]
    assert "*_mlp 235.6 us -> rep*_mlp_compile 223.8 us per step: 5.0 % faster [" in found.next_steps[0].what
