"""Speed and memory of summary and diagnose on made traces: ``python bench/analysis.py [slices ...]``.

The trace is made with SQL, in the shape of a training run: steps of ops three deep, a launch and a kernel
    for every
third op, autograd on a thread of its own, two streams, copies. Each measurement runs in a process of its own;
CPU seconds are user + system of that process after imports, memory is its peak resident size.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEP_SLICES = 10_000
OPS = 2_140  # groups of one step: op > op > op, runtime call, kernel; every 40th a copy


def make(out: Path, slices: int) -> Path:
    """A trace of about so many slices."""
    from profrun.traces.writer import TraceWriter

    steps = max(1, slices // STEP_SLICES)
    with TraceWriter(out, memory_limit="1GB") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "vendor": "nvidia"})
        con = writer.con
        con.execute("INSERT INTO processes VALUES (0, 1, 0, 'h', 'p')")
        con.execute(
            "INSERT INTO devices VALUES (0, 0, 'nvidia', 0, 'NVIDIA H200', 'sm_90', 132, 32, 2048, 65536, "
            "233472, "
            "150109880320, NULL)"
        )
        con.execute(
            "INSERT INTO tracks VALUES (0, 'thread', 0, NULL, 1, 'main'), (1, 'thread', 0, NULL, 2, "
            "'autograd'), "
            "(2, 'stream', 0, 0, 7, 's7'), (3, 'stream', 0, 0, 9, 's9')"
        )
        con.execute(
            f"CREATE TABLE g AS SELECT s.range AS step, o.range AS op, s.range * 5 * {OPS} + s.range + 5 * "
            "o.range + 1 "
            f"AS base, s.range * {OPS} * 10000 + o.range * 9000 AS ts, (o.range % 3 = 2)::INTEGER AS thread "
            f"FROM range({steps}) s, range({OPS}) o"
        )
        _fill(con, steps)
        writer.finish()
    return out


def _fill(con: object, steps: int) -> None:
    run = con.execute  # type: ignore[attr-defined]
    run(
        f"INSERT INTO slices SELECT range * 5 * {OPS} + range, 'step', 'ProfilerStep#' || range, range * "
        f"{OPS} * 10000, "
        f"{OPS} * 9500, 0, NULL, 0, NULL, NULL FROM range({steps})"
    )
    names = "['aten::linear', 'aten::mm', 'aten::add', 'aten::gelu', 'aten::layer_norm', 'aten::bmm']"
    parent = f"CASE WHEN thread = 0 THEN step * 5 * {OPS} + step END"
    for level in range(3):
        up = parent if level == 0 else f"base + {level - 1}"
        run(
            f"INSERT INTO slices SELECT base + {level}, 'op', {names}[1 + (op + {level}) % 6], ts + "
            f"{100 * level}, "
            f"{8000 - 300 * level}, thread, {up}, {level} + 1, NULL, NULL FROM g"
        )
    run(
        "INSERT INTO slices SELECT base + 3, 'api', CASE WHEN op % 40 = 0 THEN 'cudaMemcpyAsync' "
        "WHEN op % 500 = 1 THEN 'cudaStreamSynchronize' ELSE 'cudaLaunchKernel' END, ts + 1000, 3000, "
        "thread, base + 2, "
        "4, base, NULL FROM g"
    )
    kernels = (
        "['nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT', 'void "
        "at::native::vectorized_elementwise_kernel<4>(int)', "
        "'void at::native::reduce_kernel<512>(int)', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)']"
    )
    run(
        "INSERT INTO slices SELECT base + 4, CASE WHEN op % 40 = 0 THEN 'memcpy' ELSE 'kernel' END, "
        f"CASE WHEN op % 40 = 0 THEN 'Memcpy HtoD (Pinned -> Device)' ELSE {kernels}[1 + op % 4] END, "
        "ts + 6000, 3000 + (op % 7) * 500, 2 + (op % 5 = 4)::INTEGER, NULL, NULL, base, base + 3 FROM g "
        "WHERE op % 500 <> 1"
    )
    run(
        "INSERT INTO kernels (slice, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
        "est_occupancy) "
        "SELECT base + 4, 264, 1, 1, 256, 1, 1, 32, 0.5 FROM g "
        "WHERE op % 40 <> 0 AND op % 500 <> 1"
    )
    run(
        "INSERT INTO copies (slice, direction, bytes, src_kind, dst_kind, managed) SELECT base + 4, 'HtoD', "
        "4096, 'pinned', 'device', false FROM g "
        "WHERE op % 40 = 0 AND op % 500 <> 1"
    )
    run(
        "INSERT INTO ops (slice, shapes, dtypes) SELECT base + 2, '[[64, 64], [64, 64]]', '[\"float\", "
        '"float"]\' FROM g'
    )


def measure(trace: str, what: str) -> dict[str, float]:
    """Run one question in this process; CPU and wall seconds after imports, and peak memory in MB."""
    import numpy as np

    from profrun.analysis.rules.diagnose import diagnose
    from profrun.analysis.trace.critical_path import critical_path
    from profrun.analysis.trace.summary import summarize
    from profrun.traces.trace import Trace

    assert np is not None
    cpu, wall = time.process_time(), time.perf_counter()
    opened = Trace(trace)
    if what == "summary":
        summarize(opened)
    elif what == "diagnose":
        diagnose(opened)
    else:
        critical_path(opened, step=1)
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # ru_maxrss would include the parent's
    memory = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall, "peak_mb": memory}


def main(sizes: list[int]) -> None:
    """Make each trace once and measure each question in a process of its own."""
    print("| slices | question | CPU s | wall s | peak MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            trace = make(Path(folder) / str(size), size)
            for what in ("summary", "diagnose", "critical path of a step"):
                done = subprocess.run(
                    [sys.executable, __file__, "--measure", str(trace), what],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                row = json.loads(done.stdout)
                print(
                    f"| {size} | {what} | {row['cpu_s']:.2f} | {row['wall_s']:.2f} | {row['peak_mb']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3])))
    else:
        main([int(size) for size in sys.argv[1:]] or [100_000, 1_000_000])
