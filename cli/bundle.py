"""``profrun bundle RUN``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunArgument, RunsOption, runs_root
from profrun.cli.output import emit, say

EXAMPLES = (("profrun bundle last", "RUN.tar.gz of the newest run, searched for secrets"),)


def command(
    run: RunArgument = "last",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The archive [default: RUN.tar.gz].")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Also the profilers' own files and what the programs printed.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Pack a run to hand it on: traces, numbers, report; no secrets, no raw files."""
    from profrun.contract.codec import to_json
    from profrun.contract.units import bytes_text, counted
    from profrun.runner.bundle import pack
    from profrun.store.runs import find

    found = find(runs_root(runs), run)
    packed = pack(found, out or Path(f"{found.name}.tar.gz"), raw=raw)
    if json_:
        emit(to_json(packed))
        return
    say(f"{packed.path}: {counted(packed.files, 'file')}, {bytes_text(packed.size)}")
    searched = f"{counted(packed.shapes, 'kind')} of secrets and {counted(packed.values, 'known value')}"
    say(f"searched for {searched}: none is in it")
