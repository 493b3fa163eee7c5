"""Commands that look: at specs, traces, files, runs; their text, JSON and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.store.lock import driving
from profrun.store.runs import Run
from tests.cli.running import call
from tests.conftest import ROOT
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

SLICES = [
    ("step", "profrun.step#1", 0, 1000, "main"),
    ("api", "cudaLaunchKernel", 10, 5, "main", {"parent": 0, "depth": 1}),
    ("kernel", "gemm", 100, 300, "stream 7", {"launch": 1}),
    ("kernel", "relu", 500, 200, "stream 7", {"launch": 1}),
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A step with two kernels: 500 of 1000 ns."""
    make_trace(tmp_path / "t", SLICES).close()
    return tmp_path / "t"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run whose first trial finished and whose second nobody started; nobody drives it."""
    run, _ = new_run(tmp_path / "runs")
    first = begin(run.trial("000-a-none-r1"))
    run.log().append("started", first.folder.name, attempt=1, handle={"backend": "local", "data": {}})
    leave(first)
    first.stdout.write_text("out 1\nout 2")
    first.stderr.write_text("err\n")
    return run


Capture = pytest.CaptureFixture[str]


def test_query_as_text_csv_and_json(trace: Path, capsys: Capture) -> None:
    sql = "SELECT kind, count(*) AS n, max(dur_ns) AS longest, NULL AS x FROM slices GROUP BY 1 ORDER BY 1"
    assert call(capsys, "query", trace, sql).out.splitlines() == [
        "kind    n  longest  x",
        "api     1        5  -",
        "kernel  2      300  -",
        "step    1     1000  -",
    ]
    assert call(capsys, "query", trace, sql, "--csv").out == (
        "kind,n,longest,x\napi,1,5,\nkernel,2,300,\nstep,1,1000,\n"
    )
    assert call(capsys, "query", trace, sql, "--json").json == {
        "columns": ["kind", "n", "longest", "x"],
        "rows": [["api", 1, 5, None], ["kernel", 2, 300, None], ["step", 1, 1000, None]],
    }
    assert call(capsys, "query", trace, "SELECT 'nan'::DOUBLE AS x", "--json").json["rows"] == [[None]]


def test_a_wrong_query_is_65_and_the_engines_words(trace: Path, capsys: Capture) -> None:
    done = call(capsys, "query", trace, "SELECT nothing FROM nowhere")
    assert done.code == 65
    assert "nowhere" in done.err


def test_summary_says_what_the_trace_holds(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "summary", trace, "--json").json
    assert found["devices"][0]["busy_ns"] == 500
    assert [(row["name"], row["total_ns"]) for row in found["kernels"]] == [("gemm", 300), ("relu", 200)]
    text = call(capsys, "summary", trace, "--top", 1).out
    assert "utilization 50.0 % of 1 us (steps)" in text
    assert "gemm" in text
    assert "... and 1 more (--top 0 shows all)" in text
    assert "relu" in call(capsys, "summary", trace, "--top", 0).out


@pytest.mark.parametrize(("to", "suffix"), [("perfetto", ".pftrace"), ("chrome", ".json.gz")])
def test_export_writes_every_slice_and_never_over_a_file(
    tmp_path: Path, trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, to: str, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = call(capsys, "export", trace, "--to", to, "--json").json
    assert (found["path"], found["slices"], found["to"]) == (f"t{suffix}", 4, to)
    assert Path(found["path"]).stat().st_size == found["bytes"] > 0
    again = call(capsys, "export", trace, "--to", to)
    assert again.code == 64
    assert "exists already" in again.err
    assert call(capsys, "export", trace, "--to", to, "--out", tmp_path / "x").code == 0
    assert call(capsys, "export", trace, "--to", "pdf").code == 64


def test_open_makes_a_file_once_and_says_where_to_look(trace: Path, capsys: Capture) -> None:
    first = call(capsys, "open", trace, "--json").json
    made = Path(first["path"]).stat().st_mtime_ns
    assert "ui.perfetto.dev" in first["how"]
    done = call(capsys, "open", trace)
    assert first["path"] in done.out
    assert Path(first["path"]).stat().st_mtime_ns == made


def test_a_summary_fits_80_columns(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(...)>"
    make_trace(
        tmp_path / "t", [*SLICES[:2], ("kernel", long, 100, 12_345_678, "stream 7", {"launch": 1})]
    ).close()
    out = call(capsys, "summary", tmp_path / "t").out
    assert max(len(line) for line in out.splitlines() if line.startswith("  ")) <= 80  # tables
    assert "vectorized_e" in out


def test_diagnose_prints_findings_with_evidence(trace: Path, capsys: Capture) -> None:
    found = call(capsys, "diagnose", trace, "--json").json["findings"]
    assert found
    text = " ".join(call(capsys, "diagnose", trace).out.split())  # wherever the terminal's width breaks it
    for finding in found:
        assert finding["what"] in text
        assert {"code", "severity", "what", "why", "fix", "evidence"} <= set(finding)


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("folder", 65, "is neither a trace nor a trial nor a run"),
        ("nowhere", 64, "no run 'nowhere'"),
        ("note.txt", 65, "is no profile that profrun can read"),
    ],
)
def test_what_is_no_trace_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, what: str, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "note.txt").write_text("hello\n")
    for command in (["summary", what], ["query", what, "SELECT 1"], ["diagnose", what]):
        done = call(capsys, *command)
        assert (done.code, done.out) == (code, "")
        assert said in done.err


def test_a_trials_and_a_runs_only_trace_are_found(
    tmp_path: Path, run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PROFRUN_RUNS", str(tmp_path / "runs"))
    assert call(capsys, "query", "last", "SELECT 1").code == 65  # no traces yet
    trace.rename(run.trial("000-a-none-r1").folder / "trace")
    sql = "SELECT count(*) AS n FROM kernels"
    for what in ("last", run.name[:4], run.path, run.trial("000-a-none-r1").folder):
        assert call(capsys, "query", what, sql, "--json").json["rows"] == [[2]]
    make_trace(run.trial("001-b-none-r1").folder / "trace", SLICES).close()
    done = call(capsys, "query", "last", "SELECT 1")
    assert done.code == 64
    assert "has 2 traces: of trials 000-a-none-r1, 001-b-none-r1; name one, e.g. last/000" in done.err
    for what in ("last/000", "last/0", f"{run.name}/000-a-none-r1"):
        assert call(capsys, "query", what, sql, "--json").json["rows"] == [[2]]
    assert "001-b-none-r1 has no trace: it is planned" in _without_trace(run, capsys)


def _without_trace(run: Run, capsys: Capture) -> str:
    (run.trial("001-b-none-r1").folder / "trace").rename(run.path / "away")
    done = call(capsys, "query", "last/1", "SELECT 1")
    assert done.code == 65
    return done.err


def test_normalize_reads_by_content(tmp_path: Path, run: Run, capsys: Capture) -> None:
    steps = run.trial("000-a-none-r1").folder / "raw/rank0/steps.json"
    moved = steps.rename(tmp_path / "anything.bin")
    done = call(capsys, "normalize", moved, "--out", tmp_path / "made", "--json")
    assert done.code == 0, done.err
    assert (done.json["trace"], done.json["counts"]["steps"]) == (str(tmp_path / "made"), 3)
    again = call(capsys, "normalize", moved, "--out", tmp_path / "made")
    assert again.code == 65
    assert "exists already" in again.err


def test_status_of_an_interrupted_run_says_how_to_go_on(run: Run, capsys: Capture) -> None:
    done = call(capsys, "status", run.path)
    assert done.code == 0
    assert f"{run.name}: interrupted, 1 of 2 trials finished" in done.out
    assert f"continue it with `profrun resume {run.name}`" in done.out
    with driving(run.lock, run.name):
        assert f"{run.name}: running" in call(capsys, "status", run.path).out


@pytest.mark.parametrize("trial", [[], ["0"], ["000-a"], ["000-a-none-r1"]])
def test_logs_of_a_trial_by_any_name(run: Run, capsys: Capture, trial: list[str]) -> None:
    done = call(capsys, "logs", run.path, *trial)
    assert done.out == "out 1\nout 2\nerr\n"
    assert done.err == "000-a-none-r1 (finished)\n"


@pytest.mark.parametrize("trial", ["0-b", "xyz", "7"])
def test_logs_of_no_or_several_trials_is_64(run: Run, capsys: Capture, trial: str) -> None:
    done = call(capsys, "logs", run.path, trial)
    assert done.code == 64
    assert f"match {trial!r}" in done.err


def test_runs_are_listed_oldest_first_and_none_is_said(tmp_path: Path, run: Run, capsys: Capture) -> None:
    listed = call(capsys, "runs", "--runs", tmp_path / "runs").out.splitlines()
    assert listed[0].split() == ["run", "backend", "state", "trials", "created"]
    assert listed[1].split()[:4] == [run.name, "scripted", "interrupted", "1/2"]
    assert "no runs in" in call(capsys, "runs", "--runs", tmp_path / "none").out


def test_a_file_where_the_runs_should_be_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "job.yaml").touch()
    done = call(capsys, "runs", "--runs", tmp_path / "job.yaml")
    assert (done.code, "is no folder" in done.err) == (64, True)


@pytest.mark.parametrize("content", ['{"trials": [{}]}', '{"trials": 3}', '{"trials": [{"id": 1}]}'])
def test_a_damaged_plan_is_one_line(run: Run, capsys: Capture, content: str) -> None:
    run.plan.write_text(content)
    assert "plan.json is damaged" in call(capsys, "status", run.path).out
    done = call(capsys, "resume", run.path)
    assert (done.code, "plan.json is damaged" in done.err) == (65, True)


@pytest.mark.parametrize("content", ['{"a"', "[]", '{"comparisons": 3}', '{"expectations": [1]}'])
def test_a_damaged_comparison_hides_no_trial(run: Run, capsys: Capture, content: str) -> None:
    before = call(capsys, "status", run.path, "--json").json
    run.comparison.write_text(content)
    done = call(capsys, "status", run.path)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if "comparison.json" in line and "resume" in line]
    after = call(capsys, "status", run.path, "--json").json
    assert (after["trials"], len(after["notes"])) == (before["trials"], len(before["notes"]) + 1)


def test_a_spec_is_checked_and_shown(tmp_path: Path, capsys: Capture) -> None:
    job = ROOT / "jobs/transformer.yaml"
    assert call(capsys, "job", "check", job).code == 0
    shown = call(capsys, "job", "check", job, "--show", "--set", "repeats=7").out
    assert "repeats: 7\n" in shown
    (tmp_path / "x.yaml").write_text(shown)
    assert call(capsys, "job", "check", tmp_path / "x.yaml", "--json").json["ok"] is True
    (tmp_path / "x.yaml").write_text("name: t\ncomand: python x.py\n")
    done = call(capsys, "job", "check", tmp_path / "x.yaml")
    assert done.code == 64
    assert "x.yaml:2:1" in done.err
    assert json.loads(call(capsys, "job", "schema").out)["title"] == "profrun job"


def test_images_are_listed_without_an_engine(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    assert {base["kind"] for base in call(capsys, "images", "list", "--json").json["images"]} == {
        "cuda",
        "rocm",
    }
    listed = call(capsys, "images", "list").out
    assert listed.count("(default)\n") == 2
    bases, _, _ = listed.partition("built here")
    assert max(map(len, bases.splitlines())) <= 80
    done = call(capsys, "images", "inspect", "x:1")
    assert done.code == 69
    assert "/nowhere.sock" in done.err


def test_doctor_says_what_works_and_69_for_what_must(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    monkeypatch.setenv("PATH", str(tmp_path))  # no profiler is found here
    for name in ("PROFRUN_NSYS", "PROFRUN_NCU", "PROFRUN_ROCPROFV3"):
        monkeypatch.delenv(name, raising=False)
    done = call(capsys, "doctor", "--no-inside", "--runs", tmp_path, "--json")
    assert (done.code, done.json["cannot"]) == (0, [])
    assert done.json["collectors"]["none"]["local"] is True
    done = call(capsys, "doctor", "none", "rocprof", "--no-inside", "--runs", tmp_path, "--json")
    assert (done.code, done.json["cannot"]) == (69, ["rocprof"])
    text = call(capsys, "doctor", "--no-inside", "--runs", tmp_path)
    assert "nowhere.sock" in text.out
    assert "\nnone: local" in text.out
    assert call(capsys, "doctor", "gprof", "--no-inside", "--runs", tmp_path).code == 64


@pytest.mark.parametrize("query", ["", " ;\n", "/* nothing */"])
@pytest.mark.parametrize("more", [(), ("--parquet", "x.parquet")])
def test_no_query_is_64(trace: Path, capsys: Capture, query: str, more: tuple[str, ...]) -> None:
    done = call(capsys, "query", trace, query, *more)
    assert (done.code, "there is no query" in done.err) == (64, True)


def test_a_file_named_twice_is_not_read_twice(tmp_path: Path, run: Run, capsys: Capture) -> None:
    (file,) = list(run.path.glob("trials/*/raw/rank0/steps.json"))[:1]
    done = call(capsys, "normalize", file, file.parent / "../rank0/steps.json", "--out", tmp_path / "t")
    assert (done.code, "is named twice" in done.err) == (64, True)
    assert not (tmp_path / "t").exists()


def test_ctrl_c_is_one_word_and_not_a_success(
    run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes: here while a command reads the runs."""

    def pressed(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("profrun.store.runs.all_runs", pressed)
    done = call(capsys, "runs")
    assert (done.code, done.out.strip(), done.err.split()) == (1, "", ["profrun:", "interrupted"])
