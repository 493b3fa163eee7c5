"""Everything that must be there before faults can be injected, made once and taken away at the end."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.conftest import missing, need_tool
from tests.real.faults.engines import Engines
from tests.real.faults.plan import Backend
from tests.real.faults.tools import Tools, build, check_out_older
from tests.real.slurm.conftest import running_cluster

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
    with contextlib.ExitStack() as ends:
        engines = Engines()
        if "docker" in backends:
            engines = ends.enter_context(_docker(place / "docker"))
            tools = replace(tools, docker=engines.socket)
        if "slurm" in backends:
            (place / "slurm").mkdir()
            cluster = ends.enter_context(running_cluster(place / "slurm"))
            tools = replace(tools, slurm=Path(cluster.environ["SLURM_CONF"]))
        yield tools, engines


@contextlib.contextmanager
def _docker(base: Path) -> Iterator[Engines]:
    """A Docker engine of our own, which may be killed, with the image of the runs."""
    need_tool("dockerd")
    kept = sorted((Path(os.environ.get("PROFRUN_CACHE", "/var/cache/profrun")) / "standin").glob("*.tar"))
    if os.geteuid() != 0 or not kept:
        missing("root, or the stand-in base in $PROFRUN_CACHE (`scripts/standin-base`)")
    base.mkdir()
    engines = Engines(base)
    engines.start()
    try:
        engines.load(kept[-1])
        yield engines
    finally:
        engines.stop()
