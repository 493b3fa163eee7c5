"""From the end of a command to the end of a trial; nothing is decided by the wording of a message."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from profrun.contract.exit import Artefact
from profrun.contract.finding import Finding
from profrun.in_job import outcome
from profrun.in_job.command_end import Outcome

MISSING = (Artefact("raw/rank0/*.nsys-rep", 0, "missing"),)


def judge(result: Outcome, **more: Any) -> outcome.Verdict:
    return outcome.judge(result, outcome.Facts(**{"limit": 10.0, "how": "module", **more}))[0]


def test_verdicts() -> None:
    assert judge(Outcome(status=0)).state == "finished"
    assert judge(Outcome(status=3 << 8)).exit_code == 3
    assert judge(Outcome(status=signal.SIGKILL, memory="group")).reason == (
        "the program was killed: it ran out of memory (the kernel killed a process of its container or job "
        "for that)"
    )
    under_nsys = judge(Outcome(status=139 << 8), tool="nsys")
    assert (under_nsys.exit_code, under_nsys.signal) == (None, signal.SIGSEGV)
    assert judge(Outcome(status=139 << 8)).exit_code == 139, "a shell's own 139 stays what it is"
    lost = judge(Outcome(status=0), tool="nsys", artefacts=MISSING, tool_says="no window")
    assert (lost.state, lost.reason, lost.wrapper_code) == ("failed", "no window", 1)
    limit = judge(Outcome(status=signal.SIGTERM, stopped_by="limit"))
    assert (limit.state, limit.wrapper_code) == ("timeout", 124)
    assert judge(Outcome(status=0, stopped_by="SIGTERM"), cancelled=True).state == "cancelled"
    assert judge(Outcome(status=0, stopped_by="SIGURG")).state == "timeout"


@pytest.mark.parametrize(
    ("by", "facts", "code", "reason"),
    [
        ("SIGURG", {"cancelled": True}, "cancelled", "it was cancelled; recorded data was kept"),
        ("SIGINT", {}, "cancelled", "it was cancelled; recorded data was kept"),
        (
            "SIGURG",
            {"cancelled": True, "artefacts": MISSING},
            "cancelled-without-data",
            "it was cancelled; nothing was recorded (raw/rank0/*.nsys-rep)",
        ),
        ("limit", {}, "time-limit", "the time limit of 10 s was reached; recorded data was kept; set"),
        (
            "SIGURG",
            {"batch_system": "Slurm"},
            "ended-from-outside",
            "Slurm announced the end of the job's time",
        ),
        (
            "SIGTERM",
            {"batch_system": "Slurm"},
            "ended-from-outside",
            "Slurm ended the job (its time was over",
        ),
        (
            "SIGTERM",
            {},
            "ended-from-outside",
            "another program ended the trial (a service manager or `kill`)",
        ),
    ],
)
def test_people_read_who_ended_a_trial_and_no_signal(
    by: str, facts: dict[str, Any], code: str, reason: str
) -> None:
    found = judge(Outcome(status=0, stopped_by=by), **facts)
    assert found.code == code
    assert str(found.reason).startswith(reason)
    assert "SIG" not in str(found.reason)


@pytest.mark.parametrize(
    ("warnings", "how", "code", "reason"),
    [
        ([Finding("schedule-too-long", "critical", "W", fix="F")], 5, "schedule-too-long", "W; F"),
        ([Finding("ranges-lost", "warning", "A"), Finding("other", "critical", "W")], 5, "other", "W"),
        ([Finding("hook-failed", "critical", "W")], 0, "hook-failed", "W"),
        ([Finding("ranges-lost", "warning", "A")], "none", "no-steps", "no step was seen: no optimizer"),
    ],
)
def test_why_nothing_was_recorded_goes_by_codes(
    warnings: list[Finding], how: str, code: str, reason: str
) -> None:
    found = judge(Outcome(status=0), artefacts=MISSING, how=how, windowed=True, warnings=warnings)
    assert (found.state, found.code, found.wrapper_code) == ("failed", code, 1)
    assert str(found.reason).startswith(f"nothing was recorded: {reason}")
    silent = judge(Outcome(status=0), artefacts=MISSING)
    assert silent.reason == "the collector left no raw/rank0/*.nsys-rep; see stderr.log"


def test_what_did_not_decide_is_told_and_nothing_that_was_given_is_changed() -> None:
    given = [Finding("ranges-lost", "warning", "W")]
    facts = outcome.Facts(
        artefacts=(Artefact("raw/rank0/a.qdstrm", 7, "truncated"),),
        warnings=given,
        tool_says="T",
    )
    result = Outcome(status=0, strays=["sleep 9"], lost_output=3)
    result.killed.append(Finding("killed", "warning", "the program was killed"))
    verdict, told = outcome.judge(result, facts)
    assert (verdict.state, verdict.code) == ("finished", None)
    assert [finding.code for finding in told] == [
        "killed",
        "processes-left",
        "output-lost",
        "files-unfinished",
        "no-steps",
        "profiler-says",
    ]
    assert [finding.code for finding in result.killed] == ["killed"]
    assert given == [Finding("ranges-lost", "warning", "W")]


@pytest.mark.parametrize(
    ("artefacts", "steps", "said"),
    [
        (MISSING, 4, "the times of 4 steps were kept; nothing was recorded (raw/rank0/*.nsys-rep)"),
        ((), 0, "no step was timed; the recording was kept"),
    ],
)
@pytest.mark.parametrize("by", [None, "profiler"])
def test_a_profiler_that_died_is_not_taken_for_the_program(
    by: str | None, artefacts: tuple[Artefact, ...], steps: int, said: str
) -> None:
    dead = Outcome(status=signal.SIGKILL, stopped_by=by, broken="it was killed: it did nothing")
    verdict = judge(dead, tool="nsys", artefacts=artefacts, steps=steps)
    assert (verdict.state, verdict.code, verdict.signal) == ("failed", outcome.PROFILER_DIED, None)
    assert verdict.reason == f"the profiler nsys did not end well: it was killed: it did nothing; {said}"


def test_a_wish_to_end_counts_more_than_what_became_of_the_profiler() -> None:
    asked = Outcome(status=signal.SIGKILL, stopped_by="SIGTERM", broken="it was killed: it did nothing")
    assert judge(asked, tool="nsys").state == "timeout"


@pytest.mark.parametrize(
    ("result", "artefacts", "code"),
    [
        (Outcome(status=1 << 8), (), "disk-full"),
        (Outcome(status=0), MISSING, "disk-full"),
        (Outcome(status=9), (), "disk-full"),
        (Outcome(status=0), (), None),
        (Outcome(status=15, stopped_by="limit"), (), "time-limit"),
    ],
)
def test_a_failure_on_a_full_disk_is_that_of_the_disk(
    result: Outcome, artefacts: tuple[Artefact, ...], code: str | None
) -> None:
    verdict, _ = outcome.judge(result, outcome.Facts(limit=5, artefacts=artefacts, disk_full=True))
    assert verdict.code == code
    if code == "disk-full":
        assert str(verdict.reason).startswith("the disk of the trial's folder is full; the ")


def test_output_that_was_not_kept_is_told() -> None:
    _, told = outcome.judge(Outcome(status=0, missing_output=5), outcome.Facts(how="explicit"))
    assert [finding.code for finding in told] == ["output-cut"]
    assert str(told[0]).startswith("5 bytes in the middle of the program's output were not kept: ")
