"""The phases of a trace's run, the steady one and the window's, with what samples tell about them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace.steadiness import Steadiness, steadiness, window_phase
from profrun.contract.sampling import REASONS
from profrun.traces.trace import Trace
from tests.tracekit import make_trace

MS = 1_000_000


def step_rows(durs_ms: Sequence[float], active: range, warmup: range = range(0)) -> list[dict[str, Any]]:
    """Rows of ``step_times``; the steps follow each other without gaps."""
    rows, at = [], 0
    for step, dur in enumerate(durs_ms):
        part = "active" if step in active else "warmup" if step in warmup else "outside"
        dur_ns = int(dur * MS)
        rows.append(
            {"process": 0, "step": step, "ts_ns": at, "dur_ns": dur_ns, "clock": "wall", "part": part}
        )
        at += dur_ns
    return rows


def run(tmp_path: Path, durs_ms: Sequence[float], active: range, collector: str = "none") -> Trace:
    side = {"step_times": step_rows(durs_ms, active)}
    return make_trace(tmp_path / "t", [], meta={"collector": collector}, side=side)


def found(trace: Trace) -> Steadiness:
    result = steadiness(trace)
    assert result is not None
    return result


def test_a_trace_without_the_steps_of_the_run_has_no_answer(tmp_path: Path) -> None:
    assert steadiness(make_trace(tmp_path / "t", [])) is None


def test_the_window_lies_in_the_boost_and_the_program_lives_after_it(tmp_path: Path) -> None:
    told = found(run(tmp_path, [2.94] * 18 + [3.42] * 582, range(5, 10)))
    assert [(p.first_step, p.last_step, p.steps, round(p.median_ns), p.level) for p in told.phases] == [
        (0, 17, 18, 2_940_000, 0),
        (18, 599, 582, 3_420_000, 1),
    ]
    assert (told.window, told.steady) == (0, 1)
    assert told.window_ratio == pytest.approx(2.94 / 3.42)
    assert told.steady_steps.tolist() == list(range(18, 600))
    assert told.phases[1].start_ns == told.phases[0].end_ns == int(18 * 2.94 * MS)
    assert [phase.why for phase in told.phases] == [(), ()], "nothing was sampled: nothing is told"


def test_a_steady_run_has_one_phase(tmp_path: Path) -> None:
    told = found(run(tmp_path, [3.0, 3.01, 2.99] * 20, range(5, 10)))
    assert (len(told.phases), told.steady, told.window, told.window_ratio) == (1, 0, 0, 1.0)
    assert len(told.steady_steps) == 60


def test_all_steps_count_where_there_are_too_few(tmp_path: Path) -> None:
    told = found(run(tmp_path, [30.0, 3, 3, 3, 3], range(1, 3)))
    assert (told.phases, told.steady, told.window, told.window_ratio) == ((), None, None, None)
    assert told.steady_steps.tolist() == [0, 1, 2, 3, 4]


def test_recorded_steps_make_no_phase_but_lie_in_one(tmp_path: Path) -> None:
    """A profiler makes steps 10 to 29 three times longer; the jump is at step 40."""
    durs = [3.0] * 10 + [9.0] * 20 + [3.0] * 10 + [4.0] * 60
    told = found(run(tmp_path, durs, range(10, 30), collector="torch"))
    assert [(p.first_step, p.last_step, p.steps) for p in told.phases] == [(0, 39, 40), (40, 99, 60)]
    assert (told.window, told.steady) == (0, 1)


def test_recorded_steps_after_warm_up_are_no_warm_up(tmp_path: Path) -> None:
    durs = [60.0, 9.0, 9.0, 9.0] + [3.0] * 40
    told = found(run(tmp_path, durs, range(1, 4), collector="torch"))
    assert [(p.first_step, p.last_step, p.warm_up) for p in told.phases] == [(0, 0, True), (1, 43, False)]
    assert (told.window, told.window_ratio) == (1, 1.0)


def test_samples_tell_why_the_steady_phase_is_slower(tmp_path: Path) -> None:
    """The boost has 53 ms and no reading of its own; what is read is 100 ms old or more."""
    rows = []
    for at in range(-250, 2000, 100):  # in ms; a reading of 155 ms and later is about the steady phase
        capped = at - 100 >= 53
        for name, unit, value in (
            ("SM clock", "MHz", 1580.0 if capped else 1980.0),
            ("slowed by", "mask", float(REASONS["power cap"] if capped else 0)),
        ):
            rows.append({"track": 9, "name": name, "ts_ns": at * MS, "value": value, "unit": unit})
    track = {"track": 9, "kind": "counter", "process": None, "device": 0, "name": "samples"}
    steps = step_rows([2.94] * 18 + [3.42] * 582, range(5, 10))
    side = {"step_times": steps, "tracks": [track], "counters": rows}
    trace = make_trace(tmp_path / "t", [], meta={"collector": "none"}, side=side)
    boost, steady = found(trace).phases
    assert [cause.text for cause in steady.why] == [
        "the power cap lowered the SM clock from 1980 to 1580 MHz"
    ]
    assert [cause.code for cause in boost.why] == ["boost-after-idle"]
    window = window_phase(trace)
    assert window is not None
    assert window.why == ("the power cap lowered the SM clock from 1980 to 1580 MHz",)
