"""``profrun.improve``: the stages from Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import profrun
from profrun.api.improvement import Improvement
from profrun.contract.units import time_text
from profrun.errors import InconclusiveError, UsageError
from profrun.runner.improve import Wishes
from profrun.runner.pipeline import PreparedRun
from profrun.store.improvement import Improvement as ImprovementValue
from profrun.store.runs import Run
from profrun.store.state import RunState
from tests.api.conftest import Told, write_job
from tests.runner.scripted import new_run


@pytest.mark.thorough
def test_a_variant_of_the_user_is_tried_and_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, variants={"baseline": {"seconds": 0.02}, "optimised": {"seconds": 0.005}})
    told = Told()
    found = profrun.improve("job.yaml", rounds=4, budget_s=600, observer=told)
    assert isinstance(found, Improvement)
    (row,) = found.experiments
    assert (row.name, row.state) == ("optimised", "proven")
    assert row.gain == pytest.approx(0.75, rel=0.2)
    assert found.together is not None
    assert found.together.values == {"seconds": 0.005}
    assert told.events.count("done") == 3
    run = profrun.find_run(found.run)
    assert "What helps" in (run.path / "report.html").read_text()
    plan = profrun.plan(run.path / "improved.yaml")
    assert list(plan.job.variants) == ["baseline", "optimised", "improved"]
    together = found.together
    assert together.base_ns is not None
    assert 0.02e9 <= together.base_ns < 0.04e9  # a machine that does other work wakes a sleep late
    assert str(found).startswith(f"  step {time_text(together.base_ns)} -> {time_text(together.step_ns)}, ")
    assert found._repr_html_().startswith("<pre>  step ")
    assert found.table("experiments").to_polars()["name"].to_list() == ["optimised"]


class Asked:
    """Takes the place of the stages, and keeps what they were asked."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.source: object = None
        self.variants: list[str] = []
        self.wishes: Wishes | None = None

    def __call__(
        self, source: object, job: object, wishes: Wishes, carry_out: Callable[[PreparedRun], RunState]
    ) -> tuple[Run, ImprovementValue]:
        """What ``runner.improve.improve`` gives."""
        self.source, self.variants, self.wishes = source, list(job.variants), wishes  # type: ignore[attr-defined]
        return self.run, ImprovementValue(self.run.name, "a")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The stages are not run; the folder is that of the only run."""
    monkeypatch.chdir(tmp_path)
    found = Asked(new_run(tmp_path / "runs")[0])
    monkeypatch.setattr("profrun.runner.improve.improve", found)
    return found


def test_what_is_wished_is_asked_for(asked: Asked, tmp_path: Path) -> None:
    found = profrun.improve(
        "last", budget_s=60, only="tf32", accept="loss within 1%", variant="b", rounds=5, backend="docker"
    )
    assert asked.wishes == Wishes(
        "docker", Path("runs"), base="b", only=("tf32",), budget_s=60, accept=0.01, rounds=5
    )
    assert asked.source == asked.run
    assert str(found) == "  no finding asks for an experiment, so nothing was tried"
    assert (asked.run.path / "report.html").exists()
    profrun.improve(asked.run.path, only=["tf32", "compile"], accept=0.5, runs=tmp_path / "runs")
    assert asked.wishes is not None
    assert (asked.wishes.only, asked.wishes.accept) == (("tf32", "compile"), 0.5)
    profrun.improve(profrun.find_run("last"))
    assert asked.source == asked.run


def test_a_job_is_read_with_its_overrides(asked: Asked, tmp_path: Path) -> None:
    write_job(tmp_path)
    profrun.improve("job.yaml", set="variants={only: {seconds: 1}}")
    assert asked.variants == ["only"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rounds": 2}, "rounds=2 are too few; at least 3 are needed"),
        ({"accept": "loss"}, "'loss' says no difference"),
        ({"set": "repeats=3"}, "overrides \\(--set\\) cannot change last"),
        ({"job_or_run": "nobody"}, "nobody"),
        ({"job_or_run": "nowhere.yaml"}, "there is no job spec at nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_refused(asked: Asked, more: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        profrun.improve(**{"job_or_run": "last", **more})  # type: ignore[arg-type]
    assert asked.wishes is None


def test_a_stage_is_executed_and_finished_and_tells_the_observer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base stage alone: no recording of it says what to try."""
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, variants={"baseline": {"seconds": 0.001}}, image="example/image:1")
    told = Told()
    with pytest.raises(InconclusiveError, match="has no recording of its variant 'baseline'"):
        profrun.improve("job.yaml", observer=told)
    assert told.events[-1] == "done"
    run = profrun.find_run()
    assert [trial.state for trial in run.trials if trial.collector == "none"] == ["finished"] * 2
    assert (run.path / "report.html").exists()
    assert any("the local backend runs the command on this machine" in text for text in told.notes)
