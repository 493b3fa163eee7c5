"""Everything that must be there before faults can be injected, made once and taken away at the end."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.real.faults.engines import Engines
from tests.real.faults.plan import Backend
from tests.real.faults.tools import Tools, build, check_out_older

_LOADED = (
    "cli.app",
    "cli.carry_out",
    "runner.drive",
    "runner.report",
    "runner.finish",
    "collectors.normalize",
)
"""Rooms that the questions need: loaded once here, so that no fork loads them again."""


@contextlib.contextmanager
def workshop(folder: Path, backends: Sequence[Backend]) -> Iterator[tuple[Tools, Engines]]:
    """Tools and engines for the faults on these backends; ended at the end.

    Args:
        folder: where the runs go, and the tools.
    """
    for name in _LOADED:
        importlib.import_module(f"profrun.{name}")
    place = folder / "tools"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    tools = Tools(
        broken_writes=build("broken_writes", place),
        clock=build("clock", place),
        older=check_out_older(place),
        mounts=os.geteuid() == 0,
    )
    yield tools, Engines()
