"""From how a command ended to the state of a trial: a pure function."""

from __future__ import annotations

import re
import signal as signals
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .supervise import Outcome

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


@dataclass(frozen=True)
class Verdict:
    """How a trial ended. ``signal`` is a number; ``wrapper_code`` is what run.py exits with."""

    state: str
    exit_code: int | None
    signal: int | None
    reason: str | None
    wrapper_code: int


@dataclass(frozen=True)
class Facts:
    """What is known of a trial beside how its command ended.

    Attributes:
        cancelled: the file 'cancel' is there.
        limit: the time limit, seconds.
        tool: name of the profiler round the command, None when there is none.
        artefacts: rows of exit.json.
        steps: steps that the hook saw in this rank.
        hooked: whether a Python process of the job loaded the hook.
        hook: what the hook was to do (``Wrapped.hook``).
        steps_wanted: False for ranges.steps: off.
        tool_says: the collector's own reading of its tool's output.
        log: the end of the output.
    """

    cancelled: bool = False
    limit: float | None = None
    tool: str | None = None
    artefacts: Sequence[dict[str, Any]] = ()
    steps: int = 0
    hooked: bool = True
    hook: str = "none"
    steps_wanted: bool = True
    tool_says: str | None = None
    log: str = ""

    def paths(self, state: str) -> list[str]:
        """Paths of the artefacts in this state."""
        return [row["path"] for row in self.artefacts if row["state"] == state]


def judge(outcome: Outcome, facts: Facts, warnings: list[str]) -> Verdict:
    """State, exit code, signal and one sentence; adds to ``warnings`` what did not decide it."""
    _tell(outcome, facts, warnings)
    code, number = _codes(outcome, facts.tool)
    missing = facts.paths("missing")
    if outcome.stopped_by is not None:
        return _stopped(outcome, facts, code, number)
    if outcome.error is not None:
        return Verdict("failed", None, None, outcome.error, 127)
    if number is not None:
        return Verdict("failed", None, number, _died(number), 128 + number)
    if code != 0:
        return Verdict("failed", code, None, _failed(code, facts), 1 if code is None else code)
    if missing:
        return Verdict("failed", code, None, facts.tool_says or _no_data(missing, facts, warnings), 1)
    if facts.tool_says is not None:
        warnings.append(facts.tool_says)
    return Verdict("finished", code, None, None, 0)


def _tell(outcome: Outcome, facts: Facts, warnings: list[str]) -> None:
    warnings += [*outcome.killed, *_strays(outcome)]
    if outcome.lost_output:
        warnings.append(
            f"{outcome.lost_output} bytes of output could not be written to the logs (disk full?)"
        )
    broken = facts.paths("truncated")
    if broken:
        warnings.append(f"unfinished files were kept: {', '.join(broken)}")
    why = _no_steps(facts)
    if why is not None:
        warnings.append(why)


def _codes(outcome: Outcome, tool: str | None) -> tuple[int | None, int | None]:
    """Exit code and signal of the user's command; profilers report a death by signal n as 128 + n."""
    code = outcome.code
    if tool is not None and code in _DEADLY:
        return None, _DEADLY[code]
    return code, outcome.signal


def _stopped(outcome: Outcome, facts: Facts, code: int | None, number: int | None) -> Verdict:
    """Ended early. Without the file 'cancel' a signal from above means a time limit, SIGINT a person."""
    by, missing = outcome.stopped_by, facts.paths("missing")
    kept = "what was recorded is kept" if not missing else f"nothing was written ({', '.join(missing)})"
    if facts.cancelled or by == "SIGINT":
        return Verdict("cancelled", code, number, f"ended on request ({by}): {kept}", 130)
    if by == "limit":
        reason = f"the time limit of {facts.limit:g} s was reached: {kept}; set resources.timeout higher"
        return Verdict("timeout", code, number, reason, 124)
    reason = f"ended from outside by {by}, as schedulers do at their time limit: {kept}"
    return Verdict("timeout", code, number, reason, 124)


def _died(number: int) -> str:
    name = signals.Signals(number).name
    if number == signals.SIGKILL:
        return f"the program was killed ({name}): out of memory is the usual reason (dmesg, container limits)"
    return f"the program died of {name}"


def _failed(code: int | None, facts: Facts) -> str:
    """The exit code, and the last line of a Python traceback when there is one."""
    inside = f" (under {facts.tool})" if facts.tool else ""
    for line in reversed(facts.log.strip().splitlines()[-200:]):
        head = line.split(":")[0].strip()
        if line[:1] not in (" ", "\t") and (head.endswith(("Error", "Exception")) or head in _PYTHON_REASONS):
            where = _place(facts.log) if head in _SYNTAX else ""
            return f"the program exited with {code}{inside}: {line.strip()[:300]}{where}"
    if facts.tool_says is not None:
        return f"the program exited with {code}{inside}: {facts.tool_says}"
    return f"the program exited with {code}{inside}: see stderr.log"


def _place(log: str) -> str:
    """Where a SyntaxError is: its own line does not say, the last 'File ..., line n' above it does."""
    found = re.findall(r'^  File "(.+)", line (\d+)$', log, re.MULTILINE)
    return f" ({found[-1][0]}, line {found[-1][1]})" if found else ""


def _no_steps(facts: Facts) -> str | None:
    if facts.steps or not facts.steps_wanted:
        return None
    if not facts.hooked:
        return (
            "no step was seen: no Python process of the command loaded profrun's hook; it is not a Python "
            "program, it clears PYTHONPATH, or it runs python with -I, -E or -S"
        )
    return (
        "no step was seen: no optimizer stepped and no nn.Module with parameters was called (CUDA graphs and "
        "scripted code hide them); call profrun.step() once an iteration, or set ranges.steps: off"
    )


def _no_data(missing: list[str], facts: Facts, warnings: list[str]) -> str:
    """The program was fine, the recording is not there."""
    schedule = next((text for text in warnings if text.startswith("the schedule is longer")), None)
    if schedule is not None:
        return schedule
    why_no_steps = _no_steps(facts)
    if facts.hook != "none" and why_no_steps is not None:
        return f"nothing was recorded: {why_no_steps}"
    unopened = next((text for text in warnings if text.startswith("the window was never opened")), None)
    if unopened is not None:
        return f"nothing was recorded: {unopened}"
    failed = next((text for text in warnings if "hook failed" in text), None)
    return f"the collector left no {', '.join(missing)}" + (f": {failed}" if failed else "; see stderr.log")


def _strays(outcome: Outcome) -> list[str]:
    if not outcome.strays:
        return []
    shown = "; ".join(outcome.strays[:3])
    return [f"{len(outcome.strays)} processes were left running and were ended: {shown}"]
