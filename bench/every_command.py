"""Every command on every shared file: which exit codes come, and does anything crash or take long?

    python bench/every_command.py --out DIR [--only TEXT] [--slow SECONDS]

A file that is a profile is normalized (with and without repair) and every command about traces reads the
trace; a file that is refused must be refused by each command. Exit 70 and a traceback are crashes. Archives
are unpacked first; the runs of h200_runs are reported and compared as runs too. One process per file, so that
no file is judged by what another left behind. DIR/commands.jsonl has a row per call.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PROFRUN_SHARED", ROOT.parent / "shared"))
NO_PROFILES = {".md", ".py", ".txt", ".log"}
ALLOWED = {0, 1, 2, 65, 69}
LIMIT_S = 300


def unpacked(out: Path) -> Path:
    """Every archive of the shared folder, unpacked once."""
    home = out / "unpacked"
    if not home.is_dir():
        for path in sorted([*SHARED.glob("h200_runs/*.tar.xz"), *SHARED.glob("data/**/*.tar.gz")]):
            with tarfile.open(path) as archive:
                archive.extractall(home / path.name.partition(".")[0], filter="data")
    return home


def files(out: Path) -> Iterator[Path]:
    """Every shared file that could be taken for a profile, and what lay in archives."""
    for folder in (SHARED / "data", SHARED / "hostile", unpacked(out)):
        for path in sorted(folder.rglob("*")):
            archive = path.name.endswith((".tar.gz", ".tar.xz"))
            if path.is_file() and path.suffix not in NO_PROFILES and not archive:
                yield path


def commands(target: str, other: str) -> list[list[str]]:
    """What is asked of a trace or of a file; ``other`` is what it is compared with."""
    sql = "SELECT kind, count(*) AS n, sum(dur_ns) AS ns FROM slices GROUP BY ALL ORDER BY kind"
    return [
        ["summary", target],
        ["summary", target, "--json"],
        ["diagnose", target],
        ["diagnose", target, "--json"],
        ["query", target, sql],
        ["export", target, "--out", "out.pftrace"],
        ["export", target, "--to", "chrome", "--out", "out.json"],
        ["report", target, "--out", "out.html"],
        ["compare", target, "vs", other],
        ["compare", target, "vs", other, "--by", "op", "--json"],
        ["blocking", target, "vs", other],
    ]


def call(args: list[str]) -> dict[str, Any]:
    """One command in this process."""
    from profrun import cli

    stdout, stderr = io.StringIO(), io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            code = cli.run(args)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else -1
        except BaseException as error:  # a crash that not even the command line caught
            code, _ = -1, stderr.write(f"{type(error).__name__}: {error}")
    text = stderr.getvalue()
    return {
        "args": args,
        "code": code,
        "seconds": round(time.perf_counter() - began, 2),
        "crash": code not in ALLOWED or "Traceback" in text,
        "said": text.strip().splitlines()[-1][:300] if text.strip() else "",
        "lines": len(text.strip().splitlines()),
    }


def one(path: Path, work: Path, answers: multiprocessing.Queue[dict[str, Any]]) -> None:
    """All commands on one file; runs in a process of its own."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.chdir(work)
    os.environ["XDG_STATE_HOME"] = str(work)
    whole = path.is_dir()
    first: list[list[str]] = [] if whole else [["normalize", str(path), "--out", "trace"]]
    code = 0
    for args in first:
        row = call(args)
        code = row["code"]
        answers.put(row)
    if whole:
        todo = [["report", str(path), "--out", "out.html"], ["compare", str(path), "vs", str(path)]]
    elif code == 0:
        todo = [
            ["normalize", str(path), "--out", "kept", "--no-repair", "--json"],
            *commands("trace", "kept"),
        ]
    else:
        todo = [
            command for command in commands(str(path), "") if command[0] in ("summary", "diagnose", "report")
        ]
    for args in todo:
        for left in ("out.pftrace", "out.json", "out.html"):
            Path(left).unlink(missing_ok=True)
        answers.put(call(args))
    answers.put({"end": True})


def watched(path: Path, work: Path) -> list[dict[str, Any]]:
    """The rows of one file; a process that dies or takes too long is a crash."""
    answers: multiprocessing.Queue[dict[str, Any]] = multiprocessing.Queue()
    process = multiprocessing.Process(target=one, args=(path, work, answers))
    process.start()
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    while True:
        try:
            row = answers.get(timeout=1)
        except Exception:  # queue.Empty
            if process.is_alive() and time.monotonic() - began < LIMIT_S:
                continue
            rows.append({"args": ["?"], "code": process.exitcode, "crash": True, "said": "died or too slow"})
            break
        if row.get("end"):
            break
        rows.append(row)
    process.terminate()
    process.join()
    shutil.rmtree(work, ignore_errors=True)
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--slow", type=float, default=20)
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    runs = sorted(path.parent for path in unpacked(out).rglob("plan.json"))
    codes: Counter[tuple[str, int]] = Counter()
    crashes: list[tuple[Path, str]] = []
    with (out / "commands.jsonl").open("w") as stream:
        for path in [*files(out), *runs]:
            if options.only not in str(path):
                continue
            for row in watched(path, out / "work"):
                stream.write(json.dumps({"file": str(path)} | row) + "\n")
                codes[row["args"][0], row["code"]] += 1
                if row["crash"] or row.get("seconds", 0) > options.slow:
                    called = " ".join([row["args"][0], *(word for word in row["args"] if word[0] == "-")])
                    said = row["said"].partition("; the traceback")[0]
                    crashes.append((path, said))
                    print(f"{path.name} | {called} | {row.get('seconds')} s | {said}", flush=True)
    for (command, code), count in sorted(codes.items(), key=str):
        print(f"{command:10} exit {code}: {count}")
    print(f"{len(crashes)} crashes or slow calls, {len(dict(crashes))} files")


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
