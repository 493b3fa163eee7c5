"""Real Nsight Systems on a machine without a GPU: NVTX ranges, time limits, exports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.contract.wrapping import ATTEMPTS
from profrun.errors import InputError, UnavailableError
from profrun.traces.trace import Trace
from tests.conftest import ROOT, shared_data
from tests.real.nsys.kit import nsys, submit

pytestmark = pytest.mark.nsys

EMIT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import nvtx_injection
emitter = nvtx_injection.connect()
for step in range(3):
    emitter.push(f"profrun.step#{step}")
    emitter.push("nn.Module: größer (Linear)")
    emitter.pop()
    emitter.pop()
"""
COUNTS = (
    "SELECT kind, name, count(*), sum(dur_ns)::BIGINT FROM slices WHERE kind <> 'overhead' "
    "GROUP BY ALL ORDER BY ALL"
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three steps with a module in each, through the injection, exported in two formats."""
    folder = tmp_path_factory.mktemp("recorded")
    script = folder / "emit.py"
    script.write_text(EMIT, encoding="utf-8")
    options = [
        "--trace=nvtx",
        "--sample=none",
        "--cpuctxsw=none",
        "--force-overwrite=true",
        "--output=report",
    ]
    argv = [nsys(), "profile", *options, sys.executable, str(script), str(ROOT / "in_job")]
    for _ in range(ATTEMPTS):  # nsys' own importer fails at random and then leaves a stream
        subprocess.run(argv, check=True, cwd=folder, capture_output=True)
        if not (folder / "report.qdstrm").exists():
            break
        (folder / "report.qdstrm").unlink()
    for kind, name in (("sqlite", "report.sqlite"), ("parquetdir", "tables")):
        subprocess.run(
            [nsys(), "export", f"--type={kind}", f"--output={name}", "report.nsys-rep"],
            check=True,
            cwd=folder,
            capture_output=True,
        )
    return folder


def test_ranges_reach_nsys_without_an_nvtx_package(recorded: Path, tmp_path: Path) -> None:
    normalize([recorded / "report.sqlite"], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        rows = trace.sql(
            "SELECT s.name, s.kind, p.name FROM slices s LEFT JOIN slices p ON p.slice = s.parent "
            "WHERE s.kind <> 'overhead' ORDER BY s.ts_ns"
        ).rows
    module = "nn.Module: größer (Linear)"
    assert rows == [
        row
        for step in range(3)
        for row in ((f"profrun.step#{step}", "step", None), (module, "range", f"profrun.step#{step}"))
    ]


def test_report_sqlite_and_parquet_are_the_same_trace(recorded: Path, tmp_path: Path) -> None:
    found = {}
    for number, path in enumerate(
        (recorded / "report.sqlite", next(recorded.glob("tables*")), recorded / "report.nsys-rep")
    ):
        normalize([path], tmp_path / str(number))
        with Trace(tmp_path / str(number)) as trace:
            found[path.name] = (trace.sql(COUNTS).rows, trace.meta["epoch_ns"], trace.meta["tool_version"])
    assert len(found) == 3
    first, *others = found.values()
    assert first[0]
    assert all(other == first for other in others)


def test_a_report_of_a_newer_nsys_says_who_wrote_it(tmp_path: Path) -> None:
    nsys()
    with pytest.raises(InputError, match=r"recorded by nsys 2025\.1\.3\.140, the installed one is"):
        normalize([shared_data("nvidia/nsys-misc/aws_gpu-report2.nsys-rep")], tmp_path / "t")


def test_a_cut_report_is_refused_in_one_line(recorded: Path, tmp_path: Path) -> None:
    whole = (recorded / "report.nsys-rep").read_bytes()
    cut = tmp_path / "cut.nsys-rep"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cut short or damaged") as caught:
        normalize([cut], tmp_path / "t")
    assert "\n" not in str(caught.value)


def test_without_nsys_a_report_says_what_to_do(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFRUN_NSYS", str(tmp_path / "no-such-nsys"))
    with pytest.raises(UnavailableError, match="nsys export --type=sqlite"):
        normalize([recorded / "report.nsys-rep"], tmp_path / "t")


def test_submit_gives_a_trace_with_steps_and_modules_nested(tmp_path: Path) -> None:
    spec = (
        f"name: cpu\ncommand: python {ROOT}/jobs/workloads/mlp.py\ncollectors: [nsys]\n"
        "ranges: {modules: 2}\nschedule: {wait: 1, warmup: 1, active: 3}\nresources: {timeout: 2m}\n"
    )
    code, _, run = submit(tmp_path, spec)
    assert code == 0
    (trial,) = (run / "trials").iterdir()
    steps = json.loads((trial / "raw" / "rank0" / "steps.json").read_text(encoding="utf-8"))
    with Trace(trial / "trace") as trace:
        seen = trace.sql("SELECT name FROM slices WHERE kind = 'step' ORDER BY ts_ns").rows
        assert [name for (name,) in seen] == [f"profrun.step#{step['step']}" for step in steps["steps"]]
        held = trace.sql("SELECT count(*) FROM slices WHERE kind IN ('step', 'range')").scalar()
        assert held == steps["ranges_emitted"]
        nested = trace.sql(
            "SELECT DISTINCT regexp_replace(s.name, '[0-9]+$', ''), regexp_replace(p.name, '[0-9]+$', '') "
            "FROM slices s JOIN slices p ON p.slice = s.parent WHERE p.kind IN ('step', 'range')"
        ).rows
        root = "nn.Module: root (GatedMLP)"
        assert {(f"nn.Module: {part} (Linear)", root) for part in ("up", "gate", "down")} <= set(nested)
        assert {outer for inner, outer in nested if inner == root} <= {"mlp_fwd", "profrun.step#"}
        assert {outer for inner, outer in nested if inner == "mlp_fwd"} == {"profrun.step#"}
        anchor = {f"profrun.step#{step['step']}": step["ts_ns"] for step in steps["steps"]}
        epoch = trace.meta["epoch_ns"]
        apart = [
            abs(epoch + ts - anchor[name])
            for name, ts in trace.sql("SELECT name, ts_ns FROM slices WHERE kind = 'step'").rows
        ]
        assert max(apart) < 50_000_000  # ns: one clock; measured about 20 us on a quiet machine


def test_a_time_limit_keeps_the_trace(tmp_path: Path) -> None:
    spec = (
        f"name: endless\ncommand: python {ROOT}/tests/real/nsys/endless.py\ncollectors: [nsys]\n"
        "ranges: {modules: 1}\nresources: {timeout: 12s, grace: 60s}\n"
    )
    code, _, run = submit(tmp_path, spec)
    assert code == 1
    (trial,) = (run / "trials").iterdir()
    ended = json.loads((trial / "exit.json").read_text(encoding="utf-8"))
    assert ended["state"] == "timeout"
    assert "12 s" in ended["reason"]
    with Trace(trial / "trace") as trace:
        kinds = trace.meta["counts"]["slices"]
    assert kinds["step"] > 10
    assert kinds["range"] > 10
