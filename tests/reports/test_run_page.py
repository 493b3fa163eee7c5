"""``profrun report``: of runs whole and broken, of traces; and what a run's page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.plans.model import Plan
from profrun.runner.finish import write_findings
from profrun.runner.report import run_report
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.cli.running import call
from tests.reports.documents import Node, parse
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

Capture = pytest.CaptureFixture[str]
SPEC = """\
name: t
command: python x.py --n {n}
variants: {a: {n: 1}, b: {n: 2}}
collectors: [none, torch]
launch_blocking: both
expect: [{present: [never]}]
"""
PROVENANCE = {
    "trial": "a trial",
    "host": "box-<7>", "os": "Debian", "cpus": 2, "cpu": "A CPU", "memory_bytes": 2**34, "vendor": "nvidia",
    "git": {"sha": "abc", "dirty": True}, "image": {"reference": "repo/image:1", "digest": "sha256:1"},
    "environment": {"TOKEN": "should never leave the machine"}, "packages": ["torch==2.13.0"],
    "gpus": {"before": [{"name": "GPU X", "clocks_sm": 1980, "throttled_by": ["sw_power_cap"]}], "after": []},
}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> tuple[Run, Plan]:
    """Every trial finished and left a trace, but the last, which failed."""
    run, plan = new_run(tmp_path / "runs", SPEC)
    for number, trial in enumerate(plan.trials):
        paths = begin(run.trial(trial.id))
        run.log().append("started", trial.id, attempt=1)
        last = trial is plan.trials[-1]
        leave(paths, "failed" if last else "finished", steps=[1000 * (number + 1)] * 3)
        paths.provenance.write_text(json.dumps(PROVENANCE))
        if last:
            paths.stderr.write_text("Boom: </pre><script>\n")
            continue
        rows = [("step", f"profrun.step#{n}", 2000 * n, 1000 * (number + 1), "main") for n in range(3)]
        make_trace(paths.trace, rows, meta={"collector": trial.collector}).close()
    run.log().append("done", None, state="failed")
    return run, plan


def rows_of(document: Node, name: str) -> list[list[str]]:
    (found,) = document.every("table", data_table=name)
    return [[cell.text for cell in row.every("td")] for row in found.every("tbody")[0].every("tr")]


def test_the_page_of_a_run(made: tuple[Run, Plan]) -> None:
    run, plan = made
    state = read_state(run)
    write_findings(state, plan.job.expect)
    text = run_report(read_state(run))
    document = parse(text)
    trials = rows_of(document, "trials")
    assert [row[0] for row in trials] == [trial.id.split("-")[0] for trial in plan.trials]
    assert [row[5] for row in trials] == ["finished"] * (len(trials) - 1) + ["failed"]
    tabs = [tab.text for tab in document.every("button", role="tab")]
    assert tabs[0] == "Run"
    assert all("-torch-" in tab for tab in tabs[1:])
    assert len(tabs) > 1
    assert "Boom: </pre><script>" in document.text  # as text
    kept = json.loads(run.comparison.read_text())
    assert rows_of(document, "images") == [["repo/image:1", "sha256:1", str(len(trials))]]
    assert "box-<7>" in document.text
    assert "sw_power_cap" in rows_of(document, "gpus")[0]
    assert "should never leave" not in text
    for row in kept["comparisons"]:
        assert row["text"] in document.text
    assert "failed" in [row[0] for row in rows_of(document, "expectations")]
    first = document.every("ul", class_="quality")[0].text
    assert "expectation failed: " in first
    assert "never" in first
    row = kept["comparisons"][0]
    cells = rows_of(document, f"comparisons-{row['kind']}")[0]
    assert cells[:3] == [row["a"], row["b"], row["verdict"]]
    assert cells[7] == " and ".join(map(str, row["trials"]))


def test_a_broken_run_says_what_is_missing(made: tuple[Run, Plan]) -> None:
    run, plan = made
    first = next(trial for trial in plan.trials if trial.collector == "torch")
    (run.trial(first.id).folder / "trace/slices.parquet").write_bytes(b"torn")
    (run.trial(plan.trials[0].id).folder / "provenance.json").write_text("{")
    document = parse(run_report(read_state(run)))
    missing = [item.text for item in document.every("li") if item.text.startswith("missing")]
    assert any(f"{first.id} has no tab" in line for line in missing)
    assert any("comparisons and expectations" in line for line in missing)
    assert any(f"{plan.trials[0].id} left no provenance" in line for line in missing)
    assert len(rows_of(document, "trials")) == len(plan.trials)


@pytest.mark.parametrize(("works", "code"), [(True, 0), (False, 69)])
def test_open_asks_for_a_browser(
    made: tuple[Run, Plan],
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    works: bool,
    code: int,
) -> None:
    asked: list[str] = []

    def browser(url: str) -> bool:
        asked.append(url)
        return works

    monkeypatch.setattr("webbrowser.open", browser)
    done = call(capsys, "report", "--open", "--runs", tmp_path / "runs")
    assert (done.code, asked) == (code, [made[0].report.absolute().as_uri()])
    assert made[0].report.exists()


def test_a_run_without_one_trial_started_has_a_report(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path / "runs")
    document = parse(run_report(read_state(run)))
    assert [row[5] for row in rows_of(document, "trials")] == ["planned"] * len(plan.trials)
    assert "Not in this run: Comparisons, Step times" in document.text


def test_report_of_a_run_lands_in_its_folder_or_where_asked(
    made: tuple[Run, Plan], tmp_path: Path, capsys: Capture
) -> None:
    run, plan = made
    runs = ("--runs", tmp_path / "runs")
    assert call(capsys, "report", *runs).out == f"{run.report}\n"  # last
    found = call(capsys, "report", run.name, *runs, "--out", tmp_path / "x.html", "--json").json
    assert found["report"] == str(tmp_path / "x.html")
    assert found["bytes"] == (tmp_path / "x.html").stat().st_size
    single = next(trial for trial in plan.trials if trial.collector == "torch")
    done = call(capsys, "report", f"{run.name}/{single.index}", *runs, "--out", tmp_path / "y.html")
    assert (done.code, parse((tmp_path / "y.html").read_text()).every("h1")[0].text) == (0, single.id)


def test_report_of_traces_makes_a_tab_each_and_replaces_nothing_unasked(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        make_trace(tmp_path / name, [("step", "profrun.step#1", 0, 10, "main")]).close()
    assert call(capsys, "report", "one", "two").out == "one.html\n"
    tabs = parse(Path("one.html").read_text()).every("button", role="tab")
    assert [tab.text for tab in tabs] == ["one", "two"]
    again = call(capsys, "report", "one")
    assert again.code == 64
    assert "exists already" in again.err
    assert call(capsys, "report", "one", "--out", "one.html").code == 0
    assert call(capsys, "report", "nowhere").code == 64
