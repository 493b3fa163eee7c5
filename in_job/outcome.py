"""From how a command ended to the end of a trial: ``judge``, a pure function."""

from __future__ import annotations

import re
import signal as signals
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..contract.ends import DISK_FULL, died_text, stopped_text
from ..contract.finding import Finding
from . import hook_errors
from .rank_answers import ENDED_WITH_RANK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..contract.exit import Artefact, ArtefactState, EndState
    from ..contract.steps import StepSign
    from .command_end import Outcome

_DEADLY = {
    128 + int(number): int(number)
    for number in (
        signals.SIGILL,
        signals.SIGABRT,
        signals.SIGBUS,
        signals.SIGFPE,
        signals.SIGKILL,
        signals.SIGSEGV,
        signals.SIGTERM,
    )
}
_PYTHON_REASONS = (
    "ModuleNotFoundError",
    "ImportError",
    "SyntaxError",
    "FileNotFoundError",
    "OutOfMemoryError",
)
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")


PROFILER_DIED = "profiler-died"
"""Code of a trial whose profiler died, or had to be killed after the program had ended."""


@dataclass(frozen=True)
class Verdict:
    """How a trial ended.

    Attributes:
        state: finished, failed, timeout or cancelled.
        exit_code: of the user's command; None when it has none.
        signal: number of the signal that killed it, else None.
        code, reason: why it did not finish, for programs and for people; None when it did.
        wrapper_code: what run.py exits with.
    """

    state: EndState
    exit_code: int | None = None
    signal: int | None = None
    code: str | None = None
    reason: str | None = None
    wrapper_code: int = 0

    @property
    def signal_name(self) -> str | None:
        """Like SIGTERM."""
        return None if self.signal is None else signals.Signals(self.signal).name


@dataclass(frozen=True)
class Facts:
    """What is known of a trial beside how its command ended.

    Attributes:
        cancelled: the file 'cancel' is there.
        limit: the time limit, seconds.
        batch_system: the batch system that runs the trial, None when there is none.
        tool: name of the profiler round the command, None when there is none.
        artefacts: the trial's files, as in exit.json.
        how: how the steps of this rank were found.
        steps: how many of them were timed.
        hooked: whether a Python process of the job loaded the hook.
        inside: the profiler's title, where it runs inside the program, by torch.
        torch: whether a process of the program imported torch.
        windowed: whether the hook was to start and stop the recording (``Wrapped.hook``).
        steps_wanted: False for ranges.steps: off.
        warnings: what the hook warned of; a critical one says why nothing was recorded.
        tool_says: the profiler's own reading of its tool's output.
        log: the end of the output.
        disk_full: the disk of the trial's folder has no room now, or had none for the output.
    """

    cancelled: bool = False
    limit: float | None = None
    batch_system: str | None = None
    tool: str | None = None
    artefacts: Sequence[Artefact] = ()
    how: StepSign = "none"
    steps: int = 0
    hooked: bool = True
    inside: str | None = None
    torch: bool = True
    windowed: bool = False
    steps_wanted: bool = True
    warnings: Sequence[Finding] = ()
    tool_says: str | None = None
    log: str = ""
    disk_full: bool = False

    def paths(self, state: ArtefactState) -> list[str]:
        """Paths of the artefacts in this state."""
        return [artefact.path for artefact in self.artefacts if artefact.state == state]


def judge(outcome: Outcome, facts: Facts) -> tuple[Verdict, list[Finding]]:
    """How the trial ended, and what is worth saying that did not decide it."""
    verdict, told = _judged(outcome, facts)
    if verdict.state == "failed" and facts.disk_full:
        reason = f"the disk of the trial's folder is full; {verdict.reason}"
        verdict = replace(verdict, code=DISK_FULL, reason=reason)
    return verdict, told


def _judged(outcome: Outcome, facts: Facts) -> tuple[Verdict, list[Finding]]:
    """The same, whatever the disk."""
    told = _told(outcome, facts)
    code, number = _codes(outcome, facts.tool)
    missing = facts.paths("missing")
    if outcome.broken is not None and outcome.stopped_by in (None, "profiler"):
        return _broken(outcome.broken, facts), told
    if outcome.stopped_by is not None:
        return _stopped(outcome.stopped_by, facts, code, number), told
    if outcome.error is not None:
        return Verdict("failed", None, None, "not-started", outcome.error, 127), told
    if number is not None:
        reason = f"the program {died_text(number, outcome.memory)}"
        return Verdict("failed", None, number, "killed-by-signal", reason, 128 + number), told
    if code != 0:
        return _failed(code, facts), told
    if missing:
        return Verdict("failed", code, None, *_no_data(missing, facts), 1), told
    if facts.tool_says is not None:
        told.append(Finding("profiler-says", "warning", facts.tool_says))
    return Verdict("finished", code), told


def _told(outcome: Outcome, facts: Facts) -> list[Finding]:
    told = [*outcome.killed, *_strays(outcome.strays)]
    if outcome.lost_output:
        what = f"{outcome.lost_output} bytes of output could not be written to the logs (disk full?)"
        told.append(Finding("output-lost", "warning", what))
    if outcome.missing_output:
        what = f"{outcome.missing_output} bytes in the middle of the program's output were not kept"
        why = "it printed more than resources.output"
        told.append(Finding("output-cut", "info", what, why, "set resources.output higher to keep all of it"))
    broken = facts.paths("truncated")
    if broken:
        what = f"unfinished files were kept: {', '.join(broken)}"
        told.append(Finding("files-unfinished", "warning", what))
    steps = _no_steps(facts)
    return [*told, *([steps] if steps is not None else [])]


def _codes(outcome: Outcome, tool: str | None) -> tuple[int | None, int | None]:
    """Exit code and signal of the user's command; profilers report a death by signal n as 128 + n."""
    code = outcome.code
    if tool is not None and code in _DEADLY:
        return None, _DEADLY[code]
    return code, outcome.signal


def _stopped(by: str, facts: Facts, code: int | None, number: int | None) -> Verdict:
    """Ended early. Without the file 'cancel' a signal from above means a time limit, SIGINT a person."""
    missing = facts.paths("missing")
    kept = "recorded data was kept" if not missing else f"nothing was recorded ({', '.join(missing)})"
    if by == "rank":
        reason = f"another rank had failed, and this one waited for it; {kept}"
        return Verdict("cancelled", code, number, ENDED_WITH_RANK, reason, 130)
    if facts.cancelled or by == "SIGINT":
        short = "cancelled-without-data" if missing else "cancelled"
        return Verdict("cancelled", code, number, short, f"it was cancelled; {kept}", 130)
    if by == "limit":
        reason = f"the time limit of {facts.limit:g} s was reached; {kept}; set resources.timeout higher"
        return Verdict("timeout", code, number, "time-limit", reason, 124)
    reason = f"{stopped_text(by, facts.batch_system)}; {kept}"
    return Verdict("timeout", code, number, "ended-from-outside", reason, 124)


def _broken(how: str, facts: Facts) -> Verdict:
    """The profiler died. How the program itself would have ended, nobody has said."""
    missing = facts.paths("missing")
    kept = f"nothing was recorded ({', '.join(missing)})" if missing else "the recording was kept"
    steps = f"the times of {facts.steps} steps were kept" if facts.steps else "no step was timed"
    reason = f"the profiler {facts.tool or ''} did not end well: {how}; {steps}; {kept}"
    return Verdict("failed", None, None, PROFILER_DIED, reason.replace("  ", " "), 1)


def _failed(code: int | None, facts: Facts) -> Verdict:
    """The exit code, and the last line of a Python traceback when there is one."""
    inside = f" (under {facts.tool})" if facts.tool else ""
    why = _traceback(facts.log) or facts.tool_says or "see stderr.log"
    reason = f"the program exited with {code}{inside}: {why}"
    return Verdict("failed", code, None, "program-failed", reason, 1 if code is None else code)


def _traceback(log: str) -> str | None:
    """The line that names the exception of a Python traceback; None when there is none."""
    for line in reversed(log.strip().splitlines()[-200:]):
        head = line.split(":")[0].strip()
        if line[:1] not in (" ", "\t") and (head.endswith(("Error", "Exception")) or head in _PYTHON_REASONS):
            return line.strip()[:300] + (_place(log) if head in _SYNTAX else "")
    return None


def _place(log: str) -> str:
    """Where a SyntaxError is: its own line does not say, the last 'File ..., line n' above it does."""
    found = re.findall(r'^  File "(.+)", line (\d+)$', log, re.MULTILINE)
    return f" ({found[-1][0]}, line {found[-1][1]})" if found else ""


def _no_steps(facts: Facts) -> Finding | None:
    if facts.how not in ("none", "run") or not facts.steps_wanted:
        return None
    if any(finding.code == hook_errors.CODE for finding in facts.warnings):
        return None  # that says more
    what = "no step was seen" if facts.how == "none" else "no step was seen: every number is of the run"
    if not facts.hooked:
        why = (
            "no Python process of the command loaded profrun's hook; it is not a Python program, it clears "
            "PYTHONPATH, or it runs python with -I, -E or -S"
        )
        return Finding("hook-not-loaded", "warning", what, why)
    return Finding(
        "no-steps",
        "info",
        what,
        "no optimizer stepped, and nothing that counts as a step was called again and again (an nn.Module, a "
        "compiled function, a CUDA graph, a DataLoader)",
        "for numbers per step call profrun.step() once per iteration",
    )


def _no_data(missing: Sequence[str], facts: Facts) -> tuple[str, str]:
    """Code and reason: the program was fine, the recording is not there."""
    critical = next((finding for finding in facts.warnings if finding.severity == "critical"), None)
    why = critical or _no_torch(facts) or (_no_steps(facts) if facts.windowed else None)
    if facts.tool_says is not None:
        return "no-data", facts.tool_says
    if why is not None:
        return why.code, f"nothing was recorded: {why}"
    return "no-data", f"the collector left no {', '.join(missing)}; see stderr.log"


def _no_torch(facts: Facts) -> Finding | None:
    """Said where a profiler that runs inside torch had no torch to run in."""
    if facts.inside is None or facts.torch or not facts.hooked:
        return None
    what = f"{facts.inside} runs inside torch, and no process of the program imports torch"
    return Finding("torch-not-imported", "critical", what, fix="use a profiler that wraps the program")


def _strays(commands: Sequence[str]) -> Iterable[Finding]:
    if commands:
        count = "1 process was" if len(commands) == 1 else f"{len(commands)} processes were"
        what = f"{count} left running after the program and had to be ended"
        yield Finding("processes-left", "warning", what, "; ".join(commands[:3]))
