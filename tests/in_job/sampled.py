"""Stand-ins of the vendors' libraries, and the samples of a trial."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

from profrun.contract.codec import from_json
from profrun.contract.sampling import SampledSource, SamplesHeader
from profrun.in_job.gpu_source import GpuReader, Value
from tests.conftest import need_tool

STANDINS = Path(__file__).parent / "standins"


def library(folder: Path, name: str) -> Path:
    """Compile a stand-in library."""
    path = folder / f"{name}.so"
    build = [need_tool("cc"), "-shared", "-fPIC", "-o", str(path), str(STANDINS / f"{name}.c")]
    subprocess.run(build, check=True)
    return path


def samples(folder: Path) -> tuple[SamplesHeader, list[list[Any]]]:
    """The file that a sampler has left in a trial's folder."""
    (path,) = folder.glob("samples.*.jsonl")
    header, *rows = map(json.loads, path.read_text().splitlines())
    return from_json(SamplesHeader, header), rows


def values(source: SampledSource, row: list[Any]) -> dict[str, Any]:
    """Quantity -> value of one row."""
    return dict(zip(source.quantities, row[2:], strict=True))


def first_reading(gpu: GpuReader) -> tuple[dict[str, Value], float]:
    """The values of a GPU's first reading without its energy, and the power by its energy, W.

    The power is the median of five spans of 50 ms: in each, the process may be stopped between the reading of
    the energy and that of the clock.
    """
    start_ns, first = gpu.read()
    found: dict[str, Value] = dict(zip(gpu.source.quantities, first, strict=True))
    start, watts = float(found.pop("energy") or 0), []
    for _ in range(5):
        end_ns, row = gpu.read()
        while end_ns - start_ns < 50_000_000:
            end_ns, row = gpu.read()
        watts.append((float(row[0] or 0) - start) / ((end_ns - start_ns) / 1e9))
        start_ns, start = end_ns, float(row[0] or 0)
    return found, statistics.median(watts)
