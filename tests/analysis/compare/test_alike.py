"""Trials in another state than most: left out where that is known, and always said."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.compare import ComparedTrial, compare
from profrun.analysis.compare.alike import alike
from tests.analysis.compare.trials import trial

CAP = ("power-cap",)


def plain(ns: int, state: tuple[str, ...] = (), *, phase: str = "steady") -> ComparedTrial:
    made = trial((ns, ns + 1, ns - 1), label=f"t{ns}{state}", profiled=False, tool="none", collector="none")
    return replace(made, state=state, phase=phase)  # type: ignore[arg-type]


def test_a_trial_at_the_power_cap_among_trials_that_are_not_is_left_out_and_named() -> None:
    a = [plain(1000), plain(1001), plain(1120, CAP)]
    b = [plain(1002), plain(1003), plain(1004)]
    found = alike(a, b, 0.01)
    assert (list(found.a), list(found.b)) == (a[:2], b)
    (reason,) = found.reasons
    assert (reason.code, reason.severity) == ("other_state", "warning")
    assert "1 trial ran in another state than most (with power cap: 11.9 % slower)" in reason.what
    assert a[2].conditions.label in reason.what
    result = compare(a, b)
    assert result.trials == (2, 3)
    assert "other_state" in {one.code for one in result.reasons}


def test_too_few_trials_are_left_alone() -> None:
    a, b = [plain(1000), plain(1120, CAP)], [plain(1002), plain(1003)]
    found = alike(a, b, 0.01)
    assert (found.a, found.b) == (a, b)
    assert "too few are left" in found.reasons[0].what


def test_another_state_with_the_same_times_and_another_time_in_the_same_state_are_no_reason() -> None:
    b = [plain(1002), plain(1003), plain(1004)]
    assert alike([plain(1000), plain(1001), plain(1005, CAP)], b, 0.01).reasons == ()
    far = [plain(1000), plain(1001), plain(1300)]
    assert alike(far, b, 0.01).a == far


def test_states_that_go_with_the_sides_are_compared_and_said() -> None:
    a, b = [plain(1000), plain(1001)], [plain(1120, CAP), plain(1121, CAP)]
    found = alike(a, b, 0.01)
    assert (found.a, found.b) == (a, b)
    assert [one.code for one in found.reasons] == ["states_differ"]
    one_more = alike([*a, plain(1002)], b, 0.01)
    assert [one.code for one in one_more.reasons] == ["states_differ"]


def test_steps_of_different_phases_are_not_compared_unless_asked() -> None:
    a, b = [plain(1000), plain(1001)], [plain(1002, phase="window"), plain(1003, phase="window")]
    result = compare(a, b)
    assert [one.code for one in result.reasons if one.stops] == ["phase"]
    assert compare(a, b, allow=("phase",)).ratio is not None
    old = compare([replace(one, phase="window") for one in a], b)
    assert "phase_used" in {one.code for one in old.reasons}
    assert old.ratio is not None
