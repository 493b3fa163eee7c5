"""The history of runs: from state documents alone, every run shown or named."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.runner.history import history_page, read_history
from profrun.runner.twins import step_of
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.reports.documents import parse, rows_of
from tests.runner.scripted import begin, leave, new_run

SPEC = """\
name: {job}
command: python x.py --n {{n}}
variants: {{a: {{n: 1}}, b: {{n: 2}}}}
collectors: [none, torch]
repeats: 2
"""


def make_run(root: Path, number: int, step: int, *, job: str = "train", gpu: str = "H200") -> Run:
    """A run of four unprofiled trials; profiled ones have steps that must not count."""
    run, plan = new_run(root, SPEC.format(job=job))
    for repeat, trial in enumerate(plan.trials):
        paths = begin(run.trial(trial.id))
        run.log().append("started", trial.id, attempt=1)
        took = 9 * step if trial.collector == "torch" else step + repeat
        leave(paths, steps=[took] * 5)
        known = {"trial": trial.id, "gpus": {"before": [{"name": gpu}]}, "torch": {"version": "2.10"}}
        paths.provenance.write_text(json.dumps(known))
    run.log().append("done", None, state="finished")
    named = root / f"{job}-20261101t{number:02d}0000z-{number:04x}"
    run.path.rename(named)
    return Run(named)


def test_a_series_for_each_variant_with_its_step_times_and_links(tmp_path: Path) -> None:
    made = [make_run(tmp_path / "runs", number, step) for number, step in enumerate((1000, 1000, 2000))]
    made[1].report.write_text("")
    found = read_history(tmp_path / "runs", tmp_path / "out/index.html")
    assert {(one.job, one.variant, one.collector) for one in found.series} == {
        ("train", "a", "none"),
        ("train", "b", "none"),
    }
    for one in found.series:
        assert [row.run for row in one.runs] == [run.name for run in made]
        assert [row.link for row in one.runs] == [None, f"../runs/{made[1].name}/report.html", None]
        state = read_state(made[2])
        trials = [t for t in state.trials if (t.variant, t.collector) == (one.variant, "none")]
        step = step_of(trials)
        assert step is not None
        assert (one.runs[2].step_ns, one.runs[2].trials) == (step.ns, 2)
        assert [row.change.verdict for row in one.runs[1:] if row.change] == ["inconclusive", "slower"]
    document = parse(history_page(tmp_path / "runs", tmp_path / "out/index.html"))
    assert document.every("title")[0].text == "History of train"
    assert "train, a: 1.002 us -> 2.002 us, +99.8 %" in document.every("ul", class_="quality")[0].text
    assert [row[0] for row in rows_of(document, "runs-0-0")] == [run.name for run in reversed(made)]
    assert len(document.every("svg")) == 2


def test_other_hardware_and_unread_runs_are_said(tmp_path: Path) -> None:
    make_run(tmp_path, 1, 1000)
    make_run(tmp_path, 2, 3000, gpu="H100")
    damaged = make_run(tmp_path, 3, 1000)
    damaged.events.write_text("{}\n")
    empty, _ = new_run(tmp_path, SPEC.format(job="other"))
    found = read_history(tmp_path, tmp_path / "index.html")
    change = found.series[0].runs[1].change
    assert change is not None
    assert (change.verdict, change.machine) == ("incomparable", ("GPU: H200 -> H100",))
    assert sorted(line.split(":")[0] for line in found.left_out) == sorted([damaged.name, empty.name])
    document = parse(history_page(tmp_path, tmp_path / "index.html"))
    assert "2 runs not shown" in document.text


def test_no_trace_is_opened(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1, 1000)
    for trial in read_state(run).trials:
        trial.paths.trace.mkdir()
        (trial.paths.trace / "meta.json").write_text("damaged")
    assert len(read_history(tmp_path, tmp_path / "index.html").series) == 2
