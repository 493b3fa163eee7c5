"""Reports of ncu (.ncu-rep) through NVIDIA's own reader, the ncu-report package: no ncu needs to be
installed."""

from __future__ import annotations

import importlib
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from profrun.collectors.ncu.blocks import processes
from profrun.collectors.ncu.launches import Launch, sound
from profrun.collectors.ncu.units import normal
from profrun.errors import InputError, UnavailableError
from profrun.traces.writer import TraceWriter

MAGIC = b"NVR\0"


def module() -> ModuleType | None:
    """The ncu_report module, None when it is not installed."""
    try:
        return importlib.import_module("ncu_report")
    except ImportError:
        return None


_PROBE = """
import contextlib
import sys
import ncu_report
with contextlib.suppress(ImportError, OSError, ValueError):
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
report = ncu_report.load_report(sys.argv[1])
for part in range(report.num_ranges()):
    for number in range(report.range_by_idx(part).num_actions()):
        action = report.range_by_idx(part).action_by_idx(number)
        for name in action.metric_names():
            action.metric_by_name(name).value()
"""


def _survives(path: Path) -> None:
    """Let another process read the report first: some damage makes the package abort, which nothing catches.

    It takes 50 ms. What the package raises there, it raises here, too.

    Raises:
        InputError: that process was ended by a signal.
    """
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, str(path.absolute())], env=environ, capture_output=True, check=False
    )
    if done.returncode < 0 or done.returncode > 128:  # a signal, on Windows a status of its own
        raise InputError(
            f"{path} cannot be read as a report of Nsight Compute",
            why=f"NVIDIA's reader ends with {_ended(done.returncode)} on it, so it is damaged",
            fix="copy it again",
        )


def _ended(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def read(path: Path, writer: TraceWriter, rank: int) -> list[Launch]:
    """Launches of one report in the order they were profiled.

    Raises:
        InputError: the report is damaged or newer than the ncu-report package.
        UnavailableError: ncu-report is not installed.
    """
    found = module()
    if found is None:
        raise UnavailableError(
            f"{path} is a report of Nsight Compute",
            why="reading it needs NVIDIA's ncu-report package",
            fix="pip install 'profrun[ncu]', or give the CSV of `ncu --import REPORT --csv --page raw`",
        )
    known = processes(path)
    _survives(path)
    try:
        report = found.load_report(str(path))
        count = report.num_ranges()
        launches = [
            _launch(found, report.range_by_idx(part).action_by_idx(number), rank)
            for part in range(count)
            for number in range(report.range_by_idx(part).num_actions())
        ]
    except Exception as error:  # the package raises its own, undocumented exception types
        raise InputError(
            f"{path} cannot be read as a report of Nsight Compute",
            why=" ".join(str(error).split()) or type(error).__name__,
            fix="copy it again; a report newer than the ncu-report package needs a newer package",
        ) from error
    if len(known) == len(launches):
        for item, process in zip(launches, known, strict=True):
            if process is not None:
                item.pid, item.host, item.process = process
    writer.issue("report-empty", int(not launches), "the report holds no profiled kernel")
    return launches


def _launch(found: ModuleType, action: Any, rank: int) -> Launch:
    item = Launch(action.name(found.IAction.NameBase_DEMANGLED) or action.name() or "unknown kernel", rank)
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if metric is None:
            continue
        value = metric.value()
        if isinstance(value, (int, float)) and math.isfinite(value):
            item.metrics[name] = normal(float(value), metric.unit() or "")
        else:
            item.texts[name] = "" if value is None else str(value)
    item.device = _int(item, "launch__device_id") or 0
    item.context = _int(item, "launch__context_id")
    item.stream = _int(item, "launch__stream_id")
    item.grid = _triple(item, "launch__grid_dim_")
    item.block = _triple(item, "launch__block_dim_")
    return item


def _int(item: Launch, name: str) -> int | None:
    value = item.value(name)
    return None if value is None else round(value)


def _triple(item: Launch, prefix: str) -> tuple[int, int, int] | None:
    x, y, z = (_int(item, prefix + axis) for axis in "xyz")
    return None if x is None or y is None or z is None else sound((x, y, z))
