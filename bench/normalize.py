"""normalize against its peers, on the same files in the same run: ``python bench/normalize.py``.

    --rounds N     rounds, alternating the order of the tools [3]
    --only NAME    cases to run (repeatable; --list shows them)
    --no-peers     profrun alone
    --cache DIR    enlarged files and the peers' environments [~/.cache/profrun/bench]
    --json FILE    every single measurement, as JSON

Peers come from PyPI into environments of their own: HolisticTraceAnalysis 0.5.0 (loads the trace) and
torch_tb_profiler 0.4.3 (parses it, with the pandas and numpy it needs). Every tool is a whole process,
imports included; CPU is user + system of the process and its children, memory the largest peak resident size
of one process (wait4), MB are 10^6 bytes of unpacked JSON. Wall time means something on a quiet machine only:
the one-minute load average (before the process starts) stands beside each row, and CPU seconds beside wall.

The files are made by bench/enlarge.py from real ones under ../shared/data ($PROFRUN_SHARED): nothing else is
read. The first run needs about 4 GB of disk in the cache and a package index for the peers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measured import cost

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("PROFRUN_SHARED", HERE.parent.parent / "shared")) / "data"
H100 = "nvidia/tracelens/h100_owlv2.json.gz"
H200 = "h200/torch/train.json.gz"
NSYS = "h200/nsys/train.sqlite"
ROCPD = "amd/rocpd-batched-gemm-mi300x/bmm/37ca13315e70/21_results.db"

PEERS = {
    "HTA": (("HolisticTraceAnalysis==0.5.0",), "hta_load.py", 10.0),
    "torch_tb_profiler": (("torch_tb_profiler==0.4.3", "pandas<2", "numpy<2"), "tb_parse.py", 7.0),
}
"""Requirements, script, and the target: how many times faster than it profrun is to be."""


@dataclass(frozen=True)
class Case:
    """One file: how it is made, who reads it, and what is wanted.

    Attributes:
        copies: how often the source is repeated.
        options: further options of enlarge.py.
        peers: whether the peers read it too.
        speed: wanted MB a second (kineto) or rows a second (SQLite), None for none.
        rss_mb: wanted peak memory, None for none.
        rounds: at most so many rounds.
    """

    name: str
    family: str
    source: str
    copies: int
    options: tuple[str, ...] = ()
    peers: bool = False
    speed: float | None = None
    rss_mb: float | None = None
    rounds: int = 99

    @property
    def file_name(self) -> str:
        """In the cache; says how it was made."""
        suffix = {"kineto": ".json", "sqlite": ".sqlite"}[self.family]
        return f"{self.name}-x{self.copies}{suffix}{'.gz' if '--gzip' in self.options else ''}"


LINE = ("--layout", "line")
CASES = (
    Case("h100", "kineto", H100, 9, peers=True, speed=200, rss_mb=512),
    Case("h100-gz", "kineto", H100, 9, ("--gzip",), speed=200, rss_mb=512),
    Case("h100-line", "kineto", H100, 9, LINE, speed=60, rss_mb=512),
    Case("h100-line-gz", "kineto", H100, 9, (*LINE, "--gzip"), speed=60, rss_mb=512),
    Case("h200", "kineto", H200, 97, speed=200, rss_mb=512),
    Case("h100-2gb", "kineto", H100, 36, rss_mb=512, rounds=1),
    Case("nsys", "sqlite", NSYS, 100, speed=1e6),
    Case("rocpd", "sqlite", ROCPD, 1000, speed=1e6),
)


@dataclass(frozen=True)
class Measured:
    """One process: seconds, MB, and the load average when it started."""

    case: str
    tool: str
    wall_s: float
    cpu_s: float
    rss_mb: float
    load: float


def spawn(argv: Sequence[str]) -> tuple[float, float, float]:
    """Run to its end; wall seconds, CPU seconds, peak MB. Stops the bench when the process fails."""
    took = cost(argv)
    return took.wall_s, took.cpu_s, took.peak_mb


def peer_python(cache: Path, name: str) -> str:
    """The Python of a peer's environment, made at first use."""
    home = cache / f"venv-{name}"
    python = home / "bin/python"
    if not (home / "made").exists():
        print(f"installing {name} from PyPI", file=sys.stderr, flush=True)
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name][0]], check=True)
        (home / "made").touch()
    return str(python)


def made(cache: Path, case: Case) -> Path:
    """The case's file, made at first use by a process of its own (this one must stay small)."""
    out = cache / case.file_name
    if not out.exists():
        print(f"making {out.name}", file=sys.stderr, flush=True)
        source = DATA / case.source
        if not source.exists():
            raise SystemExit(f"{source} is not there; set PROFRUN_SHARED")
        argv = [sys.executable, str(HERE / "enlarge.py"), case.family, str(source), str(out)]
        subprocess.run([*argv, "--copies", str(case.copies), *case.options], check=True)
    return out


def size_of(file: Path, case: Case) -> float:
    """Unpacked MB of JSON, or rows of the tables with times (and rocpd's events, which the join needs)."""
    if case.family == "kineto":
        if file.suffix != ".gz":
            return file.stat().st_size / 1e6
        with gzip.open(file) as packed:
            return packed.seek(0, os.SEEK_END) / 1e6
    con = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
    rows = 0
    for (name,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = {str(row[1]) for row in con.execute(f'PRAGMA table_info("{name}")')}
        if {"start", "end"} <= columns or name.startswith("rocpd_event"):
            rows += con.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
    con.close()
    return float(rows)


def measure(case: Case, tool: str, file: Path, cache: Path) -> Measured:
    """One process of one tool on one file."""
    load = os.getloadavg()[0]
    if tool == "profrun":
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            argv = [sys.executable, "-m", "profrun.cli", "normalize", str(file), "--out"]
            wall, cpu, rss = spawn([*argv, str(Path(folder) / "trace"), "--json"])
    else:
        wall, cpu, rss = spawn([peer_python(cache, tool), str(HERE / "peers" / PEERS[tool][1]), str(file)])
    return Measured(case.name, tool, round(wall, 3), round(cpu, 3), round(rss, 1), round(load, 2))


def run_case(case: Case, cache: Path, rounds: int, peers: bool) -> list[Measured]:
    """All rounds of a case, with the order of the tools reversed each time."""
    file = made(cache, case)
    tools = ["profrun", *(PEERS if case.peers and peers else ())]
    for tool in tools[1:]:
        peer_python(cache, tool)
    rows = []
    for number in range(min(rounds, case.rounds)):
        for tool in tools if number % 2 == 0 else reversed(tools):
            rows.append(measure(case, tool, file, cache))
            print(f"round {number + 1}: {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def table(case: Case, size: float, rows: Sequence[Measured]) -> list[str]:
    """Markdown rows: medians, speed, ratio to profrun."""
    unit = "MB" if case.family == "kineto" else "k rows"
    amount = size if case.family == "kineto" else size / 1000
    middle = {tool: medians(rows, tool) for tool in dict.fromkeys(row.tool for row in rows)}
    ours = middle["profrun"]
    lines = []
    for tool, (wall, cpu, rss, load) in middle.items():
        ratio = "1" if tool == "profrun" else f"{wall / ours[0]:.1f} wall, {cpu / ours[1]:.1f} CPU"
        lines.append(
            f"| {case.name} ({amount:.0f} {unit}) | {tool} | {wall:.2f} | {cpu:.2f} | {amount / wall:.0f} | "
            f"{amount / cpu:.0f} | {rss:.0f} | {ratio} | {load:.1f} |"
        )
    return lines


def medians(rows: Sequence[Measured], tool: str) -> tuple[float, float, float, float]:
    """Medians of wall and CPU seconds, peak MB and load of one tool's rounds."""
    own = [row for row in rows if row.tool == tool]
    wall, cpu, rss, load = (
        statistics.median(getattr(row, key) for row in own) for key in ("wall_s", "cpu_s", "rss_mb", "load")
    )
    return wall, cpu, rss, load


def targets(case: Case, size: float, rows: Sequence[Measured]) -> list[str]:
    """Markdown rows: what is wanted, what was measured, met or not. Speeds are of wall time."""
    wall, _, _, _ = medians(rows, "profrun")
    peak = max(row.rss_mb for row in rows if row.tool == "profrun")
    lines = []

    def line(what: str, wanted: str, got: str, met: bool) -> None:
        lines.append(f"| {case.name} | {what} | {wanted} | {got} | {'met' if met else '**not met**'} |")

    if case.speed is not None:
        unit, scale = ("MB/s", 1.0) if case.family == "kineto" else ("M rows/s", 1e6)
        wanted, got = case.speed / scale, size / wall / scale
        line("speed (wall)", f">= {wanted:.0f} {unit}", f"{got:.3g} {unit}", got >= wanted)
    if case.rss_mb is not None:
        line("peak memory", f"<= {case.rss_mb:.0f} MB", f"{peak:.0f} MB", peak <= case.rss_mb)
    for tool in PEERS:
        if any(row.tool == tool for row in rows):
            ratio, wanted = medians(rows, tool)[0] / wall, PEERS[tool][2]
            line(f"against {tool} (wall)", f">= {wanted:.0f}x", f"{ratio:.1f}x", ratio >= wanted)
    return lines


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--cache", type=Path, default=home / "profrun/bench")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--make", action="store_true", help="make files and environments, measure nothing")
    return parser.parse_args()


def main() -> None:
    """Measure and print two tables."""
    options = arguments()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.list:
        for case in CASES:
            print(case.name, case.source, f"x{case.copies}", *case.options)
        return
    options.cache.mkdir(parents=True, exist_ok=True)
    for case in cases:  # before anything is timed
        made(options.cache, case)
    if not options.no_peers:
        for name in PEERS:
            peer_python(options.cache, name)
    if options.make:
        return
    lines, wanted, every = [], [], []
    for case in cases:
        rows = run_case(case, options.cache, options.rounds, not options.no_peers)
        size = size_of(options.cache / case.file_name, case)
        lines += table(case, size, rows)
        wanted += targets(case, size, rows)
        every += [vars(row) | {"size": size} for row in rows]
    print(f"{os.cpu_count()} CPUs, Python {sys.version.split()[0]}, rounds {options.rounds}, medians\n")
    print("| file | tool | wall s | CPU s | per wall s | per CPU s | peak MB | x profrun | load |")
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(lines))
    print("\n| file | what | wanted | measured | |\n|---|---|---|---|---|")
    print("\n".join(wanted))
    if options.json:
        document: dict[str, object] = {"cpus": os.cpu_count(), "python": sys.version, "rows": every}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
