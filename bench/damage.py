"""Damage planted into real recordings: does profrun find it, and is the truth inside what it states?

    python bench/damage.py run --out DIR [--files NAME ...] [--kinds TEXT ...] [--again]
    python bench/damage.py table --out DIR [--details]
    python bench/damage.py plant NAME "KIND" --to DIR

``run`` reads each recording as it is and with every kind of damage, and appends what profrun said to
DIR/results.jsonl; what is there already is not done again. ``table`` makes the tables of what is there.
``plant`` writes the damaged files, for a look at one case. The files lie in PROFRUN_SHARED, or beside the
checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planted_damage import judge
from planted_damage.files import FILES, RealFile, located
from planted_damage.kinds import KINDS, Kind
from planted_damage.model import Truth
from planted_damage.slack import Slack, rank_slack, slack
from planted_damage.table import RANKS, UNDAMAGED, tables

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PROFRUN_SHARED", ROOT.parent / "shared"))


def seed_of(name: str, kind: str) -> int:
    """The same number for the same case on every machine."""
    return zlib.crc32(f"{name}/{kind}".encode())


def plant(
    real: RealFile, kind: Kind | None, scratch: Path, to: Path
) -> tuple[list[Path], Truth | None, dict[str, Slack]]:
    """The files of a case, what was planted, and the bounds that the yardstick sees."""
    recording = real.family(located(real, SHARED, scratch / "unpacked"))  # type: ignore[call-arg]
    truth = None
    if kind is not None:
        truth = kind.plant(recording, random.Random(seed_of(real.name, kind.name)))
        if truth is None:
            return [], None, {}
    bounds = {str(process): found for process, found in slack(recording).items()}
    between = rank_slack(recording) if len(recording.processes) > 1 else None
    if between is not None:
        bounds[RANKS] = between
    to.mkdir(parents=True, exist_ok=True)
    return recording.save(to), truth, bounds


def cases(names: list[str], kinds: list[str]) -> Iterator[tuple[RealFile, Kind | None]]:
    """Every chosen recording, first as it is."""
    for real in FILES:
        if names and real.name not in names:
            continue
        yield real, None
        for kind in KINDS:
            if not kinds or any(text in kind.name for text in kinds):
                yield real, kind


def run(options: argparse.Namespace) -> None:
    """Do what is not in the results yet."""
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.jsonl"
    done = set()
    if results.exists() and not options.again:
        done = {(row["file"], row["kind"]) for row in map(json.loads, results.read_text().splitlines())}
    with results.open("w" if options.again else "a") as stream:
        for real, kind in cases(options.files, options.kinds):
            name = UNDAMAGED if kind is None else kind.name
            if (real.name, name) in done:
                continue
            row = one(real, kind, out)
            stream.write(
                json.dumps({"file": real.name, "kind": name, "family": real.family.family} | row) + "\n"
            )
            stream.flush()


def one(real: RealFile, kind: Kind | None, out: Path) -> dict[str, Any]:
    """One case: planted, observed, removed."""
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)
    began = time.perf_counter()
    paths, truth, bounds = plant(real, kind, out, work)
    if not paths:
        return {"applies": False}
    planted = time.perf_counter() - began
    seen = judge.observe(paths, work)
    shutil.rmtree(work)
    told = "error" if seen.error else ",".join(sorted(seen.alarms)) or "-"
    print(
        f"{real.name} | {kind.name if kind else UNDAMAGED} | {told} | {planted:.1f} s",
        file=sys.stderr,
        flush=True,
    )
    return {
        "applies": True,
        "truth": _plain(truth),
        "slack": {process: asdict(found) for process, found in bounds.items()},
        "shows": any(found.shows_displacement for found in bounds.values()),
        "seen": judge.as_json(seen),
    }


def _plain(truth: Truth | None) -> dict[str, Any] | None:
    """A truth as JSON: processes and lanes as text."""
    if truth is None:
        return None
    raw = asdict(truth)
    return raw | {key: None if raw[key] is None else str(raw[key]) for key in ("process", "lane")}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "table"):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
    run_options = commands.choices["run"]
    run_options.add_argument("--files", nargs="*", default=[])
    run_options.add_argument("--kinds", nargs="*", default=[])
    run_options.add_argument("--again", action="store_true", help="forget earlier results")
    commands.choices["table"].add_argument("--details", action="store_true")
    command = commands.add_parser("plant")
    command.add_argument("name", choices=[real.name for real in FILES])
    command.add_argument("kind", choices=[kind.name for kind in KINDS])
    command.add_argument("--to", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    elif options.command == "table":
        print(tables(options.out / "results.jsonl", details=options.details))
    else:
        real = next(real for real in FILES if real.name == options.name)
        kind = next(kind for kind in KINDS if kind.name == options.kind)
        paths, truth, _ = plant(real, kind, options.to, options.to / "files")
        print(json.dumps({"files": [str(path) for path in paths], "truth": _plain(truth)}, indent=1))


if __name__ == "__main__":
    main()
