"""A trace from Python says what the command line says of it, and fails in one clear line."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import profrun
from profrun.contract.codec import to_json
from profrun.contract.provenance import GpuStates, Provenance
from profrun.errors import InputError, UnavailableError, UsageError
from tests.analysis.sampled import World, wandering
from tests.api.conftest import plain, recording
from tests.cli.running import call
from tests.reports.mapped_run import mapped_run
from tests.tracekit import make_trace

Capture = pytest.CaptureFixture[str]
KINDS = "SELECT kind, count(*) AS n, sum(dur_ns) AS ns, min(launch) FROM slices GROUP BY kind ORDER BY kind"


def test_the_summary_is_what_the_command_prints(trace: profrun.Trace, capsys: Capture) -> None:
    assert plain(trace.summary().to_json()) == call(capsys, "summary", trace.path, "--json").json
    assert len(trace.summary(top=1).kernels) == 1
    printed = call(capsys, "summary", trace.path, "--top", 2).out.splitlines()
    assert str(trace.summary(top=2)).splitlines()[:4] == printed[:4]


def test_the_diagnosis_is_what_the_command_prints(trace: profrun.Trace, capsys: Capture) -> None:
    found = trace.diagnose()
    assert plain(found.to_json()) == call(capsys, "diagnose", trace.path, "--json").json
    assert len(found) == len(list(found)) == len(found.findings) > 0


def test_a_query_answers_what_the_command_prints(trace: profrun.Trace, capsys: Capture) -> None:
    import polars

    found, printed = trace.query(KINDS), call(capsys, "query", trace.path, KINDS, "--json").json
    assert list(found.columns) == printed["columns"]
    assert [list(row) for row in found.rows()] == printed["rows"]
    assert found.to_polars().rows() == found.rows()
    assert found.to_polars()["ns"].dtype == polars.Int64
    times = trace.query("SELECT ts_ns FROM slices ORDER BY slice")
    assert times.to_pandas()["ts_ns"].tolist() == [row[0] for row in times.rows()]
    views = trace.query("SELECT sum(calls) FROM kernel_summary")
    assert views.rows() == [(len(trace.query("FROM kernels")),)]
    assert trace.query("DESCRIBE kernels").rows()[0][0] == "slice"
    for _ in range(2):
        pivot = trace.query("PIVOT (SELECT kind FROM slices) ON kind USING count(*)")
        assert set(pivot.columns) == set(trace.summary().counts)


def test_a_trial_brings_its_provenance_into_the_diagnosis(tmp_path: Path, capsys: Capture) -> None:
    make_trace(tmp_path / "t/trace", [("kernel", "k", 0, 100, "stream 7")]).close()
    slowed = Provenance("t", gpus=GpuStates(after=({"throttled_by": ["hw_slowdown"]},)))
    (tmp_path / "t/provenance.json").write_text(json.dumps(to_json(slowed)))
    with profrun.open(tmp_path / "t/trace") as trace:
        found = trace.diagnose()
        assert any("hw_slowdown" in one.what for one in found)
        assert "locked clocks" in str(found)
        assert plain(found.to_json()) == call(capsys, "diagnose", trace.path, "--json").json
        assert "hw_slowdown" in trace.report(tmp_path / "t.html").read_text()


def test_the_critical_path_adds_up_to_its_window(trace: profrun.Trace) -> None:
    found = trace.critical_path()
    assert found is not None
    assert sum(found.by_kind.values()) == found.total_ns == found.end_ns - found.start_ns
    segments = found.table("segments").to_polars()
    assert (segments["end_ns"] - segments["start_ns"]).sum() == found.total_ns
    one = trace.critical_path(process=0, step=3)
    assert one is not None
    assert 0 < one.total_ns < found.total_ns
    assert str(one).startswith("critical path of process 0: ")


def test_a_trace_without_anything_has_no_critical_path(tmp_path: Path) -> None:
    make_trace(tmp_path / "t", []).close()
    with profrun.open(tmp_path / "t") as trace:
        assert trace.critical_path() is None
        assert trace.summary().table("kernels").rows() == []
        assert "calls" in trace.summary().table("kernels").columns


@pytest.mark.thorough
def test_a_trace_tells_why_steps_and_launches_vary(tmp_path: Path, trace: profrun.Trace) -> None:
    clock = wandering(201, 900, 1000)
    make_trace(tmp_path / "t", [], side=World(clock=clock).side()).close()
    with profrun.open(tmp_path / "t") as sampled:
        run, steady = sampled.variation(), sampled.variation(which="steady")
        assert sampled.variation("gemm") is None
    assert run is not None
    assert run.shares is not None
    assert run.shares.causes[0].name == "clock"
    assert steady is not None
    assert steady.count <= run.count
    assert trace.variation() is None  # not sampled
    launches = trace.variation("*elementwise*")
    assert launches is not None
    assert "at least 50 equal launches are needed" in launches.refused


def test_export_and_report_write_what_the_commands_write(
    trace: profrun.Trace, tmp_path: Path, capsys: Capture
) -> None:
    result = trace.export(tmp_path / "a.pftrace")
    call(capsys, "export", trace.path, "-o", tmp_path / "b.pftrace")
    assert result.path.read_bytes() == (tmp_path / "b.pftrace").read_bytes()
    assert trace.export(tmp_path / "a.json.gz", "chrome").slices == result.slices
    with pytest.raises(UsageError, match="exists already"):
        trace.export(tmp_path / "a.pftrace")
    for to in ("speedscope", "pprof"):
        stacks = trace.export(tmp_path / f"a.{to}", to)
        call(capsys, "export", trace.path, "--to", to, "-o", tmp_path / f"b.{to}")
        assert stacks.path.read_bytes() == (tmp_path / f"b.{to}").read_bytes()
        assert stacks.gpu_ns > 0
    call(capsys, "report", trace.path, "--out", tmp_path / "b.html")
    for _ in range(2):  # a report that is there is replaced
        assert trace.report(str(tmp_path / "a.html")) == tmp_path / "a.html"
    assert len((tmp_path / "a.html").read_text()) == len((tmp_path / "b.html").read_text())
    with pytest.raises(UnavailableError, match="name another file") as error:
        trace.report(tmp_path / "a.pftrace/x.html")
    assert "--runs" not in str(error.value)


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("SELEC 1", InputError, "query failed: Parser Error"),
        ("SELECT x FROM slices", InputError, 'query failed: Binder Error: Referenced column "x" not found'),
        ("SELECT * FROM nothing", InputError, "query failed: Catalog Error"),
        ("SELECT CAST(name AS INT) FROM slices", InputError, "query failed: Conversion Error"),
        ("DROP VIEW slices", UsageError, "a query is one SELECT"),
        ("-- nothing", UsageError, "there is no query: a query is one SELECT"),
    ],
)
def test_a_wrong_query_is_one_line_in_its_own_words(
    trace: profrun.Trace, sql: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as error:
        trace.query(sql)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)
    assert "answers" not in str(error.value)
    assert trace.query("SELECT count(*) > 0 FROM slices").rows() == [(True,)]


def test_what_is_no_trace_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a trace: it has no meta\.json"):
        profrun.open(tmp_path)
    with pytest.raises(InputError, match="is not a trace"):
        profrun.open(str(recording("baseline-torch-r1")))


def test_normalize_opens_what_it_wrote(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(recording("baseline-torch-r1"), tmp_path / "pt.trace.json.gz")
    monkeypatch.chdir(tmp_path)
    with profrun.normalize(["pt.trace.json.gz"], "t", reader="kineto") as trace:
        assert trace.path == tmp_path / "t"
        monkeypatch.chdir("/")
        with profrun.open(recorded) as other:
            assert trace.query(KINDS).rows() == other.query(KINDS).rows()
            assert trace.summary().to_json() == other.summary().to_json()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pt.trace.json.gz", "t"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="t exists already"):
        profrun.normalize("pt.trace.json.gz", "t")
    with pytest.raises(UsageError, match="nothing to normalize"):
        profrun.normalize([], "u")


def test_answers_stay_when_a_trace_is_closed(recorded: Path) -> None:
    with profrun.open(recorded) as trace:
        summary, table = trace.summary(), trace.query(KINDS)
    trace.close()
    del trace
    gc.collect()
    assert len(table.to_polars()) == len(table.rows()) > 3
    assert summary.table("kernels").rows()


def test_a_closed_trace_answers_no_question(recorded: Path, tmp_path: Path) -> None:
    with profrun.open(recorded) as trace:
        pass
    questions: list[Callable[[], object]] = [
        trace.summary,
        trace.diagnose,
        trace.critical_path,
        trace.variation,
        trace._repr_html_,
        lambda: trace.query("SELECT 1"),
        lambda: trace.export(tmp_path / "x.pftrace"),
        lambda: trace.report(tmp_path / "x.html"),
    ]
    for question in questions:
        with pytest.raises(UsageError, match=r"the trace .* is closed; open it again"):
            question()
    assert list(tmp_path.iterdir()) == []


def test_threads_open_a_trace_each(recorded: Path) -> None:
    def total(_: int) -> int:
        with profrun.open(recorded) as trace:
            return sum(row.total_ns for row in trace.summary().kernels)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(total, range(8)))) == 1


def test_a_notebook_shows_the_summary(trace: profrun.Trace) -> None:
    page = trace._repr_html_()
    assert page.startswith("<pre>torch by kineto")
    assert "aten::addmm" in page
    assert repr(trace) == f"Trace({str(trace.path)!r})"


def test_gpu_time_by_line_is_a_table(tmp_path: Path) -> None:
    run, folder = mapped_run(tmp_path)
    with profrun.open(run.trial("001-default-torch-r1").trace) as trace:
        found = trace.places()
        assert str(found).strip().startswith("GPU time by line per step\n")
        rows = found.table("rows").dicts()
        assert {row["file"] for row in rows} == {str(folder / "model.py"), str(folder / "train.py")}
        assert sum(row.gpu_ns for row in found.rows) + sum(found.unresolved.values()) == found.gpu_ns
        modules = trace.places("module").table("rows").dicts()
        assert [(row["file"], row["modules"]) for row in modules if row["name"] == "layers.*.mlp"] == [
            (None, 4)
        ]
        query = "SELECT count(DISTINCT line) > 3 AS several FROM kernel_address"
        assert trace.query(query).dicts() == [{"several": True}]
