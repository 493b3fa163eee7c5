"""The page of a run: its trials, comparisons, expectations and machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.runner.finish import write_findings
from profrun.runner.report import run_report
from profrun.store.state import read_state
from tests.reports.documents import parse, rows_of
from tests.reports.runs import finished_run


def test_the_page_of_a_run(tmp_path: Path) -> None:
    run, plan = finished_run(tmp_path)
    state = read_state(run)
    write_findings(state, plan.job.expect)
    text = run_report(read_state(run))
    document = parse(text)
    trials = rows_of(document, "trials")
    assert [row[0] for row in trials] == [trial.id.split("-")[0] for trial in plan.trials]
    assert [row[5] for row in trials] == ["finished"] * (len(trials) - 1) + ["failed"]
    tabs = [tab.text for tab in document.every("a", role="tab")]
    assert (tabs[0], tabs[-1]) == ("Overview", "Step on step")
    assert tabs[1] == "a -> b"
    assert {"a, torch", "b, torch", "a, torch, blocking"} <= set(tabs)
    assert document.every("title")[0].text == document.every("h1")[0].text
    assert document.every("h1")[0].text.startswith("t: ")
    assert "Boom: </pre><script>" in document.text  # as text
    kept = json.loads(run.comparison.read_text())
    assert rows_of(document, "images") == [["repo/image:1", "sha256:1", str(len(trials))]]
    assert "box-<7>" in document.text
    assert "sw_power_cap" in rows_of(document, "gpus")[0]
    assert "should never leave" not in text
    for row in kept["comparisons"]:
        assert row["text"] in document.text
    assert "refuted" in [row[0] for row in rows_of(document, "claims")]
    first = document.every("ul", class_="quality")[0].text
    assert "claim refuted: " in first
    assert "never" in first
    row = kept["comparisons"][0]
    cells = rows_of(document, f"comparisons-{row['kind']}")[0]
    assert cells[:3] == [row["a"], row["b"], row["verdict"]]
    assert cells[7] == " and ".join(map(str, row["trials"]))


@pytest.mark.thorough
def test_the_page_says_which_gpus_each_trial_used(tmp_path: Path) -> None:
    """Two GPUs; the trials used the second, as its uuid in their traces says; the last one left no trace."""
    states = [{"name": "GPU X", "uuid": "GPU-606d"}, {"name": "GPU Y", "uuid": "GPU-6ea3"}]
    gpus = {"before": states, "after": states[1:]}
    run, plan = finished_run(tmp_path, device={"uuid": "6ea3"}, provenance={"gpus": gpus})
    rows = rows_of(parse(run_report(read_state(run))), "gpus")
    for trial in plan.trials:
        used = ("-", "-", "-") if trial is plan.trials[-1] else ("no", "yes", "yes")
        expected = zip(("before", "before", "after"), ("GPU X", "GPU Y", "GPU Y"), used, strict=True)
        assert [tuple(row[1:4]) for row in rows if row[0] == trial.id] == list(expected)
