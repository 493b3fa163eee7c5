"""The wrapper: one process per rank that runs one trial. ``main`` is what ``run.py`` calls."""

from __future__ import annotations

import argparse
import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract import profilers
from ..contract.codec import DocumentError, to_json
from ..contract.public_command import whole_command
from . import preflight
from .files import read_json
from .private_values import private_of
from .trial import Trial
from .words import complain

if TYPE_CHECKING:
    from collections.abc import Sequence

_WANTS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""What the system says when it has no descriptor, memory or process left."""


def main(argv: Sequence[str]) -> int:
    """Run a trial, or only the preflight. Returns the process's exit code.

    A trial's: the user's own; 128 + n when it died of signal n; 124 at the time limit; 130 when cancelled;
    1 when the program was fine but the collector left nothing; 69 when the collector cannot run here;
    65 when the trial folder cannot be read; 71 when the wrapper has no descriptor or memory left.

    ``run.py --wrap --out DIR -- COMMAND`` is ``profrun wrap``: see ``wrap.main``.
    """
    if list(argv[:1]) == ["--wrap"]:
        from . import wrap  # only now: every rank of every trial starts here

        return wrap.main(argv[1:])
    parser = argparse.ArgumentParser(
        prog="run.py", description="profrun's wrapper: runs one trial in the job"
    )
    parser.add_argument("trial", nargs="?", help="the trial folder, with command.json in it")
    parser.add_argument(
        "--preflight", nargs="?", const="all", metavar="COLLECTOR", help="only say what can record here"
    )
    parser.add_argument("--json", action="store_true", help="with --preflight: one JSON document")
    options = parser.parse_args(argv)
    if options.preflight:
        return _preflight(options.preflight, as_json=options.json)
    if options.trial is None:
        parser.error("name a trial folder, or use --preflight")
    folder = Path(options.trial).resolve()
    try:
        command = whole_command(read_json(folder / "command.json"), private_of(folder))
    except DocumentError as error:
        complain(f"{folder / 'command.json'} cannot be read: {error}")
        return 65
    try:
        return Trial(folder, command, Path(__file__).resolve().parents[2]).run()
    except (OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno not in _WANTS:
            raise
        complain(f"the wrapper cannot go on: {_one_line(error)}; raise the limit (`ulimit -a`)")
        return 71


def _one_line(error: Exception) -> str:
    """An error without a traceback: to print one takes what is missing."""
    return str(error) or type(error).__name__


def _preflight(collector: str, *, as_json: bool) -> int:
    names = profilers.names() if collector == "all" else tuple(collector.split(","))
    answer = preflight.probe(names, Path(os.environ.get("TMPDIR", "/tmp")))
    if as_json:
        print(json.dumps(to_json(answer), indent=1))
        return 0
    print(f"GPU vendor: {answer.vendor} ({answer.vendor_by})")
    for name, row in answer.collectors.items():
        version = f" {row.version or ''}".rstrip()
        print(f"{name}{version}: {'' if row.usable else 'not '}usable {row.reason or ''}".rstrip())
        for finding in row.findings:
            print(f"  {finding.severity}: {finding}")
    return 0
