"""Progress of a run on stderr: one line that changes on a terminal, a line at each change elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profrun.cli.asked import asked
from profrun.cli.output import colours_on
from profrun.cli.time_left import TimeLeft
from profrun.cli.trial_progress import TrialProgress, trial_label
from profrun.contract.ends import asked_text
from profrun.contract.units import elapsed_text, time_text
from profrun.plans.model import Plan, Trial
from profrun.reports.controls import visible
from profrun.reports.tones import TONES
from profrun.store.documents import median_ns, read_steps
from profrun.store.events import NEVER_STARTED, Event
from profrun.store.runs import Run
from profrun.store.state import read_state

if TYPE_CHECKING:
    from profrun.cli.live_line import LiveLine

_BAR = 10
"""Characters of the bar."""


class Progress:
    """Shows what ``drive`` reports. Use as a context manager.

    Args:
        run: the run.
        plan: its plan.
        live: draw one line that changes (a terminal); else whole lines only.
        concurrent: its trials may run at the same time, so no time left can be told.
    """

    def __init__(self, run: Run, plan: Plan, *, live: bool | None = None, concurrent: bool = False) -> None:
        self.run = run
        self.trials: Mapping[str, Trial] = {trial.id: trial for trial in plan.trials}
        self.concurrent = concurrent
        self.time_left = TimeLeft(plan.trials)
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._live_wanted = (terminal if live is None else live) and not asked().quiet
        self._live: LiveLine | None = None
        self._schedule = plan.job.schedule
        self._several = len({trial.variant for trial in plan.trials}) > 1
        self._watched: dict[str, TrialProgress] = {}
        self._steps: dict[str, int] = {}  # variant -> steps that a finished trial of it made
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._told_decided: set[tuple[str, str]] = set()

    def __enter__(self) -> Progress:
        if self._live_wanted:
            from profrun.cli.live_line import LiveLine

            self._live = LiveLine(colours=colours_on(sys.stderr))
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with _unless_closed():
                self._live.close()
            self._live = None

    def event(self, event: Event) -> None:
        """Print the line of an event that was written to the log."""
        self._remember(event)
        text = self._line(event)
        if text:
            self.note(text, tone=event.get("state") if event["event"] == "finished" else None)

    def note(self, text: str, *, tone: str | None = None) -> None:
        """Print a whole line, above the live line if there is one.

        Args:
            text: the line.
            tone: the state in it that is coloured on a terminal, if any.
        """
        if asked().quiet:
            return
        text = visible(text)
        with _unless_closed():
            if self._live is not None:
                self._live.above(text, tone if tone in TONES else None)
            else:
                print(text, file=sys.stderr, flush=True)

    def tick(self, active: Sequence[str]) -> None:
        """Redraw the live line, or print what has changed in the trials that run."""
        if not active or asked().quiet:
            return
        if self._live is not None:
            with _unless_closed():
                self._live.draw(self.live_fields(active))
            return
        for trial_id in active:
            said = self._watch(trial_id).change(self._expected(trial_id))
            if said:
                self.note(f"{self._name(trial_id)}: {said}")

    def live_fields(self, active: Sequence[str]) -> list[str]:
        """The live line in parts: bar, trial i of n, how many run, label, what it does, last step, time left.

        Args:
            active: ids of the trials that are on their way.
        """
        running = [name for name in active if not self._watch(name).queued] or list(active)
        shown = self._watch(running[0])
        expected = self._expected(running[0])
        part = 0.0 if running[0] in self._ended else shown.share(expected)
        done = (len(self._ended) + part) / len(self.trials)
        filled = min(int(done * _BAR), _BAR)
        queued = len(active) - len(running)
        number = len(self._ended) if self.concurrent else self.trials[running[0]].index + 1
        counts = [f"{len(running)} running"] if len(running) > 1 else []
        counts += [f"{queued} queued"] if queued else []
        left = None if self.concurrent else self.time_left.text(running[0])
        return [
            f"[{'#' * filled}{'-' * (_BAR - filled)}]",
            f"{number}/{len(self.trials)}",
            ", ".join(counts),
            self._label(running[0]),
            shown.doing(expected),
            shown.last_step(),
            left or "",
        ]

    def _watch(self, trial_id: str) -> TrialProgress:
        if trial_id not in self._watched:
            trial = self.trials[trial_id]
            self._watched[trial_id] = TrialProgress(self.run.trial(trial_id), trial.collector, self._schedule)
        return self._watched[trial_id]

    def _expected(self, trial_id: str) -> int | None:
        """Steps that the trial is expected to make: as many as a finished trial of its variant."""
        return self._steps.get(self.trials[trial_id].variant)

    def _label(self, trial_id: str) -> str:
        return trial_label(self.trials[trial_id], variant=self._several)

    def _name(self, trial_id: str) -> str:
        return f"[{self.trials[trial_id].index + 1}/{len(self.trials)}] {self._label(trial_id)}"

    def _remember(self, event: Event) -> None:
        """Keep what later lines need: when trials began, how long they took, how many steps they made."""
        kind, trial_id = event["event"], event.get("trial")
        if kind == "resumed":
            self._remember_before()
        if trial_id is None:
            return
        if kind in ("queued", "started", "state"):
            queued = kind == "queued" or event.get("state") == "queued"
            self._watch(trial_id).begin(queued=queued)
            self.time_left.begin(trial_id)
        if kind == "finished":
            self._ended.add(trial_id)
            if event["state"] == "finished":
                self._steps[self.trials[trial_id].variant] = read_steps(self.run.trial(trial_id)).count
        if kind == "skipped":
            self._ended.add(trial_id)
            self.time_left.end(trial_id, counts=False)
        if kind in ("finished", "normalised", "error"):
            self.time_left.end(trial_id, counts=event.get("state", "finished") == "finished")

    def _remember_before(self) -> None:
        """What had ended before this process continued the run."""
        for record in read_state(self.run).trials:
            if record.state == "skipped":
                self._ended.add(record.id)
                self.time_left.end(record.id, counts=False)
            if record.state == "finished" and record.took_ns is not None:
                self._ended.add(record.id)
                self._steps[record.variant] = record.steps.count
                self.time_left.took(record.id, record.took_ns / 1e9)

    def _line(self, event: Event) -> str | None:
        """An event as one line; None for an event that is not shown."""
        kind, trial_id = event["event"], event.get("trial")
        began = kind == "started" or (kind == "state" and event.get("state") == "running")
        if trial_id is not None and began and trial_id not in self._started:
            self._started.add(trial_id)
            return f"{self._name(trial_id)}: started" if self._live is None else None
        if trial_id is not None and kind == "finished":
            if event.get("code") == NEVER_STARTED:
                return None  # maybe hundreds at once; the command prints the reason at its end
            return self._finished(event, trial_id)
        if trial_id is not None and kind == "skipped":
            return self._decided(self.trials[trial_id].variant, str(event.get("reason")))
        if kind == "error":
            return f"  {trial_id}: no trace: {event.get('message')}"
        if kind == "resumed":
            return (
                f"resuming {self.run.name}: {event.get('kept', 0)} of {len(self.trials)} trials are finished"
            )
        if kind == "cancelled":
            return stopping_text(str(event.get("by")), now=not event.get("grace_s"))
        return None

    def _decided(self, variant: str, reason: str) -> str | None:
        """That a variant needs no further trial, said once for each reason."""
        if (variant, reason) in self._told_decided:
            return None
        self._told_decided.add((variant, reason))
        return f"{variant}: no further trial, {reason}"

    def _finished(self, event: Mapping[str, Any], trial_id: str) -> str:
        from profrun.analysis.trial_times import times_of

        text = f"{self._name(trial_id)}: {event['state']}, {elapsed_text(self._watch(trial_id).seconds)}"
        steps = read_steps(self.run.trial(trial_id))
        typical = median_ns(times_of(steps, self.trials[trial_id].collector))
        if typical is not None:
            text += f", {steps.denominator.of} {time_text(typical)}"
        if event["state"] not in ("finished", "cancelled"):
            code = event.get("exit_code")
            text += f" (exit code {code})" if code else ""
            text += f": {event['reason']}" if event.get("reason") else ""
        return text


def _unless_closed() -> contextlib.suppress:
    """Printing fails when the terminal was closed or nobody reads the pipe; the run still has to end well."""
    return contextlib.suppress(OSError)


def stopping_text(by: str, *, now: bool) -> str:
    """What a run does when somebody wants its end.

    Args:
        by: name of the signal that its driver got, or "profrun cancel".
        now: do not wait for the profilers.
    """
    if now:
        return "Stopping at once. What the profilers have not written yet is lost."
    if by == "SIGINT":
        return "Stopping; saving profiles. Press Ctrl-C again to stop at once."
    return f"{asked_text(by)}. Stopping; saving profiles."
