"""The jobs of the stages of an improvement, as they are submitted."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.experiments import Experiment
from profrun.contract.results import Results
from profrun.errors import UsageError
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.runner.improve_jobs import (
    base_job,
    base_variant,
    free_name,
    improved_job,
    own_experiments,
    public_text,
    rounds_job,
)

JOB = load_text(
    """
name: train
command: python train.py --workers {workers}
variants: {slow: {workers: 0}, many: {workers: 4}}
changes: {slow: [set-to-none]}
collectors: [torch]
repeats: 5
launch_blocking: both
env: {A: '{workers}'}
expect: [{variant: many, kernels_per_step: 3}]
"""
)
TRIED = [
    Experiment("tf32", ("tf32",)),
    Experiment("loader-workers-4", ("loader-workers=4",)),
    *own_experiments(JOB, "slow"),
]


def test_the_first_variant_is_improved_or_the_one_that_is_named() -> None:
    assert base_variant(JOB, None) == "slow"
    assert base_variant(JOB, "many") == "many"
    with pytest.raises(UsageError, match="no variant 'fast'"):
        base_variant(JOB, "fast")


def test_the_base_stage_measures_one_variant() -> None:
    trials = make_plan(base_job(JOB, "slow")).trials
    assert [(one.variant, one.collector, one.blocking, one.changes) for one in trials] == [
        ("slow", "none", False, ("set-to-none",)),
        ("slow", "torch", False, ("set-to-none",)),
        ("slow", "none", False, ("set-to-none",)),
    ]


def test_the_experiments_run_beside_the_base_in_rounds() -> None:
    job = rounds_job(JOB, "slow", TRIED, stage="experiments", rounds=3, worth=0.05, budget_s=100)
    assert (job.name, job.results) == ("train-experiments", Results(20, 0))
    trials = make_plan(job, vendor="nvidia").trials
    assert [one.id for one in trials[:4]] == [
        "000-slow-none-r1",
        "001-tf32-none-r1",
        "002-loader-workers-4-none-r1",
        "003-many-none-r1",
    ]
    assert len(trials) == 3 * 4 + 4
    assert {one.collector for one in trials[12:]} == {"torch"}
    assert trials[1].changes == ("set-to-none", "tf32")
    assert trials[1].env == {"A": "0", "PYTHONHASHSEED": "0", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}
    assert (trials[3].argv[-1], trials[3].changes) == ("4", ())


def test_a_stage_that_was_recorded_before_only_measures() -> None:
    job = rounds_job(
        JOB, "slow", TRIED[:1], stage="together", rounds=3, worth=0.05, budget_s=None, recorded=False
    )
    assert {one.collector for one in make_plan(job).trials} == {"none"}


def test_the_user_keeps_the_job_with_one_more_variant() -> None:
    kept = Experiment("together", ("tf32", "loader-workers=4"), {"workers": 2})
    job = improved_job(JOB, "slow", kept)
    assert list(job.variants) == ["slow", "many", "improved"]
    assert job.variants["improved"] == {"workers": 2}
    assert job.changes["improved"] == ("set-to-none", "tf32", "loader-workers=4")
    again = improved_job(job, "improved", Experiment("together", ("channels-last",)))
    assert again.changes["improved-again"] == ("set-to-none", "tf32", "loader-workers=4", "channels-last")


def test_what_excludes_a_change_of_the_base_takes_its_place() -> None:
    kept = Experiment("together", ("set-to-none", "tf32"))
    assert improved_job(JOB, "slow", kept).changes["improved"] == ("set-to-none", "tf32")
    job = rounds_job(JOB, "slow", [kept], stage="together", rounds=3, worth=0.05, budget_s=None)
    assert job.changes == {"slow": ("set-to-none",), "together": ("set-to-none", "tf32")}
    assert job.sequential is not None
    assert (job.sequential.base, job.sequential.budget) == ("slow", None)


def test_a_name_that_no_variant_has() -> None:
    assert free_name(JOB, "fast") == "fast"
    assert free_name(JOB, "many") == "many-again"


def test_the_name_of_a_stage_is_never_too_long() -> None:
    long = load_text(f"name: {'x' * 64}\ncommand: run\n")
    job = rounds_job(
        long, "default", [Experiment("tf32", ("tf32",))], stage="experiments", rounds=3, worth=0.1, budget_s=1
    )
    assert job.name == "x" * 52 + "-experiments"


def test_the_text_of_a_job_without_its_secrets() -> None:
    job = load_text("name: x\ncommand: run --token {api_token}\nvariants: {a: {api_token: hunter2value}}\n")
    assert "hunter2" not in public_text(job)
    assert load_text(public_text(JOB)).variants == JOB.variants
