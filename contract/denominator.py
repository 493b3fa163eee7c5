"""What the numbers of a trace or a trial are of, and the words for it: ``Denominator``.

Most programs have steps, and a number is then "per step". A program without steps is one run, and its numbers
are "of the run" (``StepsFile.how`` is ``run``). A trace that tells neither counts as one recording. Whoever
shows a number asks the denominator of its trace or trial for the words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .units import counted, time_text


@dataclass(frozen=True)
class Denominator:
    """What a number is of; in JSON ``{"of": "run", "cut_ns": null}``.

    Attributes:
        of: ``step``: a mean over steps. ``run``: the run of a program without steps, from the end of the
            import of its GPU framework to its end. ``recording``: all that was recorded, because nothing in
            the trace is a step or a run.
        cut_ns: of a run whose recording ended before it: how much of it was recorded, ns; else None.
    """

    of: Literal["step", "run", "recording"] = "step"
    cut_ns: int | None = None

    @property
    def several(self) -> bool:
        """Whether there may be several: medians, spreads and outliers mean something."""
        return self.of == "step"

    @property
    def per(self) -> str:
        """What follows a time or a count: 'per step', 'of the run'."""
        return "per step" if self.several else f"of {self.the}"

    def per_work(self, work: str | None) -> str:
        """What follows a time that may be divided by an amount of work: 'per token'; else as ``per``."""
        return f"per {work}" if work else self.per

    @property
    def rate(self) -> str:
        """What follows a number of things: 'per step', 'in the run'."""
        return "per step" if self.several else f"in {self.the}"

    @property
    def the(self) -> str:
        """One of them that is known: 'the step', 'the run'."""
        return f"the {self._cut}{self.of}"

    @property
    def whole(self) -> str:
        """The same, where it counts as one step: 'the whole run'."""
        return self.the if self._cut else f"the whole {self.of}"

    @property
    def one(self) -> str:
        """The same as the subject of a sentence that is true of any: 'a step', 'the run'."""
        return "a step" if self.several else self.the

    @property
    def every(self) -> str:
        """All of them: 'the steps', 'the run'."""
        return "the steps" if self.several else self.the

    @property
    def its(self) -> str:
        """The same of one GPU or rank: 'its steps', 'the run'."""
        return "its steps" if self.several else self.the

    @property
    def recorded(self) -> str:
        """One of them under a profiler: 'the recorded step', 'the recorded run'."""
        return self.the if self._cut or self.of == "recording" else f"the recorded {self.of}"

    @property
    def title(self) -> str:
        """A title before its time: 'step', 'run', 'first 10 s of the run'."""
        return f"{self._cut}{self.of}"

    @property
    def time(self) -> str:
        """How long one takes: 'step time', 'run time'."""
        return f"{self.of} time"

    def counted(self, number: int) -> str:
        """So many of them: '7 steps', '1 run'."""
        return counted(number, self.of)

    @property
    def _cut(self) -> str:
        return "" if self.cut_ns is None else f"first {time_text(self.cut_ns)} of the "


STEP = Denominator("step")
RUN = Denominator("run")
RECORDING = Denominator("recording")


NO_STEPS = "no steps were found, so the whole run counts as one"
"""Why the numbers of a run are not per step."""
SET_UP_INCLUDED = "numbers are of the whole run, set-up included: no steps were found"
"""The same with what that means."""


def found_by(how: str | None) -> Denominator:
    """The denominator of a trial, from how its steps were found (``StepsFile.how``)."""
    return RUN if how == "run" else STEP
