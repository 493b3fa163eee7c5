"""May two sides be compared? One condition is changed at a time, and the reasons are checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import Reason, compare
from profrun.analysis.compare.comparability import STOPS, recorded_alike
from profrun.contract.denominator import RUN, Denominator
from profrun.contract.git_state import GitState
from tests.analysis.compare.trials import CONDITIONS, OTHER, stops, trial


def test_equal_conditions_do_not_stop() -> None:
    found = compare([trial()], [trial(OTHER)])
    assert stops(found) == []
    assert found.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        (
            {"collector": "none", "tool": "none", "profiled": False, "measure": "event"},
            "profiled",
            "overhead",
        ),
        ({"collector": "nsys", "tool": "nsys"}, "collector", "torch against nsys"),
        ({"measure": "wall"}, "clock", "span against wall"),
        ({"denominator": RUN}, "no_steps", "step against run"),
        ({"blocking": True}, "blocking", "blocking"),
        ({"blocking": None, "blocking_seen": True}, "blocking", "one side only"),
        ({"throttled": ("hw_thermal_slowdown",)}, "throttled", "hw_thermal_slowdown"),
        ({"replayed": True}, "replayed", "replayed"),
        ({"ranks": 2}, "ranks", "1 ranks against 2"),
        ({"doubts": (("graph_kernels_hidden", "hidden work"),)}, "unreliable", "hidden work"),
    ],
)
def test_one_condition_stops_and_may_be_allowed(changes: dict[str, Any], code: str, word: str) -> None:
    found = compare([trial()], [trial(OTHER, **changes)])
    assert stops(found) == [code]
    assert (found.verdict, found.ratio, found.rows, found.metrics) == ("incomparable", None, (), ())
    stop = next(one for one in found.reasons if one.code == code)
    assert word in str(stop)
    assert code in STOPS
    allowed = compare([trial()], [trial(OTHER, **changes)], allow=[code])
    assert allowed.ratio is not None
    assert [one.code for one in allowed.reasons if one.allowed] == [code]


def test_a_run_has_no_steps_to_doubt_and_no_statistics_of_steps() -> None:
    """Three runs on each side: the trials are the samples."""
    a, b = ([trial((time,), denominator=RUN) for time in times] for times in ((100, 101, 99), (50, 51, 49)))
    found = compare(a, b)
    assert (found.verdict, found.trials, found.denominator) == ("faster", (3, 3), RUN)
    assert found.ratio == pytest.approx(0.5, rel=0.001)
    assert found.ci95 is not None
    assert [one.name for one in found.metrics] == ["GPU work", "GPU busy", "host", "kernel time"]
    assert "few_steps" not in [one.code for one in found.reasons]
    single = compare(a[:1], b[:1])
    assert (single.verdict, single.ci95) == ("inconclusive", None)
    assert "`repeats: 3` in the job" in single.next_steps[0].what


def test_a_recording_that_was_cut_is_no_time_of_the_run() -> None:
    """Both were cut at the limit: their equal times say nothing of the program."""
    cut = Denominator("run", 10 * 10**9)
    found = compare([trial(denominator=cut)], [trial(OTHER, denominator=cut)])
    assert stops(found) == ["cut"]
    assert found.reasons[0].what == "t holds only the first 10 s of the run, and 1 more trial only a part"
    assert "max_seconds" in found.reasons[0].fix


def test_trials_of_one_side_must_be_of_one_kind() -> None:
    found = compare([trial(), trial(OTHER, devices=("NVIDIA L4",))], [trial((97, 99))])
    assert stops(found) == ["mixed"]
    assert "NVIDIA L4" in found.reasons[0].what


def test_what_does_not_stop_is_said() -> None:
    changes: dict[str, Any] = {
        "devices": ("AMD Instinct MI300X",),
        "vendor": "amd",
        "software": {"torch": "2.13"},
        "sm_mhz": 1000.0,
        "values": {"precision": "fp16"},
        "outside_ns": 50,
        "total_gpu_ns": 100,
    }
    found = compare([trial(sm_mhz=1900.0)], [trial(OTHER, **changes)])
    told = {one.code: one.what for one in found.reasons}
    assert told["device"] == "GPUs: NVIDIA H200 against AMD Instinct MI300X"
    assert told["software"] == "torch: unknown against 2.13"
    assert told["variant"] == "precision: None against fp16"
    assert told["clocks"].endswith("1900 against 1000 MHz")
    assert "50.0 % of its GPU time" in told["window_edge"]
    assert told["few_steps"].startswith("side b: only 5 whole steps")
    assert found.ratio is not None


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ([("n1", "n2")], [("n1",), ("n2",)], None),
        ([("n1",)], [()], None),  # a laptop against a cluster: the nodes' names tell nothing
        ([("n1",)], [("n2",)], "other nodes: n1 against n2"),
        (
            [("n1",), ("n2",)],
            [tuple(f"m{i}" for i in range(9))],
            "other nodes: n1, n2 against m0, m1, m2, m3 and 5 more",
        ),
    ],
)
def test_trials_on_other_nodes_are_compared_with_a_warning(
    a: list[tuple[str, ...]], b: list[tuple[str, ...]], told: str | None
) -> None:
    found = compare([trial(nodes=one) for one in a], [trial(OTHER, nodes=one) for one in b])
    reasons = [one for one in found.reasons if one.code == "nodes"]
    assert [one.what for one in reasons] == ([told] if told else [])
    assert {one.severity for one in reasons} <= {"warning"}
    assert stops(found) == []


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        (GitState("abc", False, seen_by="job"), GitState("abc", False, seen_by="submit"), None),
        (GitState("abc", None, seen_by="job"), GitState("abc", True, seen_by="job"), None),
        (
            GitState("abc", False, seen_by="job"),
            GitState("abc", True, "no git", "submit"),
            "git: abc, clean against abc, with changes (seen where the run was submitted; no git)",
        ),
        (GitState(why="git is not in this image"), GitState("abc", False), "git: unknown against abc, clean"),
    ],
)
def test_commits_differ_and_who_saw_them_is_said(one: GitState, two: GitState, told: str | None) -> None:
    sides = [
        [trial(ns, git=git, software={"git": git.sha} if git.sha else {})]
        for ns, git in (((100, 99), one), (OTHER, two))
    ]
    found = [reason.what for reason in compare(*sides).reasons if reason.code == "software"]
    assert found == ([told] if told else [])


def _recorded(collector: str, tool: str, **more: Any) -> dict[str, Any]:
    return {"collector": collector, "tool": tool, "vendor": "amd", **more}


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        (("timeline", "rocprof"), ("timeline", "rocprof"), True),
        (("timeline", "rocprof"), ("counters", "rocprof"), False),
        (("timeline", "nsys"), ("nsys", "nsys"), True),  # the job names the tool itself
        (("timeline", "nsys"), ("timeline", "rocprof"), False),
    ],
)
def test_a_timeline_and_counters_of_one_tool_are_not_recorded_alike(
    one: tuple[str, str], two: tuple[str, str], *, alike: bool
) -> None:
    a, b = (replace(CONDITIONS, collector=name, tool=tool) for name, tool in (one, two))
    assert recorded_alike(a, b) is alike


def test_timeline_and_counters_are_no_repeats_of_one_thing_and_are_not_compared() -> None:
    timeline, counters = _recorded("timeline", "rocprof"), _recorded("counters", "rocprof")
    mixed = compare([trial(**timeline), trial(OTHER, **counters)], [trial((97, 99), **timeline)])
    assert "mixed" in stops(mixed)
    assert "rocprof for timeline" in mixed.reasons[0].what
    found = compare([trial(**timeline)], [trial(OTHER, **counters)])
    assert stops(found) == ["collector"]
    assert found.reasons[0].what == "different profilers: rocprof for timeline against rocprof for counters"


def test_the_timeline_profilers_of_two_vendors_are_compared_with_a_warning() -> None:
    nvidia = trial(collector="timeline", tool="nsys")
    found = compare([nvidia], [trial(OTHER, **_recorded("timeline", "rocprof"))])
    assert stops(found) == []
    assert ("collector", "warning") in [(one.code, one.severity) for one in found.reasons]
    counters = compare([nvidia], [trial(OTHER, **_recorded("counters", "rocprof"))])
    assert stops(counters) == ["collector"]


def test_reasons_are_findings_gravest_first_and_allowed_ones_last() -> None:
    changes: dict[str, Any] = {"blocking": True, "sm_mhz": 1000.0}
    found = compare([trial(sm_mhz=1900.0)], [trial(OTHER, **changes)], allow=["blocking"])
    assert [(one.code, one.severity, one.allowed) for one in found.reasons] == [
        ("clocks", "warning", False),
        ("few_steps", "info", False),
        ("few_steps", "info", False),
        ("blocking", "critical", True),
    ]
    assert str(Reason("c", "info", "what", "why", "fix")) == "what: why; fix"
