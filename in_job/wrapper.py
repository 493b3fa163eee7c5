"""The wrapper: one process a rank that runs one trial. ``main`` is what ``run.py`` calls."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import preflight
from .files import read_json
from .tools import COLLECTORS
from .trial import Trial


def main(argv: list[str]) -> int:
    """Run a trial, or only the preflight. Returns the process's exit code.

    A trial's: the user's own; 128 + n when it died of signal n; 124 at the time limit; 130 when cancelled;
    1 when the program was fine but the collector left nothing; 69 when the collector cannot run here;
    65 when the trial folder cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog="run.py", description="profrun's wrapper: runs one trial in the job"
    )
    parser.add_argument("trial", nargs="?", help="the trial folder, with command.json in it")
    parser.add_argument(
        "--preflight", nargs="?", const="all", metavar="COLLECTOR", help="only say what can collect"
    )
    parser.add_argument("--json", action="store_true", help="with --preflight: one JSON document")
    options = parser.parse_args(argv)
    if options.preflight:
        return _preflight(options.preflight, as_json=options.json)
    if options.trial is None:
        parser.error("name a trial folder, or use --preflight")
    folder = Path(options.trial).resolve()
    command = read_json(folder / "command.json")
    if command is None:
        print(f"profrun: {folder / 'command.json'} is not there or no whole JSON object", file=sys.stderr)
        return 65
    return Trial(folder, command, Path(__file__).resolve().parents[2]).run()


def _preflight(collector: str, *, as_json: bool) -> int:
    names = list(COLLECTORS) if collector == "all" else collector.split(",")
    answer = preflight.probe(names, Path(os.environ.get("TMPDIR", "/tmp")))
    if as_json:
        print(json.dumps(answer, indent=1))
        return 0
    print(f"GPU vendor: {answer['vendor']} ({answer['vendor_by']})")
    for name, row in answer["collectors"].items():
        version = f" {row.get('version') or ''}".rstrip()
        print(f"{name}{version}: {'' if row['usable'] else 'not '}usable {row.get('reason') or ''}".rstrip())
        for finding in row["findings"]:
            print(f"  {finding['level']}: {finding['what']}: {finding['why']}; {finding['fix']}")
    return 0
