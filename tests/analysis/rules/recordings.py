"""The real recordings whose findings were judged by hand: where they lie, and their steps without a profiler.

A name starts with where a recording lies: ``own`` in tests/data/h200, ``program`` in its folder programs,
``shared`` in the shared data, ``run`` in a run of profrun among the shared data, ``made`` in tests/data. One
that ends in ``+unprofiled`` is judged with the step time that was measured without a profiler.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path

from profrun.analysis.rules.finding import RuleFinding
from profrun.analysis.rules.step_cost import UnprofiledStep
from profrun.contract.codec import from_json
from profrun.contract.steps import StepsFile
from profrun.store.documents import fold_steps
from tests.conftest import ROOT, SHARED, missing, shared_data, unpack

OWN = ROOT / "tests/data/h200"
TWINS = {
    "transformer/baseline": [f"transformer/baseline-none-r{number}" for number in (1, 2, 3)],
    "transformer/optimised": [f"transformer/optimised-none-r{number}" for number in (1, 2, 3)],
    "ddp": ["ddp/none"],
    "graph": ["graph/none"],
}
"""Beginning of the name of an own recording -> its trials without a profiler."""


def diagnosed(name: str, folder: Path) -> list[RuleFinding]:
    """The findings of a recording.

    Args:
        name: of the recording.
        folder: an empty folder to work in.
    """
    from profrun.analysis.rules.diagnose import diagnose
    from profrun.collectors.normalize import normalize
    from profrun.runner.twins import unprofiled_step
    from profrun.store.documents import provenance_beside
    from profrun.traces.trace import Trace

    where, _, rest = name.partition(":")
    rest, _, twin = rest.partition("+")
    if where == "run":
        path = run_trial(rest, folder) / "trace"
        unprofiled = unprofiled_step(path)
    elif where == "program":
        trial = program_trial(rest, folder)
        path = trial / "trace"
        normalize(recorded(trial), path)
        unprofiled = unprofiled_step(path)
    else:
        path = folder / "trace"
        normalize(files_of(where, rest, folder), path)
        unprofiled = _twin(where, rest) if twin else None
    with Trace(path) as trace:
        return diagnose(trace, provenance=provenance_beside(path), unprofiled=unprofiled)


def files_of(where: str, rest: str, folder: Path) -> list[Path]:
    """The profiler's files of a recording; packed ones are unpacked into the folder."""
    if where == "made":
        return [ROOT / "tests/data" / rest]
    if where == "own":
        found = sorted((OWN / rest).glob("rank*/pt.trace.json.gz"))
        found += [_unpacked(path, folder) for path in sorted((OWN / rest).glob("rank*/report.sqlite.xz"))]
        return found
    path = shared_data(rest)
    if path.is_dir():
        return sorted(path.iterdir())
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as packed:
            unpack(packed, folder / "files")
        return sorted(one for one in (folder / "files").rglob("*") if one.is_file())
    return [path]


def _unpacked(path: Path, folder: Path) -> Path:
    out = folder / path.parent.name / path.stem
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(lzma.decompress(path.read_bytes()))
    for steps in path.parent.glob("steps.json"):
        (out.parent / "steps.json").write_bytes(steps.read_bytes())
    return out


def run_trial(rest: str, folder: Path) -> Path:
    """The folder of a trial, ``RUN/COLLECTOR``, of a run that profrun made on an H200."""
    run, collector = rest.split("/")
    archive = SHARED / "h200_runs" / f"{run}.tar.xz"
    if not archive.exists():
        missing(str(archive))
    with tarfile.open(archive) as packed:
        unpack(packed, folder, [item for item in packed if "/bundle/" not in item.name])
    (found,) = folder.glob(f"*/trials/*-{collector}-r1")
    return found


def program_trial(rest: str, folder: Path) -> Path:
    """The folder of a trial, ``PROGRAM/COLLECTOR``, of a program of bench/programs."""
    program, collector = rest.split("/")
    with tarfile.open(OWN / "programs" / f"{program}.tar.xz") as packed:
        unpack(packed, folder)
    (found,) = folder.glob(f"*/trials/*-{collector}-r1")
    return found


def recorded(trial: Path) -> list[Path]:
    """What the profiler of a trial recorded."""
    files = sorted((trial / "raw").rglob("*"))
    return [one for one in files if one.name.endswith((".pt.trace.json.gz", ".sqlite"))]


def _twin(where: str, rest: str) -> UnprofiledStep:
    """The step time without a profiler that was measured with a recording."""
    if where == "shared":
        name = Path(rest).name.split(".")[0]
        rows = [json.loads(line) for line in shared_data("h200/truth.jsonl").read_text().splitlines()]
        (ns,) = (round(row["pipelined_ms"] * 1e6) for row in rows if row["trace"] == name)
        return UnprofiledStep(ns, ns, ns, 1, 20, "wall")
    trials = next(value for key, value in TWINS.items() if rest.startswith(key))
    if "-blocking" in rest:
        trials = [trial.replace("-none", "-none-blocking") for trial in trials]
    steps = [
        fold_steps(
            [
                from_json(StepsFile, json.loads(path.read_text()))
                for path in (OWN / trial).glob("rank*/steps.json")
            ]
        )
        for trial in trials
    ]
    return UnprofiledStep.of([one.measured for one in steps], steps[0].clock or "wall")
