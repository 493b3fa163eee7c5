"""May these be compared? One condition changed at a time, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import Comparison, Conditions, Trial, compare
from profrun.analysis.compare.comparability import AMOUNT, STOPS
from profrun.analysis.compare.trial import Atom, Facts, Unit, Work, trial_from_json
from profrun.errors import UsageError

CONDITIONS = Conditions(
    label="t", fingerprint="f", source="kineto", collector="torch", vendor="nvidia", measure="span",
    profiled=True, blocking=False, blocking_seen=0.0, replayed=False, ranks=1, devices=("NVIDIA H200",),
)  # fmt: skip


def trial(
    times: tuple[int, ...] = (100, 101, 99, 100, 102),
    *,
    name: str = "k",
    work: Work | None = None,
    **changes: Any,
) -> Trial:
    """A trial of one kernel a step that takes half of the step."""
    count = len(times)
    return Trial(
        conditions=replace(CONDITIONS, **{"fingerprint": repr((times, name, changes))} | changes),
        units=tuple(Unit(n, 0, time, time, time // 2, time // 2, 1, 1) for n, time in enumerate(times)),
        atoms=(Atom(name, "gemm", "compute", (), "", None, False, count, sum(times) // 2),),
        facts={name: Facts(name, name, "gemm", shapes=(("8x1x1 blocks of 128x1x1", count),))},
        series={name: tuple(time // 2 for time in times)},
        host=(),
        work=work or Work(matrix_flops=1e9),
    )


OTHER = (98, 100, 101, 99, 100)


def _stops(found: Comparison) -> list[str]:
    return [one.code for one in found.reasons if one.severity == "stop" and not one.allowed]


def test_equal_conditions_do_not_stop() -> None:
    found = compare([trial()], [trial(OTHER)])
    assert _stops(found) == []
    assert found.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"collector": "none", "profiled": False, "measure": "event"}, "profiled", "overhead"),
        ({"collector": "nsys"}, "collector", "nsys against torch|torch against nsys"),
        ({"measure": "wall"}, "clock", "span against wall"),
        ({"blocking": True}, "blocking", "blocking"),
        ({"blocking": None, "blocking_seen": 1.0}, "blocking", "one side only"),
        ({"throttled": ("hw_thermal_slowdown",)}, "throttled", "hw_thermal_slowdown"),
        ({"replayed": True}, "replayed", "replayed"),
        ({"ranks": 2}, "ranks", "1 ranks against 2"),
        ({"doubts": (("graph_kernels_hidden", "hidden work"),)}, "unreliable", "hidden work"),
    ],
)
def test_one_condition_stops_and_may_be_allowed(changes: dict[str, Any], code: str, word: str) -> None:
    found = compare([trial()], [trial(OTHER, **changes)])
    assert _stops(found) == [code]
    assert (found.verdict, found.ratio, found.rows, found.metrics) == ("incomparable", None, (), ())
    stop = next(one for one in found.reasons if one.code == code)
    assert any(part in stop.message for part in word.split("|"))
    assert code in STOPS
    allowed = compare([trial()], [trial(OTHER, **changes)], allow=[code])
    assert allowed.ratio is not None
    assert [one.code for one in allowed.reasons if one.allowed] == [code]


@pytest.mark.parametrize(
    ("a", "b", "different"),
    [
        # What was seen counts before what was said: the variant asked for 8, the hook saw 2.
        ({"inputs": "[2, 64] float", "values": {"batch": 8}}, {"inputs": "[2, 64] half"}, False),
        ({"inputs": "[2, 64] float"}, {"inputs": "[4, 64] float"}, True),
        ({"values": {"batch": 8}, "name": "x"}, {"values": {"batch": 16}, "name": "y"}, True),
        ({"values": {"batch": 8, "compile": False}, "name": "x"},
         {"values": {"batch": 8, "compile": True}, "name": "y"}, False),
        ({"name": "x", "job": "r", "variant": "v"}, {"name": "y", "job": "r", "variant": "v"}, False),
        ({"name": "x"}, {"name": "y"}, True),  # other kernels, and nothing tells
        ({"name": "x"}, {"name": "x"}, False),  # the same kernels with the same grids
        ({"work": Work(matrix_flops=1e9)}, {"work": Work(matrix_flops=1.01e9)}, False),
        ({"work": Work(matrix_flops=1e9)}, {"work": Work(matrix_flops=1.1e9)}, True),
        # Recomputation does more FLOPs on the same inputs.
        ({"work": Work(3e9), "inputs": "[2] f"}, {"work": Work(4e9), "inputs": "[2] f"}, False),
        ({"work": Work(1e9), "inputs": "[2] f"}, {"work": Work(4e9), "inputs": "[2] f"}, True),
    ],
)  # fmt: skip
def test_same_work_or_not(a: dict[str, Any], b: dict[str, Any], *, different: bool) -> None:
    nothing = {"work": Work()}
    found = compare([trial(**nothing | a)], [trial(OTHER, **nothing | b)])
    assert ("work" in _stops(found)) is different


def test_trials_of_one_side_must_be_of_one_kind() -> None:
    found = compare([trial(), trial(OTHER, devices=("NVIDIA L4",))], [trial((97, 99))])
    assert _stops(found) == ["mixed"]
    assert "NVIDIA L4" in found.reasons[0].message


def test_what_does_not_stop_is_said() -> None:
    changes: dict[str, Any] = {
        "devices": ("AMD Instinct MI300X",), "vendor": "amd", "software": {"torch": "2.13"}, "sm_mhz": 1000.0,
        "values": {"precision": "fp16"}, "outside_ns": 50, "total_gpu_ns": 100,
    }  # fmt: skip
    found = compare([trial(sm_mhz=1900.0)], [trial(OTHER, **changes)])
    told = {one.code: one.message for one in found.reasons}
    assert told["device"] == "GPUs: NVIDIA H200 against AMD Instinct MI300X"
    assert told["software"] == "torch: unknown against 2.13"
    assert told["variant"] == "precision: None against fp16"
    assert told["clocks"].endswith("1900 against 1000 MHz")
    assert "50.0 % of its GPU time" in told["window_edge"]
    assert told["few_steps"].startswith("side b: only 5 whole steps")
    assert found.ratio is not None


def test_a_cold_first_step_is_named_and_stays_in_the_statistics() -> None:
    cold = trial((900, 100, 101, 99, 100))
    units = tuple(replace(unit, outlier=unit.step == 0) for unit in cold.units)
    found = compare([trial()], [replace(cold, units=units)])
    assert found.sides[1].outliers == ("t: step 0",)
    assert found.sides[1].steps == 5
    assert found.sides[1].typical_ns == pytest.approx(100.0)
    mean = next(metric for metric in found.metrics if metric.name == "step, mean")
    assert mean.b == pytest.approx(260.0)


def test_a_step_with_work_missing_is_in_no_number() -> None:
    cut = trial((100, 101, 99, 100, 20))
    units = tuple(replace(unit, edge=unit.step == 4) for unit in cut.units)
    side = compare([trial()], [replace(cut, units=units)]).sides[1]
    assert (side.steps, side.edges) == (4, ("t: step 4",))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: compare([], [trial()]), "side has no trace"),
        (lambda: compare([trial()], [trial(OTHER)], allow=["everything"]), "nothing to allow"),
        (lambda: compare([trial()], [trial(OTHER)], threshold=5.0), "threshold"),
        (lambda: compare([trial()], [trial(OTHER)], by="colour"), "no view"),  # type: ignore[arg-type]
        (lambda: compare([trial()], [trial(OTHER)], per="0,5"), "above 0"),
    ],
)
def test_wrong_use_is_one_clear_line(call: Callable[[], object], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        call()


def test_a_trial_survives_its_json() -> None:
    import json

    whole = trial(values={"batch": 8}, throttled=("sw_power_cap",), doubts=(("a", "b"),))
    assert trial_from_json(json.loads(json.dumps(whole.to_json()))) == whole
    for bad in ({}, {"format": 99}, {"format": 1, "units": "no"}):
        with pytest.raises(ValueError, match=r"format|Object|Expected"):
            trial_from_json(bad)


@pytest.mark.parametrize(
    "name", ["batch", "batch_size", "micro_batch", "seq_len", "n_layers", "hidden_dim", "tokens"]
)
def test_amounts(name: str) -> None:
    assert AMOUNT.match(name)


@pytest.mark.parametrize("name", ["precision", "compile", "attention", "lr", "workers", "log_every", "seed"])
def test_no_amounts(name: str) -> None:
    assert not AMOUNT.match(name)
