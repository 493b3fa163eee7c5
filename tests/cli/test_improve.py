"""``profrun improve``: what it would run, what it refuses, what it prints, and one whole improvement."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from profrun.analysis.rules.experiments import Experiment
from profrun.contract.codec import from_json
from profrun.jobs.load import load_job
from profrun.runner.pipeline import PreparedRun
from profrun.store.improvement import ExperimentResult, Improvement, Promised, SameAnswer, write_improvement
from profrun.store.runs import Run, all_runs
from profrun.store.state import RunState
from tests.cli.running import Capture, call, program
from tests.runner.scripted import begin, leave, new_run
from tests.runner.test_improve import patch_findings

SPEC = """
name: train
command: python -c pass
variants: {base: {}}
collectors: [none, torch]
repeats: {none: 1, torch: 1}
"""
SLOW = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 4 * 60

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((16,), float(index % 7))


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for batch in DataLoader(Slow(), batch_size=4):
    optimizer.zero_grad()
    loss = (model(batch) - batch).square().mean()
    loss.backward()
    time.sleep(0.008)
    optimizer.step()
"""
"""Each step waits 20 ms for its data and then sleeps 8 ms, which a busy machine hardly changes."""
IMPLIED = 20 / 28
"""The gain of a loader that is never waited for."""
PROVEN = ExperimentResult(
    "loader-workers-4",
    ("loader-workers=4",),
    promises=(Promised("dataloader-stall", 20, 0.7),),
    state="proven",
    ratio=0.3,
    interval=(0.28, 0.32),
    rounds=3,
    base_ns=30_000_000,
    step_ns=9_000_000,
    same=SameAnswer("same", "loss", 0.0, 1e-5, "loss exactly the same"),
)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A run of one trial without a profiler and one recorded one, whose findings ask for two changes."""
    monkeypatch.chdir(tmp_path)
    run, plan = new_run(tmp_path / "runs", SPEC)
    for trial in plan.trials:
        leave(begin(run.trial(trial.id)))
    asked = (
        Experiment("loader-workers-4", ("loader-workers=4",), promises=PROVEN.promises),
        Experiment("tf32", ("tf32",)),
    )
    monkeypatch.setattr("profrun.runner.improve.asked_for", lambda *_: asked)
    yield run
    assert all_runs(tmp_path / "runs") == [run]


def test_what_would_be_run_of_a_job(here: Path, capsys: Capture) -> None:
    (here / "job.yaml").write_text(SPEC)
    done = call(capsys, "improve", "job.yaml", "--dry-run")
    assert done.code == 0, done.err
    assert done.out.startswith("# train on local: 3 trials, nothing is started\n")
    assert done.out.endswith("# the next stage, experiments: what the findings of this run ask for\n")
    assert [
        row["trial"] for row in call(capsys, "improve", "job.yaml", "--dry-run", "--json").json["trials"]
    ] == [
        "000-base-none-r1",
        "001-base-torch-r1",
        "002-base-none-r2",
    ]
    assert not (here / "runs").exists()


def test_what_would_be_run_of_a_run(base: Run, capsys: Capture) -> None:
    done = call(capsys, "improve", "last", "--dry-run", "--rounds", 3)
    assert done.code == 0, done.err
    assert done.out.startswith("# train-experiments on local: 12 trials, nothing is started\n")
    assert (
        "# changed in the program: loader-workers=4: DataLoaders get 4 persistent worker processes"
        in done.out
    )
    assert "# changed in the program: tf32: Matrix products of fp32 tensors run in TF32, also" in done.out
    assert "export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1\n" in done.out
    assert done.out.endswith("# the next stage, together: everything that helped, against the base again\n")


def test_what_the_budget_does_not_allow_is_named_before(
    base: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profrun.runner.improve.trials_s", lambda state: [60.0])
    done = call(capsys, "improve", base.name, "--dry-run", "--budget", "2m")
    assert done.code == 0, done.err
    assert done.err == "not tried: tf32: the budget of 2 min is too short for it\n"


def test_where_no_finding_asks_for_an_experiment_nothing_would_be_run(
    base: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profrun.runner.improve.asked_for", lambda *_: ())
    done = call(capsys, "improve", "last", "--dry-run")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"profrun: there is nothing to try on {base.name}: no finding asks for an experiment\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--budget", "soon"), 64, "--budget soon is no time; "),
        (("--accept", "loss"), 64, "'loss' says no difference that is accepted; write 'loss within 1%'"),
        (("--variant", "bas"), 64, "there is no variant 'bas'; did you mean 'base'?"),
        (("--rounds", "2"), 64, "--rounds"),
        (("--backend", "moon"), 64, "moon"),
        (
            ("--set", "repeats=3"),
            64,
            "overrides (--set) cannot change last, a run that exists; leave them out, or name",
        ),
    ],
)
def test_what_is_refused(base: Run, capsys: Capture, words: tuple[str, ...], code: int, said: str) -> None:
    done = call(capsys, "improve", "last", "--dry-run", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_only_that_names_nothing_says_what_is_near(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_findings(monkeypatch, "base")
    new_run(tmp_path / "runs", SPEC)
    done = call(
        capsys, "improve", "last", "--dry-run", "--only", "tf32,dataloader-stal", "--runs", tmp_path / "runs"
    )
    assert done.code == 64
    assert done.err == (
        "profrun: --only dataloader-stal: there is no change 'dataloader-stal', and no rule of that name; "
        "did you mean 'dataloader-stall'?\n"
    )


def test_there_is_no_such_run_or_job(here: Path, capsys: Capture) -> None:
    done = call(capsys, "improve", "last")
    assert done.code == 64
    assert done.err.startswith("profrun: no run 'last' in runs: there are no runs there; see `profrun runs`")
    assert "there is no job spec at nowhere.yaml" in call(capsys, "improve", "nowhere.yaml").err


def test_a_run_without_a_step_time_is_told_what_to_do(base: Run, capsys: Capture) -> None:
    for one in sorted(base.trials.iterdir()):
        leave(base.trial(one.name), steps=())
    done = call(capsys, "improve", "last")
    assert (done.code, done.out) == (2, "")
    assert f"{base.name} has no step time of its variant 'base' without a profiler" in done.err
    assert "call profrun.step() once an iteration" in done.err


@pytest.fixture
def improved(base: Run, monkeypatch: pytest.MonkeyPatch) -> Improvement:
    """The stages have run: one change was tried, and it helped."""
    found = Improvement(
        base.name,
        "base",
        (PROVEN,),
        replace(PROVEN, name="together"),
        experiments_run="train-experiments-1",
        together_run="train-together-1",
        spent_s=61.0,
        done=True,
        improved="improved-again",
    )

    def improve(
        source: object, job: object, wishes: object, carry_out: Callable[[PreparedRun], RunState]
    ) -> tuple[Run, Improvement]:
        return base, found

    write_improvement(base, found)
    monkeypatch.setattr("profrun.runner.improve.improve", improve)
    return found


def test_the_answer_is_printed_with_where_everything_is(
    base: Run, improved: Improvement, capsys: Capture
) -> None:
    done = call(capsys, "improve", "last", "--verbose")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[1] == f"{base.name}: improve ended after 1 min 01 s"
    assert "step 30 ms -> 9 ms" in done.out
    assert lines[-5:] == [
        f"job:    runs/{base.name}/improved.yaml, variant 'improved-again'",
        f"report: runs/{base.name}/report.html",
        f"next:   profrun improve {base.name} --variant improved-again",
        "stage:  runs/train-experiments-1",
        "stage:  runs/train-together-1",
    ]
    assert "What helps" in base.report.read_text()
    assert "stage: " not in call(capsys, "improve", "last").out


def test_one_document_is_printed(base: Run, improved: Improvement, capsys: Capture) -> None:
    done = call(capsys, "improve", "last", "--json")
    assert (done.code, done.err) == (0, "")
    assert from_json(Improvement, done.json) == improved


def test_where_nothing_is_left_to_try_no_command_goes_on(
    base: Run, improved: Improvement, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = replace(improved, improved="", together=None)
    monkeypatch.setattr("profrun.runner.improve.improve", lambda *_: (base, found))
    done = call(capsys, "improve", "last")
    assert done.out.splitlines()[-1] == f"report: runs/{base.name}/report.html"
    assert "improved.yaml" not in done.out


def test_what_helped_is_improved_further_by_the_name_of_its_variant(base: Run, capsys: Capture) -> None:
    base.improved.write_text(
        SPEC.replace("base: {}", "base: {}, improved: {}") + "changes: {improved: [tf32]}\n"
    )
    done = call(capsys, "improve", "last", "--variant", "improved", "--dry-run")
    assert done.code == 0, done.err
    assert done.out.startswith("# train on local: 3 trials, nothing is started\n\n## 000-improved-none-r1\n")
    assert "# changed in the program: tf32: " in done.out


def test_the_run_of_a_stage_stands_for_the_run_that_it_belongs_to(
    tmp_path: Path, base: Run, improved: Improvement, capsys: Capture
) -> None:
    stage, _ = new_run(tmp_path / "runs", SPEC.replace("train", "train-experiments"))
    write_improvement(base, replace(improved, experiments_run=stage.name))
    done = call(capsys, "improve", stage.name, "--dry-run")
    assert done.err == f"{stage.name} is a stage of the improvement of {base.name}\n"
    assert done.out.startswith("# train-experiments on local: ")
    shutil.rmtree(stage.path)


def improved_step_ns(job: Path, here: Path) -> int:
    """The median step of one trial of the job that `improve` wrote."""
    done = program("submit", job, "--only", "improved", "--json", cwd=here)
    assert done.code == 0, done.err
    return int(next(one["median_step_ns"] for one in done.json["trials"] if one["collector"] == "none"))


@pytest.mark.thorough
def test_a_slow_loader_is_found_tried_and_proven(here: Path) -> None:
    (here / "work.py").write_text(SLOW)
    (here / "job.yaml").write_text("name: t\ncommand: python work.py\nresources: {gpus: 0}\n")
    words = ("--only", "loader-workers=4", "--rounds", 4, "--budget", "1h", "--json")
    done = program("improve", "job.yaml", *words, cwd=here, timeout=600)
    assert done.code == 0, done.err
    found = from_json(Improvement, done.json)
    row = next(one for one in found.experiments if one.changes == ("loader-workers=4",))
    assert "dataloader-stall" in {one.rule for one in row.promises}
    assert row.promised == pytest.approx(IMPLIED, rel=0.2)
    assert (row.state, row.same.verdict, row.same.kind) == ("proven", "same", "loss")
    assert row.gain == pytest.approx(IMPLIED, rel=0.2)
    assert row.said == ("loader-workers=4: 1 DataLoader got 4 worker processes",)
    together = found.together
    assert together is not None
    assert (together.state, together.same.verdict) == ("proven", "same")
    assert together.gain == pytest.approx(IMPLIED, rel=0.2)
    assert together.rounds >= 3
    assert found.done

    run = Run(here / "runs" / found.run)
    assert "What helps" in run.report.read_text()
    kept = load_job(run.improved)
    assert kept.changes["improved"] == together.changes
    steps = [improved_step_ns(run.improved, here)]
    while steps[-1] > 20e6 and len(steps) < 3:  # one trial without repeats, on a machine that is busy
        steps.append(improved_step_ns(run.improved, here))
    assert 8e6 < steps[-1] < 20e6, steps
