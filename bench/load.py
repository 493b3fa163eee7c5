"""Large work of each kind: how time and memory grow, and whether anything is left running or lying.

    python bench/load.py trials 100 1000     trials of one run, and what is asked of that run then
    python bench/load.py submits 200         submits one after another, and the list of runs
    python bench/load.py ranks 8 64 512      files of one rank each: one trace of all, questions, the report
    python bench/load.py slices 1000000 10000000    a made trace: questions, the report, long answers
    python bench/load.py file 0.5 5          one kineto file of so many GB (10^9 bytes), and its trace
    python bench/load.py traces 20 200       traces compared, one half of them with the other half

Each row is one process. CPU seconds are user + system of it and of the processes that it waited for; MB are
10^6 bytes of its own largest resident size; the load average stands beside wall time. "Left" counts the
processes that still run and the files in the folder of temporary files when the command has ended. The exit
code is 1 if anything was left. Files are made in a temporary folder ($TMPDIR): 6 GB for ``file 5``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import clocks
import enlarge
import normalize
from measured import PROFRUN, Cost, cost, left_running

JOB = "name: many\ncommand: 'true'\ncollectors: [none]\nvariants: {{a: {{}}, b: {{}}}}\nrepeats: {each}\n"
TABLES = "SELECT name, count(*), sum(dur_ns) FROM slices GROUP BY ALL"


class Bench:
    """Runs commands in one folder, and prints a row for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environ = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(folder / "state"),
            "PROFRUN_RUNS": str(folder / "runs"),
        }
        self.left = 0
        print("| what | command | wall s | CPU s | peak MB | descriptors | threads | left | load |")
        print("|---|---|---|---|---|---|---|---|---|")

    def profrun(self, what: str, *words: str, codes: Sequence[int] = (0,)) -> Cost:
        """Run one command of profrun and print its row."""
        load = os.getloadavg()[0]
        took = cost([*PROFRUN, *words], cwd=self.folder, environ=self.environ, codes=codes)
        left = len(left_running(self.folder)) + len(list(self.temporary.rglob("*")))
        self.left += left
        shown = re.sub(r"(\S*\.json(\.gz)? ?){2,}", "FILES ", " ".join(words))
        shown = re.sub(r"(t\d+ ?){2,}", "TRACES ", shown)
        print(
            f"| {what} | `{shown[:60]}` | {took.wall_s:.1f} | {took.cpu_s:.1f} | {took.peak_mb:.0f} "
            f"| {took.fds} | {took.threads} | {left} | {load:.1f} |",
            flush=True,
        )
        return took

    def questions(self, what: str, trace: str) -> None:
        """Summary, findings, report and two queries of one trace."""
        self.profrun(what, "summary", trace)
        self.profrun(what, "diagnose", trace)
        self.profrun(what, "report", trace, "-o", "report.html")
        self.profrun(what, "query", trace, TABLES, "--csv")
        self.profrun(what, "query", trace, "SELECT * FROM slices ORDER BY dur_ns, slice", "--csv")


def trials(bench: Bench, count: int) -> None:
    """One run of so many trials of ``true``."""
    (bench.folder / "job.yaml").write_text(JOB.format(each=count // 2))
    what = f"{count} trials"
    bench.profrun(what, "submit", "job.yaml", "--dry-run")
    bench.profrun(what, "submit", "job.yaml")
    run = max((bench.folder / "runs").iterdir()).name
    files = [path for path in (bench.folder / "runs" / run).rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    for words in (
        ("status", run),
        ("summary", f"{run}/000"),
        ("diagnose", f"{run}/000"),
        ("report", run),
        ("runs",),
    ):
        bench.profrun(what, *words)
    bench.profrun(what, "compare", f"{run}/a-none", "vs", f"{run}/b-none", codes=(0, 1, 2))
    print(f"\n{what}: {len(files)} files, {size / 1e6:.1f} MB\n")


def submits(bench: Bench, count: int) -> None:
    """So many runs of one trial, one after another: the first, the last, and their list."""
    (bench.folder / "job.yaml").write_text("name: one\ncommand: 'true'\ncollectors: [none]\n")
    for number in range(count):
        if number in (0, count // 2, count - 1):
            bench.profrun(f"submit {number + 1}", "submit", "job.yaml")
        else:
            cost([*PROFRUN, "submit", "job.yaml", "-q"], cwd=bench.folder, environ=bench.environ)
    bench.profrun(f"{count} runs", "runs")
    bench.profrun(f"{count} runs", "status", "last")


def ranks(bench: Bench, count: int) -> None:
    """A real recording of one rank as the files of so many ranks; hosts of eight ranks have other clocks."""
    paths = clocks.rank_files(bench.folder, count, _recording(), random.Random(0))
    what = f"{count} ranks"
    bench.profrun(what, "normalize", *(path.name for path in paths), "--out", f"ranks{count}")
    bench.questions(what, f"ranks{count}")


def _recording() -> dict[str, Any]:
    """The JSON of a real recording of one rank."""
    found: dict[str, Any] = json.loads(gzip.decompress(clocks.SOURCE.read_bytes()))
    return found


def slices(bench: Bench, count: int) -> None:
    """A made trace of so many slices."""
    make = runpy.run_path(str(Path(__file__).with_name("analysis.py")))["make"]
    make(bench.folder / f"slices{count}", count)
    bench.questions(f"{count} slices", f"slices{count}")


def file(bench: Bench, gigabytes: float) -> None:
    """One kineto file of about so many GB: a real recording, repeated."""
    source = normalize.DATA / normalize.H100
    with gzip.open(source) as opened:
        size = sum(len(block) for block in iter(lambda: opened.read(1 << 20), b""))
    large = bench.folder / "large.json"
    enlarge.kineto(source, large, max(1, round(gigabytes * 1e9 / size)), "source", packed=False)
    what = f"{large.stat().st_size / 1e9:.2f} GB"
    bench.profrun(what, "normalize", large.name, "--out", "large")
    large.unlink()
    bench.questions(what, "large")


def traces(bench: Bench, count: int) -> None:
    """So many recordings of one program: a real one, each with times of its own (2 % of scatter)."""
    dice = random.Random(0)
    whole, names = _recording(), []
    for number in range(count):
        factor = dice.gauss(1.0, 0.02)
        events = [
            one | {"ts": one["ts"] * factor, "dur": one["dur"] * factor}
            if "dur" in one
            else (one | {"ts": one["ts"] * factor} if "ts" in one else one)
            for one in whole["traceEvents"]
        ]
        path = bench.folder / "one.json"
        path.write_text(json.dumps(whole | {"traceEvents": events}))
        names.append(f"t{number:03d}")
        made = [*PROFRUN, "normalize", path.name, "--out", names[-1], "-q"]
        cost(made, cwd=bench.folder, environ=bench.environ)
    what = f"{count} traces"
    half = count // 2
    words = ("compare", *names[:half], "vs", *names[half:])
    bench.profrun(what, *words, codes=(0, 1, 2))
    bench.profrun(what, *words, "--html", "compare.html", codes=(0, 1, 2))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds: dict[str, tuple[Callable[[Bench, Any], None], Iterable[float]]] = {
        "trials": (trials, (100, 1000)),
        "submits": (submits, (200,)),
        "ranks": (ranks, (8, 64, 512)),
        "slices": (slices, (1_000_000, 10_000_000)),
        "file": (file, (0.5, 5)),
        "traces": (traces, (20, 200)),
    }
    parser.add_argument("kind", choices=tuple(kinds))
    parser.add_argument("sizes", type=float, nargs="*")
    options = parser.parse_args()
    work, sizes = kinds[options.kind]
    left = 0
    for size in options.sizes or sizes:
        with tempfile.TemporaryDirectory(prefix="profrun-load-") as name:
            bench = Bench(Path(name))
            work(bench, size if options.kind == "file" else int(size))
            left += bench.left
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
