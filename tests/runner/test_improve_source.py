"""What ``profrun improve`` is given, as it is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profrun.analysis.rules.experiments import Experiment
from profrun.errors import UsageError
from profrun.jobs.load import Spec
from profrun.runner.improve_jobs import improved_job, public_text
from profrun.runner.improve_source import Source, job_of_run, named_source, run_to_improve, source_of
from profrun.store.improvement import Improvement, write_improvement
from tests.runner.scripted import new_run


def test_a_job_is_named_by_its_file_and_a_run_by_its_name(tmp_path: Path) -> None:
    base, stage = (new_run(tmp_path)[0] for _ in range(2))
    root = base.path.parent
    write_improvement(base, Improvement(base.name, "a", together_run=stage.name))
    assert named_source(base.name, root, (), None) == Source(base, job_of_run(base))
    assert named_source(stage.name, root, (), None) == Source(base, job_of_run(base), stage)
    file = tmp_path / "job.yml"
    file.write_text("name: x\ncommand: run\nrepeats: 3\n")
    found = named_source(str(file), root, ["repeats=4"], None)
    assert isinstance(found.of, Spec)
    assert (found.of.text, found.job.repeats, found.stage) == (file.read_text(), 4, None)
    with pytest.raises(UsageError) as caught:
        named_source("last", root, ["repeats=4"], None)
    assert str(caught.value) == (
        "overrides (--set) cannot change last, a run that exists; leave them out, or name the run's job file"
    )


def test_the_job_of_a_run_has_its_variants(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    assert job_of_run(run).variants == plan.job.variants


def test_a_run_of_another_launcher_cannot_be_run_again(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.events.write_text(run.events.read_text().replace('"backend":"scripted"', '"backend":"wrap"'))
    with pytest.raises(UsageError) as caught:
        job_of_run(run)
    assert str(caught.value) == (
        f"the trials of {run.name} cannot be run again: another launcher started them with `profrun wrap`; "
        "write a job of the program (`profrun init`), then `profrun improve JOB`"
    )


def test_a_run_is_improved_itself_or_the_job_with_what_helped_there(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    mine = next(iter(plan.job.variants))
    assert source_of(run, None)[0] == source_of(run, mine)[0] == source_of(run, "improved")[0] == run
    job = improved_job(plan.job, mine, Experiment("together", ("tf32",)))
    run.improved.write_text(public_text(job))
    assert source_of(run, None)[0] == source_of(run, mine)[0] == source_of(run, "fast")[0] == run
    spec, found = source_of(run, "improved")
    assert isinstance(spec, Spec)
    assert spec.text == run.improved.read_text()
    assert (found.variants, found.changes) == (job.variants, {"improved": ("tf32",)})


def test_the_job_with_what_helped_cannot_run_without_its_secrets(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    job = improved_job(plan.job, next(iter(plan.job.variants)), Experiment("together", ("tf32",)))
    run.improved.write_text(public_text(replace(job, env={"API_TOKEN": "hunter2value"})))
    with pytest.raises(UsageError) as caught:
        source_of(run, "improved")
    assert str(caught.value) == (
        f"{run.improved} hides secrets, so its program cannot run; "
        "write them in a copy, then `profrun improve COPY --variant improved`"
    )


def test_a_stage_belongs_to_its_base(tmp_path: Path) -> None:
    base, experiments, other = (new_run(tmp_path)[0] for _ in range(3))
    write_improvement(base, Improvement(base.name, "a", experiments_run=experiments.name))
    assert run_to_improve(experiments) == base
    assert run_to_improve(base) == base
    assert run_to_improve(other) == other
