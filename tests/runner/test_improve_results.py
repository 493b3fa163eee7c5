"""What the trials of a stage say of each experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from profrun.contract.change_findings import applied, failed, not_applied
from profrun.contract.changes import parse
from profrun.contract.codec import to_json
from profrun.contract.exit import Exit
from profrun.contract.finding import Finding
from profrun.contract.results import ResultsFile
from profrun.jobs.load import load_text
from profrun.jobs.model import Job
from profrun.runner.improve_results import results
from profrun.runner.rounds import TIME_IS_UP, decisions
from profrun.store.documents import Steps
from profrun.store.files import write_json
from profrun.store.improvement import ExperimentResult, Promised
from profrun.store.run_result import Findings, PairKind, PairResult
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord

MS = 1_000_000
SECOND = 1_000_000_000
STEPS = 30
NOISE = (0.0, 0.002, -0.001, 0.0015, -0.002, 0.001, -0.0015, 0.0005)
"""What trials of a variant differ by; other variants have it shifted, so no two are alike."""
LOSSES = (2.0, 1.5, 1.2)
CHANGE = "loader-workers=4"
APPLIED = applied(parse(CHANGE), "1 DataLoader got 4 worker processes")
NOTHING = not_applied(parse(CHANGE), "the program made no DataLoader")


class Stage:
    """A run of the base and one experiment, ``x``, in rounds.

    Args:
        changes: of the experiment. values: of its variant.
    """

    def __init__(
        self, root: Path, changes: Sequence[str] = (CHANGE,), values: Mapping[str, int] | None = None
    ) -> None:
        listed = f"changes: {{x: [{', '.join(changes)}]}}\n" if changes else ""
        self.job = load_text(
            "name: t\ncommand: python x.py\nvariants: {base: {}, x: {}}\nrepeats: {none: 8, torch: 1}\n"
            f"collectors: [none, torch]\nsequential: {{base: base}}\n{listed}"
        )
        self.run = Run(root)
        self.planned = ExperimentResult("x", tuple(changes), dict(values or {}), (Promised("rule", 5, 0.2),))
        self.records: list[TrialRecord] = []

    def add(self, variant: str, repeat: int, ratio: float = 1.0, **more: object) -> None:
        """A trial without a profiler that finished; its steps take ``ratio`` times 10 ms."""
        index = len(self.records)
        paths = self.run.trial(f"{index:03d}-{variant}-none-r{repeat}")
        noise = NOISE[(repeat + 3 * (variant == "x")) % len(NOISE)]
        steps = (round(10 * MS * ratio * (1 + noise)),) * STEPS
        began = index * 10 * SECOND
        record = TrialRecord(
            paths.folder.name,
            index,
            variant,
            "none",
            False,
            repeat,
            "finished",
            paths,
            attempt=1,
            started_ns=began,
            ended_ns=began + 2 * SECOND + sum(steps),
            steps=Steps("optimizer", "wall", STEPS, measured=steps),
        )
        self.records.append(dataclasses.replace(record, **more))  # type: ignore[arg-type]

    def rounds(self, count: int, ratio: float, losses: Sequence[float] = LOSSES, *said: Finding) -> None:
        """Rounds of the base and of the experiment, which computes ``losses``."""
        for number in range(1, count + 1):
            for variant, computed in (("base", LOSSES), ("x", losses)):
                told = Exit("t", "finished", warnings=said if variant == "x" else ())
                self.add(variant, number, ratio if variant == "x" else 1.0, exit=told)
                paths = self.records[-1].paths
                paths.rank(0).mkdir(parents=True)
                write_json(paths.results(0), to_json(ResultsFile(0, "loss", tuple(computed))))

    def skip(self, variant: str, repeat: int, why: str) -> None:
        """A trial that was not needed."""
        self.add(variant, repeat, state="skipped", attempt=0, reason=why, steps=Steps(), started_ns=None)

    def told(self, accept: float | None = None) -> ExperimentResult:
        """What the trials say."""
        (found,) = results(self.job, [self.planned], self.state, accept)
        return found

    @property
    def state(self) -> RunState:
        """The run as it stands."""
        return RunState(self.run, "t", "local", self.run.path, 5, "finished", False, tuple(self.records))


def test_what_is_faster_and_computes_the_same_is_proven(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(4, 0.7, LOSSES, APPLIED)
    stage.skip("x", 5, "it is decided: faster")
    found = stage.told()
    assert (found.state, found.why, found.rounds) == ("proven", "", 4)
    assert found.ratio == pytest.approx(0.7, rel=0.01)
    assert found.interval is not None
    assert found.interval[0] < 0.7 < found.interval[1] < 1
    assert found.p_value is not None
    assert found.p_value < 0.05
    assert (found.same.verdict, found.same.text) == ("same", "loss exactly the same")
    assert found.said == ("loader-workers=4: 1 DataLoader got 4 worker processes",)
    assert found.promises == stage.planned.promises


def test_both_sides_are_of_the_same_rounds(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(3, 0.7)
    stage.add("base", 4, 9.0)  # the experiment was not run in this round
    found = stage.told()
    assert found.rounds == 3
    assert found.base_ns == pytest.approx(10 * MS, rel=0.003)
    assert found.step_ns == pytest.approx(7 * MS, rel=0.003)


def test_the_time_outside_of_the_steps_is_told_apart(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(3, 0.7)
    assert stage.told().start_ns == 0
    stage.records = [
        dataclasses.replace(one, ended_ns=(one.ended_ns or 0) + 5 * SECOND * (one.variant == "x"))
        for one in stage.records
    ]
    assert stage.told().start_ns == 5 * SECOND
    stage.records = [dataclasses.replace(one, ended_ns=None) for one in stage.records]
    assert stage.told().start_ns is None


@pytest.mark.parametrize(
    ("rounds", "ratio", "state"),
    [(4, 1.2, "slower"), (8, 1.0, "no gain"), (8, 0.999, "no gain"), (2, 0.7, "not proven")],
)
def test_what_is_not_faster(tmp_path: Path, rounds: int, ratio: float, state: str) -> None:
    stage = Stage(tmp_path)
    stage.rounds(rounds, ratio)
    assert stage.told().state == state


@pytest.mark.parametrize(
    ("ratios", "decided"),
    [
        ((0.7, 1.3, 0.7, 1.3, 0.7), "futile"),
        ((0.93, 0.96, 0.98, 0.91, 0.90, 0.99, 1.0, 0.88), "undecided"),
    ],
)
def test_what_scatters_too_much_is_not_proven(tmp_path: Path, ratios: Sequence[float], decided: str) -> None:
    stage = Stage(tmp_path)
    for number, ratio in enumerate(ratios, start=1):
        stage.add("base", number)
        stage.add("x", number, ratio)
    assert decisions(stage.job, stage.records)["x"].state == decided
    found = stage.told()
    assert (found.state, found.why) == ("not proven", "")
    assert found.ratio is not None


def test_rounds_that_the_budget_cut_off_say_why_nothing_is_proven(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(2, 0.7)
    stage.skip("x", 3, TIME_IS_UP)
    found = stage.told()
    assert (found.state, found.why, found.ratio, found.interval) == ("not proven", TIME_IS_UP, None, None)


def test_what_is_faster_and_computes_something_else_is_not_the_same(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(4, 0.7, (2.0, 1.5, 1.3))
    found = stage.told()
    assert (found.state, found.same.verdict) == ("not the same", "differs")
    assert found.why == found.same.text != ""
    assert found.same.difference == pytest.approx(0.1 / 1.3)
    accepted = stage.told(accept=0.1)
    assert (accepted.state, accepted.same.tolerance) == ("proven", 0.1)


def test_the_loosest_of_the_changes_says_what_is_the_same(tmp_path: Path) -> None:
    near = tuple(value * 1.01 for value in LOSSES)
    for changes, state in (((CHANGE,), "not the same"), ((CHANGE, "tf32"), "proven")):
        stage = Stage(tmp_path / state, changes)
        stage.rounds(4, 0.7, near)
        assert stage.told().state == state


def test_what_is_slower_is_slower_whatever_it_computes(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(4, 1.3, (9.0, 9.0, 9.0))
    assert stage.told().state == "slower"


def test_a_program_that_shows_nothing_that_it_computes_is_proven_to_be_faster(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in range(1, 5):
        stage.add("base", number)
        stage.add("x", number, 0.7)
    found = stage.told()
    assert (found.state, found.same.verdict) == ("proven", "unknown")


@pytest.mark.parametrize(
    ("changes", "said", "state"),
    [
        ((CHANGE,), (NOTHING,), "not applied"),
        ((CHANGE,), (APPLIED,), "no gain"),
        ((CHANGE,), (), "no gain"),
        ((CHANGE,), (APPLIED, NOTHING), "no gain"),  # one of two ranks
        ((CHANGE,), (applied(parse("set-to-none"), "1 optimizer"), NOTHING), "not applied"),  # of the base
        ((CHANGE,), (failed(CHANGE, "the program made no DataLoader"),), "not applied"),
        ((CHANGE, "set-to-none"), (NOTHING, applied(parse("set-to-none"), "1 optimizer")), "no gain"),
        ((CHANGE, "expandable-segments"), (NOTHING,), "no gain"),  # made by a variable alone
    ],
)
def test_a_change_of_which_the_program_has_nothing_is_not_applied(
    tmp_path: Path, changes: Sequence[str], said: Sequence[Finding], state: str
) -> None:
    stage = Stage(tmp_path, changes)
    stage.rounds(8, 1.0, LOSSES, *said)
    found = stage.told()
    assert found.state == state
    assert found.why == ("the program made no DataLoader" if state == "not applied" else "")


def test_values_of_a_variant_are_applied_whatever_the_hook_says(tmp_path: Path) -> None:
    stage = Stage(tmp_path, values={"workers": 4})
    stage.rounds(4, 0.7, LOSSES, NOTHING)
    assert stage.told().state == "proven"


def test_variants_of_the_user_need_no_change(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (), {"workers": 4})
    stage.rounds(4, 0.7)
    found = stage.told()
    assert (found.state, found.changes, found.values) == ("proven", (), {"workers": 4})


@pytest.mark.parametrize(
    ("end", "reason", "why"),
    [("failed", "exit code 3", "exit code 3"), ("timeout", None, "its trial ended as timeout")],
)
def test_a_program_that_ends_with_an_error_failed(
    tmp_path: Path, end: str, reason: str | None, why: str
) -> None:
    stage = Stage(tmp_path)
    stage.rounds(3, 0.7)
    stage.add("base", 4)
    stage.add("x", 4, state=end, reason=reason, steps=Steps())
    found = stage.told()
    assert (found.state, found.why, found.rounds) == ("failed", why, 3)


def test_an_experiment_that_never_ran_was_not_tried(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in range(1, 4):
        stage.add("base", number)
        stage.skip("x", number, TIME_IS_UP)
    found = stage.told()
    assert (found.state, found.why, found.rounds) == ("not tried", TIME_IS_UP, 0)
    assert (found.ratio, found.base_ns, found.step_ns, found.start_ns) == (None, None, None, None)


def test_trials_without_steps_prove_nothing_and_say_why(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.add("base", 1)
    stage.add("x", 1, steps=Steps())
    stage.skip("x", 2, "its trial of round 1 measured no step")
    found = stage.told()
    assert (found.state, found.why) == ("not proven", "its trial of round 1 measured no step")


def test_trials_under_a_profiler_do_not_count(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(4, 1.3)
    for variant in ("base", "x"):
        stage.add(variant, 1, 0.1, collector="torch")
    assert stage.told().state == "slower"


def test_what_changed_inside_of_a_step_is_that_of_the_recorded_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pair(kind: PairKind, a: str, b: str, text: str) -> PairResult:
        told = ("same", None, None, None, None, None, (1, 1), "")
        return PairResult(kind, a, b, *told, changed=(text,), a_variant=a, b_variant=b)

    pairs = (
        pair("change", "base", "x", "gemm: -3 ms"),
        pair("change", "y", "x", "against another one"),
        pair("variant", "base", "x", "not of a recording"),
    )
    monkeypatch.setattr("profrun.runner.improve_results.read_findings", lambda run: (Findings(pairs), None))
    stage = Stage(tmp_path)
    stage.rounds(4, 0.7)
    assert stage.told().explained == ("gemm: -3 ms",)


def test_of_many_experiments_holms_procedure_has_the_last_word(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.rounds(4, 0.7)
    job = many(stage.job)
    (alone,) = results(stage.job, [stage.planned], stage.state, None)
    assert alone.state == "proven"
    assert alone.p_value is not None
    rows = [stage.planned, *(ExperimentResult(f"v{number}") for number in range(30))]
    found = results(job, rows, stage.state, None)
    assert [one.name for one in found] == [one.name for one in rows]
    assert {one.state for one in found[1:]} == {"not tried"}
    assert (found[0].state == "proven") == (alone.p_value <= 0.05 / 31)


def many(job: Job) -> Job:
    """The same job with 30 more variants, which have no trials."""
    return dataclasses.replace(job, variants={**job.variants, **{f"v{n}": {} for n in range(30)}})
