"""Speed and memory of questions about made traces: ``python bench/analysis.py [slices ...]``.

The trace is made with SQL, in the shape of a training run: steps of ops three deep, a launch and a kernel for
every third op, autograd on a thread of its own, two streams, copies. Each measurement runs in its own
process. CPU seconds are user + system of that process after imports; memory is its peak resident size.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import profrun

STEP_SLICES = 10_000
OPS = 2_140
"""Groups of one step: op > op > op, runtime call, kernel; every 40th is a copy."""

DEVICES = """
INSERT INTO processes VALUES (0, 1, 0, 'h', 'p', false);
INSERT INTO devices VALUES
  (0, 0, 'nvidia', 0, 'NVIDIA H200', 'sm_90', 132, 32, 2048, 65536, 233472, 150109880320, NULL, 0);
INSERT INTO tracks VALUES (0, 'thread', 0, NULL, 1, 'main'), (1, 'thread', 0, NULL, 2, 'autograd'),
  (2, 'stream', 0, 0, 7, 's7'), (3, 'stream', 0, 0, 9, 's9')
"""
GROUPS = f"""
CREATE TABLE g AS SELECT s.range AS step, o.range AS op,
  s.range * 5 * {OPS} + s.range + 5 * o.range + 1 AS base,
  s.range * {OPS} * 10000 + o.range * 9000 AS ts, (o.range % 3 = 2)::INTEGER AS thread
FROM range($steps) s, range({OPS}) o
"""
STEPS = f"""
INSERT INTO slices SELECT range * 5 * {OPS} + range, 'step', 'ProfilerStep#' || range,
  range * {OPS} * 10000, {OPS} * 9500, 0, NULL, 0, NULL, NULL FROM range($steps)
"""
LEVEL = """
INSERT INTO slices SELECT base + $level, 'op',
  ['aten::linear', 'aten::mm', 'aten::add', 'aten::gelu', 'aten::layer_norm', 'aten::bmm'][
    1 + (op + $level) % 6],
  ts + 100 * $level, 8000 - 300 * $level, thread,
"""
"""Ops of one depth; the parent follows."""
REST = """
INSERT INTO slices SELECT base + 3, 'api', CASE WHEN op % 40 = 0 THEN 'cudaMemcpyAsync'
  WHEN op % 500 = 1 THEN 'cudaStreamSynchronize' ELSE 'cudaLaunchKernel' END,
  ts + 1000, 3000, thread, base + 2, 4, base, NULL FROM g;
INSERT INTO slices SELECT base + 4, CASE WHEN op % 40 = 0 THEN 'memcpy' ELSE 'kernel' END,
  CASE WHEN op % 40 = 0 THEN 'Memcpy HtoD (Pinned -> Device)' ELSE [
    'nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT',
    'void at::native::vectorized_elementwise_kernel<4>(int)',
    'void at::native::reduce_kernel<512>(int)', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)'
  ][1 + op % 4] END,
  ts + 6000, 3000 + (op % 7) * 500, 2 + (op % 5 = 4)::INTEGER, NULL, NULL, base, base + 3
  FROM g WHERE op % 500 <> 1;
INSERT INTO kernels
  (slice, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, est_occupancy)
  SELECT base + 4, 264, 1, 1, 256, 1, 1, 32, 0.5 FROM g WHERE op % 40 <> 0 AND op % 500 <> 1;
INSERT INTO copies (slice, direction, bytes, src_kind, dst_kind, managed)
  SELECT base + 4, 'HtoD', 4096, 'pinned', 'device', false FROM g WHERE op % 40 = 0 AND op % 500 <> 1;
INSERT INTO ops (slice, shapes, dtypes)
  SELECT base + 2, '[[64, 64], [64, 64]]', '["float", "float"]' FROM g
"""
LINES = """
UPDATE slices SET kind = 'range', name = 'profrun.line /me/model.py:' || (1 + g.op % 200) || ' forward'
FROM g WHERE slices.slice = g.base
"""


def pack(trace: profrun.Trace) -> str:
    """The whole trace as the report packs it."""
    from profrun.analysis.trace.timeline_slices import timeline_slices
    from profrun.reports.timeline_packing import packed

    timeline = timeline_slices(trace)
    assert timeline is not None
    return packed(timeline)


QUESTIONS: dict[str, Callable[[profrun.Trace], object]] = {
    "summary": lambda trace: trace.summary(),
    "diagnose": lambda trace: trace.diagnose(),
    "critical path of a step": lambda trace: trace.critical_path(step=1),
    "timeline of the report": pack,
    "all slices to polars": lambda trace: trace.query("SELECT * FROM slices").to_polars(),
}

MODULES = (
    "profrun.analysis.rules.diagnose",
    "profrun.analysis.trace.critical_path",
    "profrun.analysis.trace.summary",
    "profrun.analysis.trace.timeline_slices",
    "profrun.api.results",
    "profrun.reports.timeline_packing",
)
"""Imported before the clock starts."""


def make(out: Path, slices: int, *, lines: bool = False) -> Path:
    """A trace of about so many slices; with ``lines`` a mapping: the outer ops are lines of a program."""
    from profrun.traces.writer import TraceWriter

    with TraceWriter(out, memory_limit="1GB") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "vendor": "nvidia"})
        _fill(writer.con, max(1, slices // STEP_SLICES))
        if lines:
            writer.con.execute(LINES)
        writer.finish()
    return out


def _fill(con: duckdb.DuckDBPyConnection, steps: int) -> None:
    con.execute(DEVICES)
    con.execute(GROUPS, {"steps": steps})
    con.execute(STEPS, {"steps": steps})
    for level in range(3):
        parent = f"base + {level - 1}" if level else f"CASE WHEN thread = 0 THEN step * 5 * {OPS} + step END"
        con.execute(f"{LEVEL} {parent}, $level + 1, NULL, NULL FROM g", {"level": level})
    con.execute(REST)


def measure(folder: str, question: str) -> dict[str, float]:
    """Ask one question in this process; CPU and wall seconds after imports, and peak memory in MB."""
    for module in (*MODULES, "polars") if "polars" in question else MODULES:
        importlib.import_module(module)
    cpu, wall = time.process_time(), time.perf_counter()
    QUESTIONS[question](profrun.open(folder))
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # ru_maxrss would include the parent's
    memory = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall, "peak_mb": memory}


def main(sizes: list[int]) -> None:
    """Make each trace once and measure each question in a process of its own."""
    print("| slices | question | CPU s | wall s | peak MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            trace = make(Path(folder) / str(size), size)
            for question in QUESTIONS:
                words = [sys.executable, __file__, "--measure", str(trace), question]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                row = json.loads(done.stdout)
                cpu_s, wall_s, peak_mb = row["cpu_s"], row["wall_s"], row["peak_mb"]
                print(f"| {size} | {question} | {cpu_s:.2f} | {wall_s:.2f} | {peak_mb:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3])))
    else:
        main([int(size) for size in sys.argv[1:]] or [100_000, 1_000_000])
