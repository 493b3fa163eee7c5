"""What a report of a run holds when parts of the run are broken or missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.runner import report
from profrun.runner.finish import ReadTraces, write_findings
from profrun.runner.report import run_report
from profrun.store.state import read_state
from tests.reports.documents import parse, rows_of
from tests.reports.runs import finished_run
from tests.runner.scripted import new_run


def test_a_broken_run_says_what_is_missing(tmp_path: Path) -> None:
    run, plan = finished_run(tmp_path)
    first = next(trial for trial in plan.trials if trial.collector == "torch")
    (run.trial(first.id).folder / "trace/slices.parquet").write_bytes(b"torn")
    (run.trial(plan.trials[0].id).folder / "provenance.json").write_text("{")
    document = parse(run_report(read_state(run)))
    missing = [item.text for item in document.every("li") if item.text.startswith("missing")]
    assert any(f"{first.id} has no tab" in line for line in missing)
    assert any("comparisons and expectations" in line for line in missing)
    assert any(f"{plan.trials[0].id} left no provenance" in line for line in missing)
    assert len(rows_of(document, "trials")) == len(plan.trials)


@pytest.mark.thorough
def test_traces_share_the_slices_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = finished_run(tmp_path)
    whole = parse(run_report(read_state(run)))
    shown = [note.text for note in whole.every("p", class_="note") if "slices of the trace" in note.text]
    assert len(shown) == 3
    assert all(text.startswith("All ") for text in shown)
    monkeypatch.setattr(report, "SLICES", 8)  # three traces have two each
    cut = parse(run_report(read_state(run)))
    shown = [note.text for note in cut.every("p", class_="note") if "slices of the trace" in note.text]
    assert [text[:5] for text in shown] == ["2 of "] * 3
    assert all("are left out" in text for text in shown)


def test_a_run_without_one_trial_started_has_a_report(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path / "runs")
    document = parse(run_report(read_state(run)))
    assert [row[5] for row in rows_of(document, "trials")] == ["planned"] * len(plan.trials)
    assert "Not in this run: Overview, Comparisons, Step times" in document.text


@pytest.mark.thorough
def test_each_later_variant_has_a_tab_with_what_changed_from_the_first(tmp_path: Path) -> None:
    run, _ = finished_run(tmp_path)
    document = parse(run_report(read_state(run)))
    tabs = [tab.text for tab in document.every("a", role="tab")]
    assert tabs[1] == "a -> b"
    (lead,) = document.every("p", class_="lead")
    assert lead.text.startswith("inconclusive a ")
    how = [
        row.every("th")[0].text for row in document.every("table", data_table="verdicts")[0].every("tr")[1:]
    ]
    assert how == ["without a profiler", "under torch"]  # trials with launch blocking are left out
    command = f"profrun compare {run.name}/a vs {run.name}/b --allow unreliable"  # recorded steps overlap
    assert command in [code.text for code in document.every("code")]


@pytest.mark.thorough
def test_what_the_end_of_a_run_read_is_not_read_again(
    tmp_path: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan = finished_run(tmp_path)
    state, read = read_state(run), ReadTraces()
    write_findings(state, plan.job.expect, read)
    opened.clear()
    monkeypatch.setattr(report, "made_by", lambda: "a test")
    given = run_report(state, read)
    assert [path.parent.name for path in opened] == [record.id for record in report._chosen(state)[0]]
    assert given == run_report(state)
