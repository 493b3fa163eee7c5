"""What a report and its tabs are called."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.contract.units import time_range_text, time_text
from profrun.store.run_answer import VariantAnswer

MAKERS = ("NVIDIA ", "AMD ", "Instinct ")
"""Words in front of the model in the name of a GPU."""


def run_title(job: str, answers: Sequence[VariantAnswer]) -> str:
    """The title of a run's report: "hf on H200: 22.6 ms", or "hf on H200: 15.5 to 22.3 ms (2 variants)".

    Args:
        job: name of the job.
        answers: of each variant; empty before the end of the run.
    """
    gpus = dict.fromkeys(_model(name) for answer in answers for name in answer.gpus)
    what = f"{job} on {', '.join(gpus)}" if gpus else job
    times = sorted(answer.step.ns for answer in answers if answer.step is not None)
    if not times:
        return what
    several = f" ({len(answers)} variants)" if len(answers) > 1 else ""
    if time_text(times[0]) == time_text(times[-1]):
        return f"{what}: {time_text(times[0])}{several}"
    return f"{what}: {time_range_text(times[0], times[-1])}{several}"


def tab_name(variant: str, collector: str, *, blocking: bool = False, named: bool = True) -> str:
    """The name of a trial's tab: "baseline, torch", and "torch" where the run has one variant (not
    ``named``)."""
    parts = [variant] if named else []
    return ", ".join([*parts, collector, *(["blocking"] if blocking else [])])


def _model(name: str) -> str:
    """ "H200" of "NVIDIA H200"."""
    for maker in MAKERS:
        name = name.removeprefix(maker)
    return name
