"""Every command on every real file: ``python bench/every_file.py [--only TEXT] [--quick]``.

It walks the folder of real files beside the checkout (``PROFRUN_SHARED``): single files, recordings of
several files, damaged files, and whole runs of earlier versions. Each is normalized; each trace goes through
summary, diagnose, query (every table and view), export in both formats, report, the critical path of every
process, and comparisons with itself. Printed are the answers that are wrong: a bug of profrun (exit code 70),
an exception of the Python interface, or an exit code that the command does not document. The exit code is 1
if there is one.

``--quick`` leaves out files larger than 1 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import profrun
from profrun import cli
from profrun.analysis.compare.model import By
from profrun.errors import InputError
from profrun.traces.schema import TABLES
from profrun.traces.views import VIEWS

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PROFRUN_SHARED", ROOT.parent / "shared"))
RUNS = SHARED / "h200_runs"
NOTES = (".md", ".py", ".jsonl", ".txt")
QUICK_BYTES = 1 << 20
TOGETHER = (
    ("data/h200/ddp", "ddp_rank*.json.gz"),
    ("data/amd/kineto-rocm-multirank-derived", "rank*.json.gz"),
    ("data/amd/rocpd-batched-gemm-mi300x", "**/*_results.db"),
    ("data/amd/rocprofv3-csv-strix-halo-llamacpp", "*.csv"),
    ("data/amd/rocprofv3-docs-samples-rocm6_3", "*_trace.csv"),
    ("data/amd/rocprofv3-docs-samples-rocm7", "*_trace.csv"),
)
"""Folder and pattern of files that are one recording: ranks, databases, CSV families."""
EVERY_TABLE = " UNION ALL ".join(
    f"SELECT '{name}', count(*) FROM \"{name}\"" for name in (*TABLES, *(view.name for view in VIEWS))
)
"""The number of rows of every table and view: one question, because each costs an opening of the trace."""
BY_ALL_ELSE: tuple[By, ...] = ("op", "range", "module", "category", "step")
"""What else than kernels a comparison can have as its rows."""
READ = {0}
REFUSED = {65, 69}
JUDGED = {0, 1, 2, 65}
"""A comparison may also be inconclusive, or refuse traces that have no times."""


@dataclass
class Walk:
    """What was asked so far.

    Attributes:
        folder: scratch.
        answers: command lines answered, by exit code.
        wrong: (recording, command, what happened).
    """

    folder: Path
    answers: dict[int, int] = field(default_factory=dict)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)

    def ask(self, label: str, allowed: set[int], *words: str) -> int:
        """One command line; its exit code must be one of those allowed."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.run(words)
        self.answers[code] = self.answers.get(code, 0) + 1
        if code not in allowed:
            self.note(label, words[0], f"exit {code}: {err.getvalue().strip()[:300]}")
        return code

    def note(self, label: str, what: str, happened: str) -> None:
        """Keep and print what was wrong."""
        self.wrong.append((label, what, happened))
        print(f"{label}: {what}: {happened}", flush=True)

    def call(self, label: str, what: str, function: Callable[[], object]) -> None:
        """One question to the Python interface."""
        try:
            function()
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            self.note(label, what, f"{type(error).__name__}: {error} ({where})")

    def trace(self, label: str, trace: str, first: int = 0, every: int = 1) -> None:
        """Ask a trace every question.

        Args:
            label: name of the recording.
            trace: its folder.
            first, every: ask only question ``first`` and each ``every``-th after it.
        """
        twin = self.folder / "twin"
        shutil.copytree(trace, twin)
        for question in self._questions(label, trace, str(twin))[first % every :: every]:
            question()
        shutil.rmtree(twin)
        for exported in self.folder.glob("exported.*"):
            exported.unlink()

    def _questions(self, label: str, trace: str, twin: str) -> list[Callable[[], object]]:
        """Every question to one trace and its copy."""
        page, exported = (str(self.folder / name) for name in ("report.html", "exported"))
        commands = [
            ["summary", trace], ["summary", trace, "--json"],
            ["diagnose", trace], ["diagnose", trace, "--json"],
            ["query", trace, EVERY_TABLE], ["report", trace, "--out", page],
            ["export", trace, "--to", "perfetto", "-o", f"{exported}.perfetto"],
            ["export", trace, "--to", "chrome", "-o", f"{exported}.json"],
        ]  # fmt: skip
        return [
            *(partial(self.ask, label, READ, *words) for words in commands),
            partial(self.ask, label, JUDGED, "compare", trace, "vs", twin),
            partial(self.call, label, "comparisons by all else", partial(_compare_by_all_else, trace, twin)),
            partial(self.call, label, "critical path", partial(_critical_paths, trace)),
        ]


def _compare_by_all_else(trace: str, twin: str) -> None:
    """What ``--by`` chooses, each as ``profrun compare`` prints it. The two traces are opened once."""
    with profrun.open(trace) as one, profrun.open(twin) as other:
        for by in BY_ALL_ELSE:
            with contextlib.suppress(InputError):  # traces without times, as the command above has judged
                str(profrun.compare(one, other, by=by))


def _critical_paths(trace: str) -> None:
    with profrun.open(trace) as opened:
        for (process,) in opened.sql("SELECT process FROM processes").rows:
            found = opened.critical_path(process=process)
            if found is not None:
                str(found)


def recordings() -> Iterator[tuple[str, list[Path]]]:
    """(name, files) of everything that one call of normalize could be given."""
    for folder in ("data", "hostile"):
        for path in sorted((SHARED / folder).rglob("*")):
            if path.is_file() and path.suffix not in NOTES:
                yield str(path.relative_to(SHARED)), [path]
    yield from together()


def together() -> Iterator[tuple[str, list[Path]]]:
    """(folder and pattern, files) of each recording of several files that is there."""
    for folder, pattern in TOGETHER:
        files = sorted((SHARED / folder).glob(pattern))
        if files:
            yield f"{folder}/{pattern}", files


def whole_run(walk: Walk, archive: Path, every: int = 1) -> None:
    """A run of an earlier version: its own commands, and each of its traces.

    Args:
        walk: where answers are kept.
        archive: the packed run.
        every: ask each trace only one of so many questions, in turns.
    """
    label = f"h200_runs/{archive.name}"
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # none before Python 3.11.4
        packed.extractall(walk.folder / "runs")
    (run,) = (walk.folder / "runs").iterdir()
    for words in (["status"], ["blocking"], ["report", "--out", str(walk.folder / "run.html")]):
        walk.ask(label, JUDGED, words[0], str(run), *words[1:])
    for number, trial in enumerate(sorted((run / "trials").iterdir())):
        walk.ask(label, READ, "logs", str(run), trial.name)
        if (trial / "trace").is_dir():
            walk.trace(f"{label} {trial.name}", str(trial / "trace"), first=number, every=every)
        for rank in sorted((trial / "raw").iterdir()):
            files = [str(path) for path in rank.iterdir() if not path.name.endswith(".key_averages.json")]
            for path in files:
                walk.ask(f"{label} {trial.name}", READ | REFUSED, "summary", path)
    twin = walk.folder / "twin"
    shutil.copytree(run, twin)
    walk.ask(label, JUDGED, "compare", str(run), "vs", str(twin))
    shutil.rmtree(twin)
    shutil.rmtree(walk.folder / "runs")


def main() -> int:
    """Walk, and print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="only recordings with this text in their name")
    parser.add_argument("--quick", action="store_true", help="leave out files larger than 1 MB")
    chosen = parser.parse_args()
    started, count = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as scratch:
        walk = Walk(Path(scratch))
        for label, paths in recordings():
            large = chosen.quick and sum(path.stat().st_size for path in paths) > QUICK_BYTES
            if chosen.only not in label or large:
                continue
            count += 1
            trace = str(walk.folder / "trace")
            code = walk.ask(label, READ | REFUSED, "normalize", *map(str, paths), "-o", trace)
            if code == 0:
                walk.trace(label, trace)
                shutil.rmtree(trace)
        for archive in sorted(RUNS.glob("*.tar.xz")):
            if chosen.only in f"h200_runs/{archive.name}" and not chosen.quick:
                count += 1
                whole_run(walk, archive)
    answers = ", ".join(f"{number} x exit {code}" for code, number in sorted(walk.answers.items()))
    print(f"{count} recordings, {answers}; {len(walk.wrong)} wrong; {time.perf_counter() - started:.0f} s")
    return 1 if walk.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
