"""When a program is run a second time, recorded as a whole: a pure decision."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.command import Command, Ranges
from profrun.contract.exit import Artefact
from profrun.contract.paths import TrialPaths
from profrun.contract.provenance import Process, TorchVersion
from profrun.contract.recording import Rank
from profrun.contract.wrapping import Wrapped
from profrun.in_job.command_end import Outcome
from profrun.in_job.hook_errors import loaded_mark
from profrun.in_job.process_note import ProcessNote
from profrun.in_job.ranks import Ranks
from profrun.in_job.second_run import FirstRun, clear, second_run

NOTE = ProcessNote(Process(pid=1, steps=0), "3.11", torch=TorchVersion("2.11"))
FIRST = FirstRun(
    command=Command(
        trial="t", run="r", job="j", variant="v", collector="torch", argv=("a",), cwd="", timeout_s=60.0
    ),
    wrapped=Wrapped(("a",), hook="in_process", emitter="in_process"),
    outcome=Outcome(status=0, app_s=20.0),
    notes=(NOTE,),
    artefacts=(Artefact("raw/rank0/*.gz", 0, "missing"),),
    critical=False,
)
MADE_STEPS = dataclasses.replace(NOTE, process=Process(pid=1, steps=9))
RECORDED = (Artefact("raw/rank0/a.nsys-rep", 9, "whole"),)


@pytest.mark.parametrize(
    ("changed", "again", "why"),
    [
        ({}, True, "the recording never began"),
        ({"outcome": Outcome(status=0, app_s=31.0)}, False, "29 s of the time limit are left"),
        ({"outcome": Outcome(status=256, app_s=20.0)}, False, None),
        ({"outcome": Outcome(status=0, stopped_by="SIGTERM")}, False, None),
        ({"notes": (MADE_STEPS,)}, False, None),
        ({"notes": (dataclasses.replace(NOTE, torch=None),)}, False, None),
        ({"notes": (), "wrapped": Wrapped(("a",), hook="cuda", emitter="nvtx")}, True, "never began"),
        ({"artefacts": RECORDED}, False, None),
        ({"artefacts": RECORDED, "wrapped": Wrapped(("a",), hook="roctx", emitter="roctx")}, True, "began"),
        ({"wrapped": Wrapped(("a",), hook="none")}, False, None),
        ({"critical": True}, False, None),
        ({"command": dataclasses.replace(FIRST.command, ranges=Ranges(steps="off"))}, False, None),
    ],
)
def test_it_runs_again_only_where_that_helps_and_there_is_time(
    changed: dict[str, Any], again: bool, why: str | None, tmp_path: Path
) -> None:
    ranks = Ranks(TrialPaths(tmp_path), Rank())
    decided, finding = second_run(dataclasses.replace(FIRST, **changed), ranks)
    assert decided is again
    assert (finding is None) if why is None else (why in str(finding))


def test_ranks_with_a_wrapper_each_cannot_agree_on_it(tmp_path: Path) -> None:
    decided, finding = second_run(FIRST, Ranks(TrialPaths(tmp_path), Rank(1, 1, 2)))
    assert not decided
    assert "set ranges.steps: off" in str(finding)


def test_nothing_of_the_first_run_is_taken_for_the_second(tmp_path: Path) -> None:
    """Neither what its processes noted, nor that they loaded the hook."""
    ranks = Ranks(TrialPaths(tmp_path), Rank())
    ranks.prepare()
    ranks.paths.hook.mkdir()
    orders = ranks.paths.hook / "config.rank0.0.json"
    left = (orders, ranks.paths.hook / "process.1.json", Path(loaded_mark(str(orders))), ranks.raw / "x")
    for path in left:
        path.touch()
    clear(ranks)
    assert [path.exists() for path in left] == [True, False, False, False]
    assert ranks.raw.is_dir()
