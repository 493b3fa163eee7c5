"""A sequential job runs in rounds: what is decided is not run any longer, and a resumed run goes on alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profrun.contract.change_findings import not_applied
from profrun.contract.changes import parse
from profrun.contract.finding import Finding
from profrun.plans.model import Plan, Trial
from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.runner.rounds import NOT_FASTER, TIME_IS_KEPT, TIME_IS_UP, Rounds, decisions
from profrun.store.documents import Steps
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord, read_state
from tests.runner.scripted import Scripted, Watcher, new_run

SPEC = """
name: t
command: python x.py
variants: {base: {}, fast: {}, same: {}, slow: {}}
collectors: [none, torch]
repeats: {none: 8, torch: 1}
sequential: {base: base}
"""
BASE_US = 1000.0
RATIOS: Mapping[str, float] = {"base": 1.0, "fast": 0.7, "same": 1.0, "slow": 1.2}
NOISE = (0.0, 0.002, -0.001, 0.0015, -0.002, 0.001, -0.0015, 0.0005)
"""What trials of one round differ by: other variants have it shifted, so no two are alike."""


def steps(trial: str) -> Sequence[int]:
    """Steps of a trial: the base's time, the variant's ratio, and a little that differs per trial."""
    variant, number = trial.split("-")[1], int(trial.rpartition("-r")[2])
    noise = NOISE[(number + list(RATIOS).index(variant) * 3) % len(NOISE)]
    return [round(BASE_US * 1000 * RATIOS[variant] * (1 + noise))] * 30


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about driving: no reader is asked."""
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])


def driven(run: Run, plan: Plan, engine: Scripted) -> RunState:
    return drive(run, plan, engine, cwd=run.path, observer=Watcher(), interrupts=Interrupts())


def counts(state: RunState, collector: str = "none") -> dict[str, int]:
    """Variant -> its trials that were run."""
    ran = [one.variant for one in state.trials if one.collector == collector and one.attempt]
    return {name: ran.count(name) for name in RATIOS}


def test_each_variant_runs_until_it_is_decided_and_what_is_faster_is_recorded(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC)
    state = driven(run, plan, Scripted(steps=steps))
    ran = counts(state)
    assert ran["base"] == max(ran.values()) < 8
    assert ran["fast"] < 8
    assert ran["slow"] < 8
    found = decisions(plan.job, state.trials)
    assert {name: one.state for name, one in found.items()} == {
        "fast": "faster",
        "same": "no effect",
        "slow": "slower",
    }
    assert counts(state, "torch") == {"base": 1, "fast": 1, "same": 0, "slow": 0}
    assert state.phase == "finished"
    measured = [one for one in state.trials if one.collector == "none"]
    reasons = {one.variant: one.reason for one in measured if one.state == "skipped"}
    assert reasons["fast"] == "it is decided: faster"
    assert reasons["base"] == "all other variants are decided"


def test_rounds_follow_one_another_also_where_an_engine_takes_all_at_once(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC)
    engine = Scripted(concurrent=True, steps=steps)
    state = driven(run, plan, engine)
    rounds = [int(name.rpartition("-r")[2]) for name in engine.started if "-none-" in name]
    assert rounds == sorted(rounds)
    assert [name.split("-")[1] for name in engine.started[:4]] == ["base", "fast", "same", "slow"]
    assert counts(state) == counts(driven(*new_run(tmp_path / "one", SPEC), Scripted(steps=steps)))


def test_a_run_that_is_resumed_runs_what_it_would_have_run(tmp_path: Path) -> None:
    whole = driven(*new_run(tmp_path / "whole", SPEC), Scripted(steps=steps))
    run, plan = new_run(tmp_path / "cut", SPEC)
    last = next(one.id for one in plan.trials if one.repeat == 3 and one.variant == "same")

    class Stop(BaseException):
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        drive(
            run,
            plan,
            Scripted(steps=steps),
            cwd=run.path,
            observer=Watcher(at={("finished", last): stop}),
            interrupts=Interrupts(),
        )
    assert counts(driven(run, plan, Scripted(steps=steps))) == counts(whole)


def test_a_variant_that_fails_is_not_run_again_and_the_others_go_on(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC)
    bad = next(one.id for one in plan.trials if one.repeat == 1 and one.variant == "same")
    state = driven(run, plan, Scripted(steps=steps, ends={bad: "failed"}))
    assert counts(state)["same"] == 1
    skipped = next(one for one in state.trials if one.variant == "same" and one.repeat == 2)
    assert skipped.reason == "its trial of round 1 ended as failed"
    assert decisions(plan.job, state.trials)["fast"].state == "faster"


def test_a_variant_in_which_nothing_was_changed_is_not_run_again(tmp_path: Path) -> None:
    spec = SPEC.replace("sequential:", "changes: {fast: [tf32], same: [fused-optimizer]}\nsequential:")
    run, plan = new_run(tmp_path, spec)
    told = not_applied(parse("fused-optimizer"), "the program made no optimizer")

    def warnings(trial: str) -> tuple[Finding, ...]:
        return (told,) if "-same-" in trial else ()

    state = driven(run, plan, Scripted(steps=steps, warnings=warnings))
    assert (counts(state)["same"], counts(state)["fast"]) == (1, 3)
    skipped = next(one for one in state.trials if one.variant == "same" and one.repeat == 2)
    assert skipped.reason == "nothing was changed: the program made no optimizer"


def test_where_nothing_is_faster_nothing_is_recorded(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC.replace("fast: {}, ", ""))
    state = driven(run, plan, Scripted(steps=steps))
    assert sum(counts(state, "torch").values()) == 0
    assert {one.reason for one in state.trials if one.collector == "torch"} == {NOT_FASTER}


def test_no_round_begins_when_the_budget_is_used_up(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC.replace("{base: base}", "{base: base, budget: 60s}"))
    first = [one for one in plan.trials if one.repeat == 1 and one.collector == "none"]
    later = [one for one in plan.trials if one.repeat > 1]
    records = [_begun(one, run) for one in first]

    def turn(now_s: float) -> set[str]:
        rounds = Rounds(plan, lambda: records, lambda: round(now_s * 1e9))
        return {one.why for one in rounds.turn(later, []).skipped}

    assert turn(1059.0) == set()
    assert turn(1061.0) == {TIME_IS_UP}


@pytest.mark.parametrize(
    ("left_s", "out", "kept"),
    [
        (1200, [], []),  # 3 rounds of the base and 3 variants, 100 s each
        (1199, ["slow"], ["fast", "same"]),
        (899, ["same", "slow"], ["fast"]),
        (1, ["same", "slow"], ["fast"]),
    ],
)
def test_where_time_is_short_it_is_kept_for_the_first_variants(
    tmp_path: Path, left_s: int, out: list[str], kept: list[str]
) -> None:
    """The second round begins; changes are likely to be decided after the fourth."""
    run, plan = new_run(tmp_path, SPEC.replace("{base: base}", f"{{base: base, budget: {400 + left_s}s}}"))
    records = [_took(one, run, 1000.0 + 100 * place) for place, one in enumerate(plan.trials[:4])]
    found = Rounds(plan, lambda: records, lambda: 1400 * 10**9).turn(plan.trials[4:32], [])
    assert {one.trial.variant for one in found.skipped} == set(out)
    assert {one.why for one in found.skipped} <= {f"{TIME_IS_KEPT} {', '.join(kept)}"}
    assert len(found.skipped) == 7 * len(out)
    assert {one.split("-")[1] for one in found.may} == RATIOS.keys() - set(out)
    begun = [*records, _took(plan.trials[4], run, 1400.0)]
    assert not Rounds(plan, lambda: begun, lambda: 1500 * 10**9).turn(plan.trials[5:32], []).skipped


def test_where_gains_are_known_the_time_is_kept_for_the_largest(tmp_path: Path) -> None:
    """After three rounds that decide nothing; only the order of the gains is of interest."""
    ratios = {"base": 1.0, "fast": 0.95, "same": 0.97, "slow": 0.9}
    run, plan = new_run(tmp_path, SPEC.replace("{base: base}", "{base: base, budget: 1400s}"))
    records = [
        _took(one, run, 1000.0 + 100 * place, ratios[one.variant] * (1 + (place * 7 % 5 - 2) / 20))
        for place, one in enumerate(plan.trials[:12])
    ]
    assert {one.state for one in decisions(plan.job, records).values()} == {"go on"}
    found = Rounds(plan, lambda: records, lambda: 2200 * 10**9).turn(plan.trials[12:32], [])
    best = min(decisions(plan.job, records).items(), key=lambda item: item[1].ratio or 1.0)[0]
    assert {one.why for one in found.skipped} == {f"{TIME_IS_KEPT} {best}"}
    assert {one.split("-")[1] for one in found.may} == {"base", best}


def test_the_base_runs_no_further_trial_when_all_that_time_is_kept_for_are_decided(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC.replace("{base: base}", "{base: base, budget: 400s}"))
    clock = iter(range(10**6))
    records = [_took(one, run, 1000.0 + next(clock)) for one in plan.trials if one.repeat <= 3]
    fast = [
        replace(one, steps=Steps("optimizer", "wall", 3, measured=(5, 10, 15)))
        if one.variant == "fast"
        else one
        for one in records
    ]
    waiting = [one for one in plan.trials if one.repeat > 3 and one.variant in ("base", "fast")]
    found = Rounds(plan, lambda: fast, lambda: 1100 * 10**9).turn(waiting, [])
    assert not found.may
    assert {one.trial.variant for one in found.skipped} == {"base", "fast"}


def _took(trial: Trial, run: Run, began_s: float, ratio: float = 1.0) -> TrialRecord:
    """A trial that took 100 s."""
    steps = Steps("optimizer", "wall", 3, measured=tuple(round(ratio * ns) for ns in (9_900, 10_000, 10_100)))
    began_ns = round(began_s * 1e9)
    return replace(_begun(trial, run), started_ns=began_ns, ended_ns=began_ns + 100 * 10**9, steps=steps)


def _begun(trial: Trial, run: Run) -> TrialRecord:
    """A trial that finished, and began at second 1000."""
    records = {one.id: one for one in read_state(run).trials}
    measured = Steps("optimizer", "wall", 3, measured=(10, 20, 30))
    return replace(records[trial.id], state="finished", attempt=1, started_ns=1000 * 10**9, steps=measured)


def test_other_jobs_are_not_held_back(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC.replace("sequential: {base: base}", ""))
    state = driven(run, plan, Scripted(steps=steps))
    assert counts(state) == dict.fromkeys(RATIOS, 8)
