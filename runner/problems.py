"""What is wrong with a run: trials that did not finish, traces that could not be made, warnings."""

from __future__ import annotations

from dataclasses import dataclass

from profrun.contract.change_findings import APPLIED
from profrun.contract.profilers import UnknownProfilerError, profiler
from profrun.store.files import last_line
from profrun.store.run_result import read_findings
from profrun.store.state import RunState, TrialRecord


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        text: one sentence.
        trials: ids of the trials that it is about; empty when it is about the whole run.
    """

    text: str
    trials: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The sentence, with the first trial that it is about and how many more there are."""
        if not self.trials:
            return self.text
        more = f" and {len(self.trials) - 1} more" if len(self.trials) > 1 else ""
        return f"{self.trials[0]}{more}: {self.text}"


def problems_of(state: RunState) -> list[Problem]:
    """Everything that is wrong with a run; the same sentence about several trials stands once."""
    told: dict[str, list[str]] = {}
    for record in state.trials:
        for text in _of_trial(record):
            told.setdefault(text, []).append(record.id)
    found = [Problem(text, tuple(trials)) for text, trials in told.items()]
    found += [Problem(note) for note in state.notes]
    damaged = read_findings(state.run)[1]
    return [*found, Problem(damaged)] if damaged else found


def _of_trial(record: TrialRecord) -> list[str]:
    found = []
    if not record.ended and record.reason:  # for one: why a scheduler does not start it
        found.append(f"{record.state}: {record.reason}")
    if (
        record.ended and record.state not in ("finished", "skipped") and record.code != "cancelled"
    ):  # the run's end says so
        found.append(f"{record.state}: {reason_of(record)}")
    if record.normalise_error:
        found.append(f"no trace: {record.normalise_error}")
    if record.state == "finished":
        wrong = [str(one) for one in record.warnings if one.code != APPLIED]  # that was asked for
        found += wrong or _no_steps(record)
    return found


def reason_of(record: TrialRecord) -> str:
    """Why a trial did not finish, with the last line that its program ended with."""
    reason = record.reason or f"exit code {record.exit_code}"
    last = last_line(record.paths.stderr, but=_log_lines(record)) if record.state != "cancelled" else None
    return f"{reason}; it ended with: {last}" if last and last not in reason else reason


def _log_lines(record: TrialRecord) -> str | None:
    """What the lines of its profiler begin with, which are not the program's last words."""
    try:
        return None if record.profiler is None else profiler(record.profiler).log_lines
    except (UnknownProfilerError, ImportError):  # of a package that is not installed here
        return None


def _no_steps(record: TrialRecord) -> list[str]:
    """What to say of a trial that measured nothing, where the wrapper said nothing."""
    if record.steps.median_ns is not None:
        return []
    if record.steps.count == 0:
        return ["no step was seen: call profrun.step() once an iteration, or use an optimizer or nn.Module"]
    count = record.steps.count
    return [f"it made {count} steps, none in the schedule's window: make it longer or the schedule shorter"]
