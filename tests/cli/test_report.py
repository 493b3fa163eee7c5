"""``profrun report``: of runs and of traces, and where the page lands."""

from __future__ import annotations

import html
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Capture, call
from tests.conftest import ROOT
from tests.reports.documents import parse
from tests.reports.mapped_run import SECRET, mapped_run
from tests.reports.runs import finished_run
from tests.runner.test_history import make_run
from tests.support.memory import PEAK_KIB
from tests.tracekit import make_trace


@pytest.mark.thorough
@pytest.mark.parametrize(("works", "code"), [(False, 69), (True, 0)])
def test_open_asks_for_a_browser(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    works: bool,
    code: int,
) -> None:
    run, _ = finished_run(tmp_path / "runs")
    asked: list[str] = []

    def browser(url: str) -> bool:
        asked.append(url)
        return works

    monkeypatch.setattr("webbrowser.open", browser)
    monkeypatch.setenv("BROWSER", "pretend")
    done = call(capsys, "report", "--open", "--runs", tmp_path / "runs")
    assert (done.code, asked) == (code, [run.report.absolute().as_uri()])
    assert run.report.exists()


def test_report_of_a_run_lands_in_its_folder_or_where_asked(tmp_path: Path, capsys: Capture) -> None:
    run, plan = finished_run(tmp_path / "runs")
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
    tabs = parse(Path("one.html").read_text()).every("a", role="tab")
    assert [tab.text for tab in tabs] == ["one", "two", "Step on step"]
    again = call(capsys, "report", "one")
    assert again.code == 64
    assert "exists already" in again.err
    assert call(capsys, "report", "one", "--out", "one.html").code == 0
    assert call(capsys, "report", "nowhere").code == 64


def test_the_index_of_a_folder_of_runs(tmp_path: Path, capsys: Capture) -> None:
    make_run(tmp_path / "runs", 1, 1000)
    make_run(tmp_path / "runs", 2, 2000)
    page = tmp_path / "runs/index.html"
    assert call(capsys, "report", "--index", str(tmp_path / "runs")).out == f"{page}\n"
    assert parse(page.read_text()).every("title")[0].text == "History of train"
    other = tmp_path / "o.html"
    printed = call(capsys, "report", "--index", str(tmp_path / "runs"), "-o", str(other), "--json").out
    assert json.loads(printed)["runs"] == 2
    both = call(capsys, "report", "last", "--index", str(tmp_path / "runs"))
    none = call(capsys, "report", "--index", str(tmp_path / "none"))
    assert (both.code, none.code) == (64, 64)
    assert "no runs in" in none.err


def test_source_is_in_the_file_only_when_it_is_asked_for(tmp_path: Path, capsys: Capture) -> None:
    run, folder = mapped_run(tmp_path)
    runs, out = ("--runs", tmp_path / "runs"), tmp_path / "page.html"
    sources = [folder / name for name in ("model.py", "train.py")]
    texts = [line.strip() for file in sources for line in file.read_text().splitlines()]
    told = [html.escape(text).encode() for text in texts if len(text) > 15 and SECRET not in text]
    for words in ([run.name], [f"{run.name}/1"]):
        assert call(capsys, "report", *words, *runs, "--out", out).code == 0
        assert [text for text in told if text in out.read_bytes()] == []
        assert call(capsys, "report", *words, *runs, "--out", out, "--source").code == 0
        assert html.escape("scores = q @ k.transpose(-2, -1) * self.scale").encode() in out.read_bytes()
        assert SECRET.encode() not in out.read_bytes()
    (folder / "train.py").unlink()
    assert call(capsys, "report", run.name, *runs, "--out", out, "--source").code == 0
    assert f"{folder}/train.py is not shown: it is not on this machine" in out.read_text()
    assert call(capsys, "report", "--index", tmp_path / "runs", "--source").code == 64


@pytest.mark.thorough
def test_time_and_memory_of_a_report_grow_no_faster_than_its_slices(tmp_path: Path) -> None:
    make = runpy.run_path(str(ROOT / "bench/analysis.py"))["make"]
    code = "import sys, time; from profrun.cli import run; run(['report', *sys.argv[1:], '-q']); "
    code += f"print(time.process_time(), {PEAK_KIB})"
    found = []
    for slices in (600_000, 2_400_000):  # below, the engine's buffers for each of its threads still fill
        words = [make(tmp_path / str(slices), slices), "-o", tmp_path / "report.html"]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        found.append([float(word) for word in done.stdout.split()[-2:]])
    (few_s, few_kib), (many_s, many_kib) = found
    assert many_s < 4 * few_s
    assert (many_kib - few_kib) * 1024 < 400 * 1_800_000  # bytes for each further slice
