"""Real recordings as trials, whole or changed on purpose: what the changed ones must say is known."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from profrun.analysis.compare import ComparedTrial, read_trial
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.conftest import shared_data

Events = list[dict[str, Any]]
Change = Callable[[Events], Events]


def _trial(file: Path, label: str) -> ComparedTrial:
    with TemporaryDirectory(prefix="compare-") as folder:
        out = normalize([file], Path(folder) / "trace").trace
        with Trace(out) as trace:
            return read_trial(trace, label=label)


@lru_cache
def changed(name: str, change: Change) -> ComparedTrial:
    """The recording with its events changed before it is read."""
    with gzip.open(shared_data(f"{name}.json.gz"), "rt", encoding="utf-8") as file:
        document = json.load(file)
    document["traceEvents"] = change(document["traceEvents"])
    label = f"{name.rsplit('/', 1)[-1]}-{change.__name__}"
    with TemporaryDirectory(prefix="compare-") as folder:
        path = Path(folder) / f"{label}.pt.trace.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return _trial(path, label)


def five_percent_longer(events: Events) -> Events:
    """Every time and duration 1.05 times as long."""
    start = min(float(one["ts"]) for one in events if one.get("ph") == "X")
    found = []
    for one in events:
        if one.get("ph") == "X":
            one = one | {"ts": start + 1.05 * (one["ts"] - start), "dur": 1.05 * one["dur"]}
        elif "ts" in one:
            one = one | {"ts": start + 1.05 * (float(one["ts"]) - start)}
        found.append(one)
    return found


def without_gelu_kernel(events: Events) -> Events:
    """The gelu kernels are gone; their ops and launches stay."""
    return [one for one in events if not (one.get("cat") == "kernel" and "Gelu" in one["name"])]


def two_steps_as_one(events: Events) -> Events:
    """Steps 2 and 3, 4 and 5, ... become one step each: double work a step."""
    steps = [one for one in events if one["name"].startswith("ProfilerStep#") and one.get("ph") == "X"]
    host = sorted(
        (one for one in steps if one.get("cat") == "user_annotation"), key=lambda one: float(one["ts"])
    )
    merged = [
        first | {"dur": float(second["ts"]) + float(second["dur"]) - float(first["ts"])}
        for first, second in zip(host[::2], host[1::2], strict=False)
    ]
    return [one for one in events if one not in steps] + merged
