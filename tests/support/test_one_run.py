"""A recorded run of an H200, its steps taken away: every screen and page is of the run."""

from __future__ import annotations

import tarfile

import pytest

from profrun import cli
from profrun.store.run_result import RunResult, run_result
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.conftest import ROOT, unpack
from tests.reports.documents import Node, parse, rows_of
from tests.support.one_run import as_one_run

pytestmark = pytest.mark.thorough  # four more readings of one run: the rooms have tests of their own


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    runs = tmp_path_factory.mktemp("runs")
    with tarfile.open(ROOT / "tests/data/h200/programs/pageable.tar.xz") as archive:
        unpack(archive, runs)
    as_one_run(runs / "pageable")
    cli.run(["-q", "resume", "pageable", "--yes", "--runs", str(runs), "--json"])
    return Run(runs / "pageable")


@pytest.fixture(scope="module")
def result(run: Run) -> RunResult:
    return run_result(read_state(run))


def test_the_answer_is_of_the_run(result: RunResult) -> None:
    (answer,) = result.answers
    assert answer.denominator.of == "run"
    assert answer.step is not None
    assert answer.step.denominator.of == "run"
    assert (answer.step.trials, answer.step.steps) == (2, 2)
    assert {pair.denominator.of for pair in result.comparisons} == {"run"}
    assert [pair.ratio is not None for pair in result.comparisons] == [True] * len(result.comparisons)
    assert not [pair.text for pair in result.comparisons if "per step" in pair.text]


def test_the_report_says_run_where_it_said_step(run: Run) -> None:
    document = parse(run.report.read_text(encoding="utf-8"))
    shown = {
        name: _section(document, f"run-{name}") for name in ("overview", "comparisons", "steps", "trials")
    }
    for name, text in shown.items():
        assert "step" not in text.replace("no steps were found", ""), name
    assert "Numbers are of the whole run, set-up included: no steps were found." in shown["overview"]
    assert "Run times" in shown["steps"]
    assert len(rows_of(document, "trials")[0]) == 12  # one time per trial in place of three columns on steps


def _section(document: Node, name: str) -> str:
    (section,) = document.every("section", id=name)
    return section.text
