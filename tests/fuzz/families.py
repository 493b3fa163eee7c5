"""One case of each kind of input: files of profilers, traces, runs, jobs, SQL and command lines.

A family is given dice, the material (what is whole) and an empty folder, in which it writes the input; it
returns the command lines that read it. A command that would start programs or leave the folder is never made.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import DATA, ROOT
from tests.fuzz import damage

Lines = tuple[tuple[str, ...], ...]

MOST_BYTES = 130_000
MOST_DATABASE_BYTES = 1_100_000
OURS = ("tests/data", "tests/collectors/proton/data")
"""Folders of real files in the repository, which are there without the shared ones."""
NOT_READ = frozenset({".md", ".py", ".txt", ".yaml", ".sh", ".tsv", ".jsonl", ".log", ".parquet"})
NOT_PROFILES = (
    "/negative/",
    "key_averages",
    "stats.csv",
    "/exit.json",
    "sysinfo.csv",
    "/jobs/",
    ".tar.",
    "session.csv",
)
STEPS = (
    "import profrun, time\nfor _ in range(12):\n    time.sleep(0.002)\n    profrun.step()\nprint('done')\n"
)


@dataclass(frozen=True)
class Material:
    """What is damaged.

    Attributes:
        files: real files of profilers, whole.
        traces: folders of whole traces.
        runs: a folder with a whole run.
        jobs: texts of whole job specs.
    """

    files: tuple[Path, ...]
    traces: tuple[Path, ...]
    runs: Path
    jobs: tuple[str, ...]


def real_files() -> tuple[Path, ...]:
    """Real files of every profiler that are small enough to be damaged thousands of times."""
    roots = [*(ROOT / folder for folder in OURS), *([DATA] if DATA.is_dir() else [])]
    found = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return tuple(sorted(path for path in found if _is_profile(path) and _small(path)))


def _is_profile(path: Path) -> bool:
    """Not a file beside a profile, and none that is refused whole."""
    beside = any(word in str(path) for word in NOT_PROFILES)
    return path.suffix not in NOT_READ and not beside


def _small(path: Path) -> bool:
    database = any(part in path.name for part in (".sqlite", ".db", ".rpd"))
    return 0 < path.stat().st_size <= (MOST_DATABASE_BYTES if database else MOST_BYTES)


def prepare(folder: Path) -> Material:
    """Make the traces and the run that are damaged; programs of their own do it."""
    files = real_files()
    traces = []
    for number, name in enumerate(("pt.trace.json.gz", "report.sqlite.xz", "steps.json")):
        source = next(path for path in files if path.name == name and path.is_relative_to(ROOT))
        traces.append(folder / f"trace{number}")
        _program(folder, "normalize", str(source), "-o", str(traces[-1]))
    (folder / "work.py").write_text(STEPS)
    spec = {"name": "t", "command": "python work.py", "collectors": ["none"], "variants": {"a": {}, "b": {}}}
    (folder / "job.yaml").write_text(json.dumps(spec))
    _program(folder, "submit", "job.yaml", "--runs", "runs")
    jobs = tuple(path.read_text() for path in sorted((ROOT / "jobs").glob("*.yaml")))
    return Material(files, tuple(traces), folder / "runs", jobs)


def _program(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "profrun.cli", *words], cwd=folder, check=True, capture_output=True)


@cache
def whole(path: Path) -> tuple[str, bytes]:
    """Name and bytes of a real file, unpacked."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        return path.name.removesuffix(".gz"), gzip.decompress(data)
    if data[:6] == b"\xfd7zXZ\0":
        return path.name.removesuffix(".xz"), lzma.decompress(data)
    return path.name, data


def profile(dice: random.Random, material: Material, folder: Path) -> Lines:
    """A file of a profiler, damaged by its structure or by its bytes; sometimes two as one recording."""
    names = []
    for number in range(2 if dice.random() < 0.05 else 1):
        name, data = whole(dice.choice(material.files))
        target = folder / f"{number}-{name}"
        _write_damaged(target, data, dice)
        names.append(target.name)
    more = (("summary", "t"), ("diagnose", "t")) if dice.random() < 0.3 else ()
    return (("normalize", *names, "-o", "t"), *more)


def _write_damaged(target: Path, data: bytes, dice: random.Random) -> None:
    structured = dice.random() < 0.75
    if data.startswith(b"SQLite format 3\0") and structured:
        target.write_bytes(data)
        damage.of_sqlite(target, dice)
        return
    head = data.lstrip()[:1]
    if structured and head in (b"{", b"["):
        data = damage.of_json(data, dice)
    elif structured and target.suffix == ".csv":
        data = damage.of_csv(data, dice)
    else:
        data = damage.of_bytes(data, dice, most=3)
    target.write_bytes(damage.packed(data, dice))


def trace(dice: random.Random, material: Material, folder: Path) -> Lines:
    """A trace's folder in which something is damaged, gone, or of another trace."""
    shutil.copytree(dice.choice(material.traces), folder / "t")
    shutil.copytree(dice.choice(material.traces), folder / "other")
    for _ in range(dice.choice((1, 1, 2))):
        path = dice.choice(sorted(path for path in (folder / "t").iterdir() if path.is_file()))
        how = dice.random()
        if path.name == "meta.json" and how < 0.8:
            path.write_bytes(damage.of_json(path.read_bytes(), dice))
        elif how < 0.5 and path.stat().st_size:
            path.write_bytes(damage.of_bytes(path.read_bytes(), dice))
        elif how < 0.65 and len(list((folder / "t").iterdir())) > 1:
            path.unlink()
        elif how < 0.9:
            others = sorted((folder / "other").glob("*.parquet"))
            path.write_bytes(dice.choice(others).read_bytes())
        else:
            path.write_bytes(b"")
    commands = (
        ("summary", "t"),
        ("summary", "t", "--json"),
        ("diagnose", "t"),
        ("query", "t", "SELECT * FROM kernels"),
        ("export", "t", "--to", "perfetto", "-o", "e"),
        ("export", "t", "--to", "pprof", "-o", "e"),
        ("report", "t", "--out", "r.html"),
        ("compare", "t", "vs", "other"),
    )
    return (dice.choice(commands),)


def run(dice: random.Random, material: Material, folder: Path) -> Lines:
    """A run's folder in which files are damaged, gone, or folders."""
    shutil.copytree(material.runs, folder / "runs", symlinks=True)
    (name,) = [path.name for path in (folder / "runs").iterdir()]
    files = sorted(
        path
        for path in (folder / "runs").rglob("*")
        if path.is_file()
        and "bundle" not in path.parts
        and path.suffix in (".json", ".jsonl", ".yaml", ".log", "")
    )
    for path in dice.sample(files, dice.choice((1, 1, 2, 5))):
        how = dice.random()
        if how < 0.6:
            data = path.read_bytes()
            if path.suffix == ".jsonl" and data:
                lines = data.split(b"\n")
                place = dice.randrange(len(lines))
                lines[place] = damage.of_json(lines[place], dice)
                data = b"\n".join(lines)
            else:
                data = damage.of_json(data, dice)
            path.write_bytes(data)
        elif how < 0.85:
            path.write_bytes(damage.of_bytes(path.read_bytes(), dice))
        elif how < 0.95:
            path.unlink()
        else:
            path.unlink()
            path.mkdir()
    commands = (
        ("status", name),
        ("status", name, "--json"),
        ("status", name, "-v"),
        ("report", name),
        ("logs", name),
        ("runs",),
        ("runs", "--json"),
        ("blocking", name),
        ("summary", f"{name}/0"),
        ("compare", f"{name}/a-none", "vs", f"{name}/b-none"),
        ("rm", name, "--dry-run"),
    )
    return (dice.choice(commands),)


def job(dice: random.Random, material: Material, folder: Path) -> Lines:
    """A job spec, damaged as a tree or as text, and odd values of ``--set``."""
    import yaml

    text = dice.choice(material.jobs)
    if dice.random() < 0.6:
        data = damage.of_json(json.dumps(yaml.safe_load(text)).encode(), dice)
    else:
        data = damage.of_bytes(text.encode(), dice, most=4)
    (folder / "job.yaml").write_bytes(data)
    words: list[str] = []
    if dice.random() < 0.3:
        key = dice.choice(
            ("repeats", "collectors", "variants.a.x", "resources.timeout", "name", "", "a..b", "env")
        )
        words = ["--set", f"{key}={_word(dice)}"]
    return (("job", "check", "job.yaml", *words, *dice.choice(((), ("--show",), ("--json",)))),)


SQL_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "ON", "AND", "OR", "NOT", "CASE"),
    *("slices", "kernels", "steps", "tracks", "ops", "issues", "name", "ts_ns", "dur_ns", "slice", "track"),
    *("*", ",", "(", ")", "=", "<", "1", "0", "-1", "NULL", "'x'", "'", '"', ";", "--", "/*", "count(*)"),
    *("sum(dur_ns)", "1/0", "CAST(name AS INT)", "regexp_matches(name, '(')", "[1]", "{'a': 1}", "$1", "?"),
    *("UNION ALL", "WITH x AS (SELECT 1)", "x", "DISTINCT", "over ()", "unnest([1,2])", "repeat('a', 1000)"),
    *(
        "9223372036854775807",
        "1e400",
        "'\\xff'",
        "ü",
        "\x1b",
        "SHOW TABLES",
        "DESCRIBE",
        "EXPLAIN",
        "range(9)",
    ),
)


def sql(dice: random.Random, material: Material, folder: Path) -> Lines:
    """Words of SQL in any order, or a whole query with damage."""
    if dice.random() < 0.5:
        text = "SELECT " + " ".join(dice.choices(SQL_WORDS, k=dice.randint(1, 25)))
    else:
        query = "SELECT name, sum(dur_ns) FROM slices WHERE kind = 'op' GROUP BY name ORDER BY 2 DESC LIMIT 5"
        text = damage.of_bytes(query.encode(), dice).decode("utf-8", "replace").replace("\0", " ")
    form = dice.choice(((), ("--csv",), ("--json",), ("--parquet", "x.parquet")))
    return (("query", str(dice.choice(material.traces)), text, *form),)


COMMANDS = (
    "runs",
    "status",
    "logs",
    "summary",
    "diagnose",
    "query",
    "export",
    "report",
    "compare",
    "blocking",
)
MORE_COMMANDS = (
    "normalize",
    "baseline",
    "job",
    "init",
    "completion",
    "cancel",
    "resume",
    "rm",
    "prune",
    "nonsense",
)
OPTIONS = (
    *(
        "--json",
        "-v",
        "-q",
        "--runs",
        "--out",
        "-o",
        "--to",
        "--by",
        "--threshold",
        "--set",
        "--csv",
        "--help",
    ),
    *(
        "--color",
        "--no-color",
        "--show",
        "--follow",
        "--top",
        "--dry-run",
        "--version",
        "-h",
        "--",
        "-",
        "vs",
    ),
    *("--older-than", "--keep", "--yes", "--as", "--step", "--process", "--title", "--dir", "--reader"),
)


def command_line(dice: random.Random, material: Material, folder: Path) -> Lines:
    """Commands and options that exist, in any order, with values that do not belong there."""
    shutil.copytree(material.runs, folder / "runs", symlinks=True)
    (folder / "file").write_bytes(b"some text\n")
    words = [dice.choice(COMMANDS + MORE_COMMANDS)]
    for _ in range(dice.randint(0, 6)):
        words.append(dice.choice(OPTIONS) if dice.random() < 0.6 else _word(dice, material))
    if words[0] in ("rm", "prune", "resume", "cancel"):
        words.insert(1, "--runs=runs")
    return (tuple(words),)


def _word(dice: random.Random, material: Material | None = None) -> str:
    """A word that a shell can pass on: no byte 0; bytes that are no UTF-8 come as Python gives them."""
    known: tuple[str, ...] = (
        "last",
        "last/0",
        "file",
        "runs",
        ".",
        "a",
        "missing",
        "0",
        "-1",
        "1%",
        "kernel",
        "perfetto",
        "chrome",
    )
    if material is not None:
        known += (str(dice.choice(material.traces)),) * 4
    if dice.random() < 0.6:
        return dice.choice(known)
    value = dice.choice(damage.ODD_VALUES)
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("\0", "").replace("\ud800", "\udc80").replace("\udfff", "\udcff").replace("../", "")


Family = Callable[[random.Random, Material, Path], Lines]
FAMILIES: dict[str, tuple[Family, int]] = {
    "profile": (profile, 50),
    "trace": (trace, 12),
    "run": (run, 12),
    "job": (job, 10),
    "sql": (sql, 8),
    "command line": (command_line, 8),
}
"""Name -> the family and its share of the cases, in hundredths."""
