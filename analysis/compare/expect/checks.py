"""Checking the guesses of a job on a trace: which guesses are about it, and what each kind of guess asks.

``check_trace`` is given a trace and expectations and returns a ``Check`` per guess that is about the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.expect import kernels, names, times
from profrun.analysis.compare.expect.evidence import Evidence
from profrun.analysis.compare.expect.model import Answer, Check
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.contract.profilers import NEUTRAL, become
from profrun.jobs.expectation import Expectation

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Guess:
    """A kind of guess, by its key in the job.

    Attributes:
        answer: does the value of the guess hold on a trace?
        words: the guess in words, from its value.
        relies_on: number that it rests on, as quality findings name it; a withheld one proves nothing.
        on_gpu: it is about GPU work. A trace without a GPU cannot tell, unless the expectation is about runs
            without one.
    """

    answer: Callable[[Evidence, Any], Answer]
    words: Callable[[Any], str]
    relies_on: str = ""
    on_gpu: bool = False


def _count(limits: tuple[int, int]) -> str:
    low, high = limits
    return f"{low} kernels per step" if low == high else f"{low} to {high} kernels per step"


def _shares(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{name} at most {100 * share:g} % of GPU time" for name, share in limits.items())


_GUESSES: Mapping[str, Guess] = {
    "kernels_per_step": Guess(kernels.kernels_per_step, _count, "steps.kernels", on_gpu=True),
    "present": Guess(names.present, lambda globs: f"{', '.join(globs)} present in every step"),
    "absent": Guess(names.absent, lambda globs: f"no {', '.join(globs)}"),
    "fused": Guess(
        kernels.fused, lambda globs: f"{', '.join(globs)} not as kernels of their own", on_gpu=True
    ),
    "dtype": Guess(kernels.dtype, lambda wanted: f"matrix kernels in {wanted}", on_gpu=True),
    "max_share": Guess(kernels.max_share, _shares, "kernels", on_gpu=True),
    "no_sync_in_step": Guess(times.no_sync_in_step, lambda wanted: "no waiting for the GPU inside a step"),
    "step_ms": Guess(times.step_ms, lambda limit: f"median step below {limit} ms", "steps.dur_ns"),
    "bound": Guess(times.bound, lambda wanted: f"bound by {wanted}", "devices.utilization", on_gpu=True),
}


def applies(expectation: Expectation, *, variant: str | None, vendor: str, collector: str, tool: str) -> bool:
    """Is this expectation about a trial of this variant, vendor and collector?

    Args:
        collector: as the job of the trial names it. Where that is the tool itself, an expectation about
            ``timeline`` or ``counters`` means the tool that these are for the vendor.
        tool: the profiler that recorded the trial, or ``none``.
    """
    wanted = expectation.collector
    if wanted in NEUTRAL and collector == tool:
        profiler = become(wanted, vendor)
        wanted = profiler.name if profiler else wanted
    return (
        expectation.selects(variant)
        and (expectation.vendor is None or expectation.vendor == vendor)
        and (wanted is None or wanted == collector)
    )


def check_trace(
    trace: Trace, expectations: Sequence[Expectation], *, trial: ComparedTrial | None = None
) -> list[Check]:
    """Check every expectation that is about this trace.

    Args:
        trial: the trace reduced already, to save the work.
    """
    job = trace.meta.get("job") or {}
    tool, vendor = str(trace.meta.get("collector")), str(trace.meta.get("vendor"))
    collector = str(job.get("collector") or tool)
    mine = [
        (number, one)
        for number, one in enumerate(expectations)
        if applies(one, variant=job.get("variant"), vendor=vendor, collector=collector, tool=tool)
    ]
    if not mine:
        return []
    evidence = Evidence(trace, trial or read_trial(trace))
    hidden = withheld(data_quality(trace))
    found = []
    for number, one in mine:
        variant = ", ".join(one.variant) if one.variant else None
        for key, value in one.checks.items():
            if key == "no_sync_in_step" and not value:
                continue  # false asks for nothing
            passed, text = _answer(evidence, key, value, hidden, without_gpu=one.vendor == "none")
            label = evidence.trial.conditions.label
            found.append(Check(number, key, expected_text(key, value), passed, text, label, variant))
    return found


def expected_text(key: str, value: Any) -> str:
    """A guess in words.

    Args:
        key: of the guess, as the job writes it. value: as ``jobs.model.Expectation.checks`` holds it.
    """
    return _GUESSES[key].words(value) if key in _GUESSES else f"{key}: {value}"


def _answer(evidence: Evidence, key: str, value: Any, hidden: frozenset[str], *, without_gpu: bool) -> Answer:
    """Does the guess hold? None where the trace cannot tell.

    Args:
        hidden: names of numbers that are withheld. without_gpu: the expectation is about runs without a GPU.
    """
    if key not in _GUESSES:
        return None, "not judged yet"
    guess, trial = _GUESSES[key], evidence.trial
    if not trial.conditions.profiled and key != "step_ms":
        return None, "an unprofiled trial has only step times"
    no_gpu = not trial.kernel_groups and not trial.conditions.total_gpu_ns
    if guess.on_gpu and no_gpu and not without_gpu:
        return None, "no GPU work in this trace"
    if guess.relies_on in hidden or guess.relies_on.split(".")[0] in hidden:
        return None, f"{guess.relies_on} cannot be trusted in this trace; see `profrun summary`"
    return guess.answer(evidence, value)
