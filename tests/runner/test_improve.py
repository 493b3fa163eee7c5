"""The stages of an improvement, with trials that a script carries out."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from profrun.analysis.rules.experiments import Experiment
from profrun.contract.codec import to_json
from profrun.contract.redact import HIDDEN
from profrun.errors import FailedError, InconclusiveError, UnavailableError, UsageError
from profrun.jobs.load import Spec, load_job, load_text
from profrun.jobs.model import Job
from profrun.plans.make import make_plan
from profrun.runner.drive import drive
from profrun.runner.improve import Wishes, asked_for, improve, planned
from profrun.runner.improve_source import job_of_run, run_to_improve, source_of
from profrun.runner.interrupt import Interrupts
from profrun.runner.pipeline import PreparedRun, plan, prepare, reopen
from profrun.runner.planning import plan_of
from profrun.store.files import write_json
from profrun.store.improvement import Improvement, Promised, read_improvement
from profrun.store.run_answer import VariantAnswer
from profrun.store.run_result import Findings
from profrun.store.runs import Run, all_runs
from profrun.store.state import RunState, read_state
from tests.runner.scripted import Scripted, Watcher, new_run

MS = 1_000_000
SPEC = """
name: train
command: python -c pass
collectors: [none, torch]
"""
OWN = SPEC.replace("pass", "pass {workers}") + "variants: {slow: {workers: 0}, many: {workers: 4}}\n"
NOISE = (0.0, 0.002, -0.001, 0.0015, -0.002, 0.001, -0.0015, 0.0005)
TF32 = Experiment("tf32", ("tf32",), promises=(Promised("fp32-gemm", 3 * MS, 0.3),))
GRAPHS = Experiment("cuda-graphs", ("cuda-graphs",), promises=(Promised("launch-bound", 2 * MS, 0.2),))
FUSED = Experiment("fused-optimizer", ("fused-optimizer",), promises=(Promised("unfused", MS, 0.1),))
RATIOS = {"tf32": 0.8, "cuda-graphs": 1.0, "fused-optimizer": 0.9, "together": 0.7, "many": 0.6}
"""Step time of each variant to that of the base."""


class Stop(BaseException):
    """The process that drives a run ends."""


class Driver:
    """Carries out the runs of the stages by a script, and remembers them.

    Trials begin in equal distances, because drift is removed by the times at which they began.

    Args:
        ratios: variant -> its step time to that of the base.
    """

    def __init__(self, ratios: dict[str, float] = RATIOS, noise: float = 1.0) -> None:
        self.ratios, self.noise = ratios, noise
        self.started: list[list[str]] = []
        self.kept: list[Improvement | None] = []
        self.stop_after: str | None = None

    def __call__(self, prepared: PreparedRun) -> RunState:
        """Drive a run to its end, or until the trial ``stop_after`` has finished."""
        run = prepared.run
        if not run.bundle.exists():
            run.bundle.mkdir()
            (run.bundle / "run.py").write_text("")
        base = next(iter(all_runs(run.path.parent)))
        self.kept.append(read_improvement(base))
        begins = itertools.count(time.time_ns(), 1000)
        engine = Scripted(steps=self._steps, begins=lambda: next(begins))
        observer = Watcher(at={("finished", self.stop_after): self._stop} if self.stop_after else {})
        try:
            drive(run, prepared.plan, engine, cwd=run.path, observer=observer, interrupts=Interrupts())
        except Stop:
            pass
        finally:
            self.started.append(engine.started)
        return read_state(run)

    def _stop(self) -> None:
        self.stop_after = None
        raise Stop

    def _steps(self, trial: str) -> Sequence[int]:
        variant, number = trial[4:].rpartition("-")[0], int(trial.rpartition("-r")[2])
        name = variant.removesuffix("-none").removesuffix("-torch")
        noise = self.noise * NOISE[(number + 3 * len(name)) % len(NOISE)]
        return [round(10 * MS * self.ratios.get(name, 1.0) * (1 + noise))] * 30


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader is asked: the trials leave no recording."""
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])


@pytest.fixture
def asks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets which experiments the findings of the base ask for."""

    def set_(*asked: Experiment) -> None:
        monkeypatch.setattr("profrun.runner.improve.asked_for", lambda *_: asked)

    return set_


def job_at(root: Path, text: str = SPEC) -> tuple[Spec, Job]:
    return Spec(text, "job.yaml", root), load_text(text, "job.yaml")


def wishes(root: Path, **more: object) -> Wishes:
    return dataclasses.replace(Wishes("local", root / "runs"), **more)  # type: ignore[arg-type]


def states(found: Improvement) -> dict[str, str]:
    return {one.name: one.state for one in found.experiments}


def test_what_helps_is_tried_together_on_new_trials(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32, GRAPHS, FUSED)
    spec, job = job_at(tmp_path)
    driver = Driver()
    run, found = improve(spec, job, wishes(tmp_path), driver)
    assert states(found) == {"tf32": "proven", "cuda-graphs": "no gain", "fused-optimizer": "proven"}
    assert found.together is not None
    assert (found.together.state, found.together.changes) == ("proven", ("tf32", "fused-optimizer"))
    assert found.together.ratio == pytest.approx(0.7, rel=0.01)
    assert {one.rule for one in found.together.promises} == {"fp32-gemm", "unfused"}
    assert (found.run, found.base, found.done, found.left_out) == (run.name, "default", True, ())
    assert found.step_ns == pytest.approx(10 * MS, rel=0.01)
    assert [one.job for one in map(read_state, all_runs(tmp_path / "runs"))] == [
        "train",
        "train-experiments",
        "train-together",
    ]
    names = [one.name for one in all_runs(tmp_path / "runs")]
    assert names == [found.run, found.experiments_run, found.together_run]
    assert [sorted({name[4:].rpartition("-")[0] for name in trials}) for trials in driver.started] == [
        ["default-none", "default-torch"],
        [
            "cuda-graphs-none",
            "default-none",
            "default-torch",
            "fused-optimizer-none",
            "fused-optimizer-torch",
            "tf32-none",
            "tf32-torch",
        ],
        ["default-none", "default-torch", "together-none", "together-torch"],
    ]
    assert read_improvement(run) == found
    assert {run_to_improve(one) for one in all_runs(tmp_path / "runs")} == {run}


def test_how_far_it_is_is_written_before_each_stage(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32)
    driver = Driver()
    improve(*job_at(tmp_path), wishes(tmp_path), driver)
    base, experiments, together = driver.kept
    assert base is None
    assert experiments is not None
    assert states(experiments) == {"tf32": "planned"}
    assert (experiments.done, experiments.together_run) == (False, None)
    assert experiments.experiments_run is not None
    assert together is not None
    assert states(together) == {"tf32": "proven"}
    assert (together.done, together.together) == (False, None)
    assert together.together_run is not None


def test_the_job_that_is_kept_has_one_more_variant(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32, FUSED)
    text = OWN + "changes: {slow: [set-to-none]}\nrepeats: 7\nexpect: [{variant: many, step_ms: 4}]\n"
    spec, job = job_at(tmp_path, text)
    run, _ = improve(spec, job, wishes(tmp_path), Driver())
    kept = load_job(run.improved)
    assert list(kept.variants) == ["slow", "many", "improved"]
    assert kept.variants["improved"] == {"workers": 0}
    assert kept.changes == {"slow": ("set-to-none",), "improved": ("set-to-none", "tf32", "fused-optimizer")}
    assert (kept.repeats, kept.expect, kept.sequential) == (7, job.expect, None)


def test_where_nothing_helps_nothing_is_tried_together(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(GRAPHS)
    driver = Driver()
    run, found = improve(*job_at(tmp_path), wishes(tmp_path), driver)
    assert states(found) == {"cuda-graphs": "no gain"}
    assert (found.together, found.together_run, found.done) == (None, None, True)
    assert len(driver.started) == 2
    assert not run.improved.exists()


def test_where_nothing_is_asked_for_only_the_base_is_run(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks()
    driver = Driver()
    run, found = improve(*job_at(tmp_path), wishes(tmp_path), driver)
    assert (found.experiments, found.experiments_run, found.done) == ((), None, True)
    assert len(driver.started) == 1
    assert read_improvement(run) == found


@pytest.mark.parametrize(("noise", "trial_s", "rounds"), [(1, 1, 3), (20, 1, 8), (20, 1e4, 4)])
def test_the_last_stage_goes_on_until_the_gain_is_known_well_where_there_is_time(
    tmp_path: Path,
    asks: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    noise: float,
    trial_s: float,
    rounds: int,
) -> None:
    asks(TF32)
    monkeypatch.setattr("profrun.runner.improve.trials_s", lambda state: [1.0, trial_s])
    driver = Driver({"tf32": 0.8, "together": 0.8}, noise)
    _, found = improve(*job_at(tmp_path), wishes(tmp_path, budget_s=1e4), driver)
    assert found.together is not None
    assert (found.together.state, found.together.rounds) == ("proven", rounds)


def test_what_does_not_help_together_is_not_kept(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32)
    run, found = improve(*job_at(tmp_path), wishes(tmp_path), Driver({**RATIOS, "together": 1.0}))
    assert found.together is not None
    assert found.together.state == "no gain"
    assert not run.improved.exists()


def test_of_changes_that_exclude_each_other_the_better_is_kept(
    tmp_path: Path, asks: Callable[..., None]
) -> None:
    both = Experiment("autocast-bfloat16", ("autocast=bfloat16",))
    asks(both, TF32)
    ratios = {**RATIOS, "autocast-bfloat16": 0.7}
    _, found = improve(*job_at(tmp_path), wishes(tmp_path), Driver(ratios))
    assert found.together is not None
    assert (found.together.changes, found.left_out) == (("autocast=bfloat16",), ("tf32",))


def test_an_improvement_of_a_run_has_no_base_stage(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(GRAPHS)
    spec, job = job_at(tmp_path)
    run, _ = improve(spec, job, wishes(tmp_path), Driver())
    asks(TF32)
    run.improved.write_text("of an earlier improvement")
    driver = Driver()
    again, found = improve(run, job_of_run(run), wishes(tmp_path), driver)
    assert again.name == run.name
    assert states(found) == {"tf32": "proven"}
    assert len(driver.started) == 2
    assert "improved" in load_job(run.improved).variants


def test_the_gpus_are_those_that_worked_in_the_base(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32)
    spec, job = job_at(tmp_path, OWN)
    base = prepare(plan(spec), spec, backend="local", root=tmp_path / "runs")
    Driver()(base)
    answers = (VariantAnswer("many", gpus=("A",)), VariantAnswer("slow", gpus=("B", "B")))
    write_json(base.run.comparison, to_json(Findings(answers=answers)))
    _, found = improve(base.run, job, wishes(tmp_path), Driver())
    assert found.gpus == ("B", "B")


def test_what_the_budget_does_not_allow_is_not_tried(
    tmp_path: Path, asks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asks(TF32, GRAPHS, FUSED)
    monkeypatch.setattr("profrun.runner.improve.trials_s", lambda state: [40.0, 10.0])
    _, found = improve(*job_at(tmp_path), wishes(tmp_path, budget_s=120 + 91), Driver())
    assert states(found) == {"tf32": "proven", "cuda-graphs": "no gain", "fused-optimizer": "not tried"}
    assert found.experiments[2].why == "the budget of 3.52 min is too short for it"
    _, found = improve(*job_at(tmp_path), wishes(tmp_path, budget_s=1.0), Driver())
    assert set(states(found).values()) - {"not tried"}, "at least one is tried"


def test_the_variables_of_a_change_win_over_those_of_the_job(
    tmp_path: Path, asks: Callable[..., None]
) -> None:
    asks(Experiment("cpu-threads-4", ("cpu-threads=4",)))
    spec, job = job_at(tmp_path, SPEC + "env: {OMP_NUM_THREADS: 1}\n")
    run, found = improve(spec, job, wishes(tmp_path), Driver())
    assert found.experiments_run is not None
    trials = plan_of(Run(run.path.parent / found.experiments_run)).trials
    threads = {trial.variant: trial.env["OMP_NUM_THREADS"] for trial in trials}
    assert threads == {found.base: "1", "cpu-threads-4": "4"}


class Interrupted:
    """An improvement whose process ended in its second stage."""

    def __init__(self, root: Path, **more: object) -> None:
        self.driver = Driver()
        self.root = root
        self.spec, self.job = job_at(root)
        self.error: FailedError | None = None
        self.driver.stop_after = "005-fused-optimizer-none-r2"
        try:
            improve(self.spec, self.job, wishes(root, **more), self.driver)
        except FailedError as error:
            self.error = error
        self.run = all_runs(root / "runs")[0]

    def again(self) -> tuple[Run, Improvement, Driver]:
        """Go on with it, as the message says."""
        driver = Driver()
        return *improve(self.run, job_of_run(self.run), wishes(self.root), driver), driver


def test_an_interrupted_improvement_goes_on_with_the_same_run(
    tmp_path: Path, asks: Callable[..., None]
) -> None:
    asks(TF32, FUSED)
    cut = Interrupted(tmp_path, rounds=6, worth=0.05, accept=0.5, budget_s=1000.0)
    stage = all_runs(tmp_path / "runs")[1]
    assert str(cut.error) == (f"{stage.name} was interrupted; go on with `profrun improve {cut.run.name}`")
    asks()  # what is tried was decided at the beginning
    run, found, driver = cut.again()
    assert states(found) == {"tf32": "proven", "fused-optimizer": "proven"}
    assert found.together is not None
    assert (run.name, found.experiments_run) == (cut.run.name, stage.name)
    assert (found.rounds, found.worth, found.accept, found.budget_s) == (6, 0.05, 0.5, 1000.0)
    assert not set(cut.driver.started[1]) & set(driver.started[0])
    together = job_of_run(all_runs(tmp_path / "runs")[2])
    assert together.sequential is not None
    assert (together.repeats, together.sequential.worth) == ({"none": 6, "torch": 1}, 0.05)
    assert "improved" in load_job(run.improved).variants


def test_it_goes_on_with_its_variant_where_none_is_named(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32)
    spec, job = job_at(tmp_path, OWN)
    driver = Driver({"tf32": 0.5, "together": 0.5})
    run = prepare(plan(spec), spec, backend="local", root=tmp_path / "runs")
    driver(run)
    driver.stop_after = "001-tf32-none-r1"
    with pytest.raises(FailedError):
        improve(run.run, job, wishes(tmp_path, base="many"), driver)
    _, found = improve(run.run, job, wishes(tmp_path), driver)
    assert (found.base, found.done) == ("many", True)
    assert len(driver.started[-1]) > 0


def test_a_base_that_was_interrupted_is_resumed_first(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32)
    driver = Driver()
    driver.stop_after = "000-default-none-r1"
    with pytest.raises(FailedError, match=r"was interrupted; go on with `profrun resume .*`, then `profrun"):
        improve(*job_at(tmp_path), wishes(tmp_path), driver)


def test_after_an_interruption_the_job_of_the_user_is_still_known(
    tmp_path: Path, asks: Callable[..., None]
) -> None:
    """The job of the base run has one variant, and the collectors and repeats of that stage."""
    asks(TF32)
    text = OWN + "repeats: 7\nenv: {API_TOKEN: s3cr3t-of-mine}\n"
    driver = Driver()
    driver.stop_after = "000-slow-none-r1"
    with pytest.raises(FailedError):
        improve(*job_at(tmp_path, text), wishes(tmp_path), driver)
    (run,) = all_runs(tmp_path / "runs")
    assert list(load_job(run.resolved).variants) == ["slow"]
    assert "s3cr3t" not in run.user_job.read_text()
    driver(reopen(run))
    _, found = improve(run, job_of_run(run), wishes(tmp_path), driver)
    kept = load_job(run.improved)
    assert (found.base, list(kept.variants), kept.repeats) == ("slow", ["slow", "many", "improved"], 7)
    stage = plan_of(Run(run.path.parent / str(found.experiments_run)))
    assert {trial.env["API_TOKEN"] for trial in stage.trials} == {"s3cr3t-of-mine"}


def test_variants_of_the_user_are_experiments(
    tmp_path: Path, asks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_findings(monkeypatch)
    spec, job = job_at(tmp_path, OWN + "changes: {slow: [set-to-none], many: [set-to-none]}\n")
    run, found = improve(spec, job, wishes(tmp_path), Driver())
    assert states(found) == {"many": "proven"}
    assert found.together is not None
    assert (found.together.values, found.together.changes) == ({"workers": 4}, ("set-to-none",))
    kept = load_job(run.improved)
    assert kept.variants["improved"] == {"workers": 4}
    assert kept.changes["improved"] == ("set-to-none",)


def test_what_helped_is_improved_further(
    tmp_path: Path, asks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asks(TF32)
    run, found = improve(*job_at(tmp_path), wishes(tmp_path), Driver())
    assert found.improved == "improved"
    asks(FUSED)
    spec, job = source_of(run, "improved")
    assert isinstance(spec, Spec)
    further, found = improve(spec, job, wishes(tmp_path, base="improved"), Driver())
    assert further != run
    assert (found.base, found.improved, states(found)) == (
        "improved",
        "improved-again",
        {"fused-optimizer": "proven"},
    )
    kept = load_job(further.improved)
    assert kept.changes == {"improved": ("tf32",), "improved-again": ("tf32", "fused-optimizer")}
    again, job = source_of(further, "improved-again")
    assert isinstance(again, Spec)
    assert list(job.variants) == ["default", "improved", "improved-again"]


def patch_findings(monkeypatch: pytest.MonkeyPatch, *variants: str) -> None:
    """These variants (``slow``, ``tf32`` if none is given) have recordings, and no finding."""
    told = dataclasses.make_dataclass("Told", ["trace"])("somewhere")
    read = dataclasses.make_dataclass("Read", ["findings"])(())

    class Nothing:
        def __init__(self, path: object) -> None: ...
        def __enter__(self) -> Nothing:
            return self

        def __exit__(self, *_: object) -> None: ...

    module = "profrun.runner.improve."
    recorded = dict.fromkeys(variants or ("slow", "tf32"), told)
    monkeypatch.setattr(module + "told_by", lambda points: recorded)
    monkeypatch.setattr(module + "Trace", Nothing)
    monkeypatch.setattr(module + "diagnosed", lambda *_: read)


@pytest.mark.parametrize(
    ("base", "only", "names"),
    [
        ("slow", (), ["many"]),
        ("slow", ("many",), ["many"]),
        ("slow", ("tf32",), ["tf32"]),
        ("slow", ("many", "tf32"), ["many", "tf32"]),
        ("slow", ("dataloader-stall",), []),
        ("many", (), []),  # it is not the first, so the others are not meant to improve it
        ("many", ("slow",), ["slow"]),
    ],
)
def test_only_names_variants_of_the_user_rules_and_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, only: tuple[str, ...], names: list[str]
) -> None:
    patch_findings(monkeypatch, "slow", "many")
    _, job = job_at(tmp_path, OWN)
    state = RunState(Run(tmp_path), "t", "local", tmp_path, 5, "finished", False, ())
    assert [one.name for one in asked_for(state, job, base, only)] == names


def test_only_that_names_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_findings(monkeypatch)
    state = RunState(Run(tmp_path), "t", "local", tmp_path, 5, "finished", False, ())
    with pytest.raises(UsageError, match="--only manny: there is no change 'manny'"):
        asked_for(state, job_at(tmp_path, OWN)[1], "slow", ("manny",))


def test_only_that_names_nothing_is_refused_before_a_trial(tmp_path: Path) -> None:
    driver = Driver()
    with pytest.raises(UsageError, match="--only tf23: there is no change 'tf23'"):
        improve(*job_at(tmp_path, OWN), wishes(tmp_path, only=("many", "tf23")), driver)
    assert driver.started == []


def test_an_experiment_never_takes_the_name_of_a_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_findings(monkeypatch)
    text = SPEC + "variants: {tf32: {}, together: {}, improved: {}}\n"
    ratios = {"together": 1.0, "improved": 1.0, "tf32-again": 0.7, "together-again": 0.7}
    run, found = improve(*job_at(tmp_path, text), wishes(tmp_path, only=("tf32",)), Driver(ratios))
    assert states(found) == {"tf32-again": "proven"}
    assert found.together is not None
    assert (found.together.name, found.together.state) == ("together-again", "proven")
    kept = load_job(run.improved)
    assert list(kept.variants) == ["tf32", "together", "improved", "improved-again"]
    assert kept.changes == {"improved-again": ("tf32",)}


def test_without_a_recording_there_are_no_findings(tmp_path: Path) -> None:
    with pytest.raises(InconclusiveError, match=r"has no recording of its variant 'default'.*JOB"):
        improve(*job_at(tmp_path), wishes(tmp_path), Driver())


@pytest.mark.parametrize(
    ("text", "only", "names"),
    [(OWN, (), ["many"]), (SPEC, ("tf32",), ["tf32"]), (OWN, ("many", "tf32"), ["many", "tf32"])],
)
def test_what_needs_no_finding_is_tried_without_a_recording(
    tmp_path: Path, text: str, only: tuple[str, ...], names: list[str]
) -> None:
    _, found = improve(*job_at(tmp_path, text), wishes(tmp_path, only=only), Driver())
    assert [one.name for one in found.experiments] == names
    assert found.done


def test_a_program_without_steps_cannot_be_improved(
    tmp_path: Path, asks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asks(TF32)
    monkeypatch.setattr(Driver, "_steps", lambda self, trial: [])
    with pytest.raises(InconclusiveError, match=r"has no step time of its variant 'default'.*profrun\.step"):
        improve(*job_at(tmp_path), wishes(tmp_path), Driver())


def test_a_run_that_was_made_elsewhere_is_not_run_unasked(tmp_path: Path, asks: Callable[..., None]) -> None:
    asks(TF32)
    run, _ = new_run(tmp_path / "runs", SPEC)
    copy = Run(Path(shutil.copytree(run.path, tmp_path / "copy")))
    driver = Driver()
    with pytest.raises(UsageError, match="was not made here by you"):
        improve(copy, job_of_run(copy), wishes(tmp_path), driver)
    assert driver.started == []


def test_there_is_no_such_variant(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no variant 'fast'"):
        improve(*job_at(tmp_path), wishes(tmp_path, base="fast"), Driver())
    assert not (tmp_path / "runs").exists()


def test_it_needs_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UnavailableError, match="improving a program needs Linux"):
        improve(*job_at(tmp_path), wishes(tmp_path), Driver())


def test_what_would_be_run_is_told_before(
    tmp_path: Path, asks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asks(TF32, GRAPHS)
    spec, job = job_at(tmp_path)
    run, _ = improve(spec, job, wishes(tmp_path), Driver())
    runs = all_runs(tmp_path / "runs")
    monkeypatch.setattr("profrun.runner.improve.trials_s", lambda state: [40.0, 10.0])
    found = planned(read_state(run), job, wishes(tmp_path, budget_s=1.0, rounds=4))
    assert [one.name for one in found.experiments] == ["tf32"]
    assert found.not_tried == {"cuda-graphs": "the budget of 0.0167 min is too short for it"}
    assert found.spec is not None
    stage = load_text(found.spec.text)
    assert stage.sequential is not None
    assert stage.sequential.budget == 1
    trials = make_plan(stage).trials
    assert [one.id for one in trials if one.collector == "none"][:2] == [
        "000-default-none-r1",
        "001-tf32-none-r1",
    ]
    assert len(trials) == 4 * 2 + 2
    assert all_runs(tmp_path / "runs") == runs


def test_secrets_are_in_none_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_findings(monkeypatch)
    text = (
        SPEC.replace("pass", "pass {api_token}")
        + "env: {MY_PASSWORD: envhunter2value}\n"
        + "variants: {slow: {api_token: slowhunter2value}, many: {api_token: manyhunter2value}}\n"
    )
    run, found = improve(*job_at(tmp_path, text), wishes(tmp_path), Driver())
    assert found.experiments[0].values == {"api_token": HIDDEN}
    assert found.experiments[0].state == "proven"
    assert HIDDEN in run.improved.read_text()
    for folder in all_runs(tmp_path / "runs"):
        for path in folder.path.glob("*.*"):
            if path.name != "private.json":
                assert "hunter2" not in path.read_text(), path
