"""What samples tell about a phase: each cause planted, and the same phases without it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from profrun.analysis.trace.phase_causes import Cause, Stretch, causes
from profrun.contract.sampling import MEANINGS, REASONS, Quantity
from profrun.traces.trace import Trace
from tests.tracekit import make_trace

MS = 1_000_000
CHANGE = 1_000
"""The phases change here, ms: before it one reading each 100 ms, and after it for 2 s."""

FAST = Stretch(0, CHANGE * MS, 3.0, first=True)
SLOW = Stretch(CHANGE * MS, 3 * CHANGE * MS, 3.5)


def sampled(tmp_path: Path, **values: Callable[[int], float]) -> Trace:
    """A trace whose counters have these values at each time in ms; those of the GPU are 100 ms late."""
    host = {"cpu_busy", "cpu_own", "cpu_stolen", "cpu_quota_wait", "cpu_clock"}
    tracks = [
        {"track": 100, "kind": "counter", "process": None, "device": 0, "name": "samples"},
        {"track": 101, "kind": "counter", "process": 0, "device": None, "name": "samples"},
    ]
    rows = []
    for name, value in values.items():
        quantity: Quantity = name  # type: ignore[assignment]
        meaning, late = MEANINGS[quantity], 0 if name in host else 100
        for at in range(5, 3 * CHANGE, 100):
            rows.append(
                {
                    "track": 101 if name in host else 100,
                    "name": meaning.name,
                    "ts_ns": at * MS,
                    "value": float(value(at - late - 1)),
                    "unit": meaning.unit,
                }
            )
    return make_trace(tmp_path / "t", [], side={"tracks": tracks, "counters": rows})


def then(before: float, after: float) -> Callable[[int], float]:
    """One value until the phases change, and another after."""
    return lambda at: before if at < CHANGE else after


def codes(found: tuple[Cause, ...]) -> list[str]:
    return [cause.code for cause in found]


def test_the_power_cap_lowers_the_clock(tmp_path: Path) -> None:
    trace = sampled(tmp_path, sm_clock=then(1980, 1580), reasons=then(0, REASONS["power cap"]))
    (cause,) = causes(trace, SLOW, FAST)
    assert cause == Cause(
        "power-cap", "the power cap lowered the SM clock from 1980 to 1580 MHz", 1.0, 1980, 1580, "MHz", 0
    )
    (boost,) = causes(trace, FAST, SLOW)
    assert (boost.code, boost.now, boost.before) == ("boost-after-idle", 1980, 1580)


def test_a_power_cap_in_both_phases_may_lower_the_clock_further(tmp_path: Path) -> None:
    trace = sampled(tmp_path, sm_clock=then(1602, 1554), reasons=lambda at: REASONS["power cap"])
    (cause,) = causes(trace, SLOW, Stretch(0, CHANGE * MS, 3.4))
    assert (cause.code, cause.share) == ("power-cap", 1.0)
    assert cause.text == "the power cap lowered the SM clock further, from 1602 to 1554 MHz"


def test_a_boost_too_short_for_a_reading_is_told_by_the_last_one_that_cannot_know_better(
    tmp_path: Path,
) -> None:
    """The phase has 60 ms; the reading at its end shows what was 100 ms before: the time before it."""
    trace = sampled(tmp_path, sm_clock=then(1980, 1580), reasons=then(0, REASONS["power cap"]))
    short = Stretch((CHANGE - 60) * MS, CHANGE * MS, 3.0, first=True)
    (cause,) = causes(trace, SLOW, short)
    assert (cause.code, cause.before, cause.now) == ("power-cap", 1980, 1580)


def test_a_phase_without_any_reading_near_it_has_no_cause(tmp_path: Path) -> None:
    trace = sampled(tmp_path, sm_clock=then(1980, 1580), reasons=then(0, REASONS["power cap"]))
    far = Stretch(5 * CHANGE * MS, 5 * CHANGE * MS + 60 * MS, 3.9)
    assert causes(trace, far, FAST) == ()


def test_nothing_sampled_nothing_told(tmp_path: Path) -> None:
    assert causes(make_trace(tmp_path / "t", []), SLOW, FAST) == ()


def test_samples_that_do_not_change_tell_nothing(tmp_path: Path) -> None:
    """The reason is there all the time: it does not tell why the second phase is slower."""
    same = then(REASONS["power cap"], REASONS["power cap"])
    trace = sampled(
        tmp_path, sm_clock=then(1500, 1500), reasons=same, cpu_busy=then(3, 3), cpu_own=then(1, 1)
    )
    assert causes(trace, SLOW, FAST) == causes(trace, FAST, SLOW) == ()


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"sm_clock": then(1980, 1400), "reasons": then(0, REASONS["thermal"])}, "thermal"),
        ({"sm_clock": then(1980, 1400), "reasons": then(0, 0)}, "sm-clock"),
        ({"sm_clock": then(1980, 1400)}, "sm-clock"),
        ({"processes": then(1, 2)}, "other-on-device"),
        ({"memory_used": lambda at: 1e9 + 1e6 * max(at - CHANGE, 0)}, "allocator"),
        ({"cpu_busy": then(1.2, 2.0), "cpu_own": then(1.0, 1.0)}, "other-on-host"),
        ({"cpu_stolen": then(0, 0.4)}, "stolen"),
        ({"cpu_quota_wait": then(0, 0.4)}, "cpu-quota"),
        ({"cpu_clock": then(3000, 2400)}, "cpu-clock"),
    ],
)
def test_each_cause(tmp_path: Path, values: dict[str, Callable[[int], float]], code: str) -> None:
    trace = sampled(tmp_path, **values)
    assert codes(causes(trace, SLOW, FAST)) == [code]
    assert code not in codes(causes(trace, FAST, SLOW)), "the faster phase is not slowed by it"


def test_the_programs_own_work_on_the_host_is_no_disturbance(tmp_path: Path) -> None:
    trace = sampled(tmp_path, cpu_busy=then(1.2, 3.2), cpu_own=then(1, 3))
    assert causes(trace, SLOW, FAST) == ()


def test_warm_up_with_busy_cores_is_compilation(tmp_path: Path) -> None:
    trace = sampled(tmp_path, cpu_busy=then(4.2, 1.2), cpu_own=then(4, 1))
    first = Stretch(0, CHANGE * MS, 60.0, warm_up=True)
    assert codes(causes(trace, first, SLOW)) == ["warm-up", "compilation"]
