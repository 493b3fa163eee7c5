"""Progress of a run on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profrun.contract.units import elapsed_text, time_text
from profrun.errors import InputError
from profrun.plans.model import Plan, Trial
from profrun.store.documents import read_exit, read_steps
from profrun.store.events import NEVER_STARTED, Event
from profrun.store.files import read_json
from profrun.store.runs import Run

if TYPE_CHECKING:
    from rich.live import Live


_PHASES = {
    "preflight": "checking the machine",
    "app": "running",
    "finalise": "the profiler writes its files",
    "export": "exporting",
}
"""Phase of the wrapper -> what the live line says."""


def trial_label(trial: Trial) -> str:
    """Variant, collector, blocking and repeat of a trial, as every line shows them."""
    blocking = ", blocking" if trial.blocking else ""
    return f"{trial.variant}, {trial.collector}{blocking}, repeat {trial.repeat}"


class Progress:
    """Shows what ``drive`` reports. Use as a context manager.

    Args:
        live: draw one line that changes (a terminal); else whole lines only.
    """

    def __init__(self, run: Run, plan: Plan, *, live: bool | None = None, quiet: bool = False) -> None:
        self.run = run
        self.trials: Mapping[str, Trial] = {trial.id: trial for trial in plan.trials}
        self.quiet = quiet
        self._live_wanted = sys.stderr.isatty() if live is None else live
        self._live: Live | None = None
        self._started: dict[str, float] = {}
        self._begin = time.monotonic()
        self._ended = 0

    def __enter__(self) -> Progress:
        if self._live_wanted and not self.quiet:
            from rich.console import Console
            from rich.live import Live
            from rich.text import Text

            self._live = Live(
                Text(""),
                console=Console(stderr=True, highlight=False),
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def event(self, event: Event) -> None:
        """Print the line of an event that was written to the log."""
        text = self._line(event)
        if text:
            self.note(text)

    def note(self, text: str) -> None:
        """Print a whole line, above the live line if there is one."""
        if self.quiet:
            return
        if self._live is not None:
            self._live.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def tick(self, active: Sequence[str]) -> None:
        """Redraw the live line."""
        if self._live is None or not active:
            return
        from rich.text import Text

        self._live.update(Text(self.live_text(active, self._live.console.width - 1), no_wrap=True))

    def live_text(self, active: Sequence[str], width: int) -> str:
        """The live line: trial i of n, what it is, what it does now, for how long; cut to ``width``."""
        first = active[0]
        elapsed = elapsed_text(time.monotonic() - self._started.get(first, self._begin))
        more = f" (+{len(active) - 1} more)" if len(active) > 1 else ""
        doing = self._doing(first)
        line = f"[{self._number(first)}] {trial_label(self.trials[first])}{more}: {doing}, {elapsed}"
        return line if len(line) <= width else line[: width - 3] + "..."

    def _number(self, trial_id: str) -> str:
        return f"{self.trials[trial_id].index + 1}/{len(self.trials)}"

    def _doing(self, trial_id: str) -> str:
        """What the trial does now, by the files it has written so far."""
        trial = self.run.trial(trial_id)
        if trial.cancel.exists():
            return "ending"
        if read_exit(trial) is not None:
            return "making the trace"
        try:
            phase = (read_json(trial.phase) or {}).get("phase")
        except InputError:  # an older wrapper was just writing the file
            phase = None
        return _PHASES.get(str(phase), "running")

    def _line(self, event: Event) -> str | None:
        """An event as one line; None for an event that is not shown."""
        kind, trial_id = event["event"], event.get("trial")
        if trial_id is not None and kind in ("queued", "started"):
            self._started.setdefault(trial_id, time.monotonic())
            if kind == "started" and self._live is None:
                return f"[{self._number(trial_id)}] {trial_label(self.trials[trial_id])}: started"
        if trial_id is not None and kind == "finished":
            if event.get("code") == NEVER_STARTED:
                return None  # maybe hundreds at once; the command prints the reason at its end
            return self._finished(event, trial_id)
        if kind == "error":
            return f"  {trial_id}: no trace: {event.get('message')}"
        if kind == "resumed":
            return (
                f"resuming {self.run.name}: {event.get('kept', 0)} of {len(self.trials)} trials are finished"
            )
        if kind == "cancelled":
            if event.get("grace_s"):
                by = event.get("by")
                return f"ending after {by}: the profilers write their files; a second time kills at once"
            return f"killing after {event.get('by')}"
        return None

    def _finished(self, event: Mapping[str, Any], trial_id: str) -> str:
        elapsed = elapsed_text(time.monotonic() - self._started.get(trial_id, self._begin))
        text = f"[{self._number(trial_id)}] {trial_label(self.trials[trial_id])}: {event['state']}, {elapsed}"
        steps = read_steps(self.run.trial(trial_id))
        if steps.median_ns is not None:
            text += f", step {time_text(steps.median_ns)}"
        if event["state"] != "finished":
            code = event.get("exit_code")
            text += f" (exit code {code})" if code else ""
            text += f": {event['reason']}" if event.get("reason") else ""
        return text
