"""Runs that profrun 0.1 made on H200s are read as they are."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from profrun.errors import UsageError
from profrun.jobs.load import Spec
from profrun.runner.planning import plan_job, plan_of
from profrun.store.documents import read_command
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.conftest import SHARED, missing, unpack


@pytest.mark.parametrize("name", ["hf", "dead", "ddp"])
def test_a_run_of_profrun_0_1_is_read(name: str, tmp_path: Path) -> None:
    packed = SHARED / "h200_runs" / f"{name}.tar.xz"
    if not packed.exists():
        missing(str(packed))
    with tarfile.open(packed) as archive:
        wanted = (".json", ".jsonl", ".yaml")
        unpack(archive, tmp_path, [item for item in archive if item.name.endswith(wanted)])
    run = Run(next(tmp_path.iterdir()))
    state = read_state(run)
    assert (state.phase, state.notes) == ("finished", ())
    found = [(one.collector, one.profiler, one.serial, one.state) for one in state.trials]
    assert found == [(name, name, False, "finished") for name in ("none", "torch", "nsys")]
    assert all(one.steps.median_ns for one in state.trials)
    planned = plan_of(run).trials
    for trial in planned:
        told = read_command(run.trial(trial.id))
        assert told is not None
        assert (told.trial, told.collector, told.argv) == (trial.id, trial.collector, trial.argv)


def test_a_claim_of_a_finding_names_a_rule_that_exists(tmp_path: Path) -> None:
    job = "name: x\ncommand: run\nexpect: [{finds: [tiny-kernels]}, {finds_not: [tiny-kernel]}]\n"
    with pytest.raises(
        UsageError, match=r"expect\[1\]: there is no rule 'tiny-kernel'; did you mean 'tiny-ker"
    ):
        plan_job(Spec(job, "job.yaml", tmp_path))
