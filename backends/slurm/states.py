"""States and reasons of Slurm, and what they mean for a trial. Pure.

States are those of ``man squeue`` (JOB STATE CODES) and ``man sacct``. COMPLETED means only that the batch
script ended with 0; without the wrapper's ``exit.json`` that the trial is ``lost``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profrun.contract.states import WAITS_TURN, Status, TrialState

LIVING: Mapping[str, TrialState] = {
    "PENDING": "queued",
    "CONFIGURING": "queued",
    "REQUEUED": "queued",
    "REQUEUE_FED": "queued",
    "REQUEUE_HOLD": "queued",
    "SPECIAL_EXIT": "queued",
    "RESV_DEL_HOLD": "queued",
    "RUNNING": "running",
    "SUSPENDED": "running",
    "STOPPED": "running",
    "RESIZING": "running",
    "SIGNALING": "running",
    "COMPLETING": "finalising",
    "STAGE_OUT": "finalising",
}
"""States in which it may still do something."""

ENDED: Mapping[str, TrialState] = {
    "COMPLETED": "lost",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "FAILED": "failed",
    "NODE_FAIL": "failed",
    "BOOT_FAIL": "failed",
    "LAUNCH_FAILED": "failed",
    "RECONFIG_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "PREEMPTED": "failed",
    "REVOKED": "lost",
}
"""States after which nothing comes, for trials whose wrapper left no ``exit.json``."""

NEVER = {
    "DependencyNeverSatisfied": "what it depends on failed",
    "BadConstraints": "no node has what it asks for",
    "InvalidAccount": "the account may not use this partition",
    "InvalidQOS": "the quality of service does not exist or may not be used",
}
"""Reasons for which waiting makes no sense, in words: the trial is given up."""

WAITS = {
    "Resources": "it waits until enough nodes, GPUs and memory are free",
    "Priority": "jobs of a higher priority are before it",
    "PartitionNodeLimit": "it asks for more nodes than the partition allows, or its nodes are down",
    "PartitionTimeLimit": "it asks for more time than the partition allows; lower `cluster.time`,"
    " or set `cluster.allocation: each`",
    "PartitionDown": "the partition is down; `sinfo` shows its state",
    "PartitionInactive": "the partition is inactive; `sinfo` shows its state",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved; `sinfo -R` says why",
    "Nodes required for job are DOWN": "the nodes that it needs are down or drained; `sinfo -R` says why",
    "NodeDown": "a node that it needs is down; `sinfo -R` says why",
    "Reservation": "its reservation has not begun",
    "Licenses": "it waits for a licence",
    "BeginTime": "its earliest time to start has not come",
    "Dependency": "it waits for a job that it depends on",
    "FrontEndDown": "no front end node is there",
    "Assoc": "a limit of the account or user is reached; `sacctmgr show assoc` shows it",
    "QOS": "a limit of the quality of service is reached; `sacctmgr show qos` shows it",
    "MaxJobs": "a limit of jobs is reached",
}
"""Beginnings of reasons that may pass, in words; the first that fits is taken."""

TURN = "JobArrayTaskLimit"
"""The reason of a task that waits for others of its array, as ``cluster.parallel`` has it."""

HELD = {
    "JobHeldUser": "held by the user: `scontrol release` lets it go",
    "JobHeldAdmin": "held by an administrator: ask them",
    "launch failed requeued held": "requeued and held after a failed launch: `scontrol release` tries again",
}


@dataclass(frozen=True)
class Row:
    """One array task as squeue or sacct tells it."""

    state: str
    reason: str | None = None
    exit_code: str | None = None


def parse_squeue(text: str) -> dict[str, Row]:
    """``squeue -h -r -t all -o '%i|%T|%r'``: one line a task, id ``<job>_<index>``."""
    found = {}
    for line in text.splitlines():
        parts = line.strip().split("|", 2)
        if len(parts) == 3:
            reason = parts[2].strip()
            found[parts[0].strip()] = Row(parts[1].strip(), None if reason in ("", "None") else reason)
    return found


def parse_sacct(text: str) -> dict[str, Row]:
    """``sacct -X -n -P -o JobID,State,ExitCode``; 'CANCELLED by 0' is cut to its first word."""
    found = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) == 3 and parts[1]:
            found[parts[0]] = Row(parts[1].split()[0].rstrip("+"), None, parts[2] or None)
    return found


def living_status(row: Row) -> Status | None:
    """What a row means while the task may still act; None when it has ended."""
    state = LIVING.get(row.state)
    if state is None:
        return None
    if row.state == "SUSPENDED":
        return Status(state, "suspended by Slurm")
    if state != "queued":
        return Status(state)
    if row.reason in NEVER:
        return Status("failed", f"Slurm will never start it: {row.reason} ({NEVER[row.reason]})")
    if row.reason == TURN:
        return Status(state, "its turn comes after other trials of this run", code=WAITS_TURN)
    words = HELD.get(row.reason or "") or _words(row.reason or "")
    return Status(state, f"{row.reason}: {words}" if words else row.reason)


def _words(reason: str) -> str | None:
    """What a reason means that may pass; None where Slurm's word is all that is known."""
    return next((words for begin, words in WAITS.items() if reason.startswith(begin)), None)


def ended_status(row: Row, last_line: str | None) -> Status:
    """The state of a trial whose task has ended without ``exit.json``. It is never ``finished``.

    Args:
        last_line: of the task's own log, where srun and the batch script write.
    """
    state = ENDED.get(row.state, "lost")
    reason = f"Slurm says {row.state}"
    if row.exit_code and row.exit_code != "0:0":
        reason += f" (exit code {row.exit_code})"
    reason += " and the wrapper left no exit.json"
    if last_line:
        reason += f"; the last line of its log: {last_line}"
    return Status(state, reason)
