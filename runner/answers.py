"""The answers of a run: per variant what a step costs, where it goes, and what would help most.

The step time is that of the trials without a profiler. The rest is told by the first recording with a time
axis and without launch blocking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from profrun.analysis.step_time import side_value
from profrun.contract.line_names import Line, below, common_folder
from profrun.contract.profilers import UNPROFILED
from profrun.runner.default_comparisons import Point, has_time_axis
from profrun.runner.mapped import addresses_of
from profrun.runner.twins import step_of, unprofiled_twin
from profrun.store.documents import provenance_beside
from profrun.store.run_answer import FindingAnswer, PartAnswer, StepAnswer, UseAnswer, VariantAnswer

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.analysis.rules.diagnose import Diagnosis
    from profrun.analysis.rules.step_cost import UnprofiledStep
    from profrun.analysis.rules.step_use import StepUse
    from profrun.analysis.trace.line_table import PlaceTable
    from profrun.store.state import RunState, TrialRecord
    from profrun.traces.trace import Trace

PARTS = 3
"""Parts of the work that an answer keeps."""
LINES = 3
"""Lines of the program that an answer keeps."""


def answers(
    points: Sequence[Point],
    diagnoses: dict[str, Diagnosis],
    trials: Mapping[str, ComparedTrial],
) -> tuple[VariantAnswer, ...]:
    """The answer of each variant, in the order of the plan.

    Args:
        points: the points of the run.
        diagnoses: id of a trial -> what its recording shows, for the trials that ``told_by`` names.
        trials: id of a trial -> what comparisons take of it: they have the energy per step.
    """
    variants = dict.fromkeys(point.variant for point in points)
    found = (_answer(variant, points, diagnoses) for variant in variants)
    return tuple(replace(one, energy_j=_energy(one, points, trials)) for one in found)


def _energy(
    answer: VariantAnswer, points: Sequence[Point], trials: Mapping[str, ComparedTrial]
) -> float | None:
    """Energy per step of the trials that the step time is of; None where one of them does not tell it."""
    names = [record.id for record in _unprofiled(answer.variant, points)]
    if not names and answer.trial is not None:
        names = [answer.trial]
    found = [trials[name].energy_j for name in names if name in trials]
    known = [energy for energy in found if energy]
    return side_value([[energy] for energy in known], "mean") if known and len(known) == len(found) else None


def told_by(points: Sequence[Point]) -> dict[str, TrialRecord]:
    """Variant -> the trial whose recording tells where its time goes, for the variants that have one."""
    found: dict[str, TrialRecord] = {}
    for point in points:
        if has_time_axis(point) and not point.blocking:
            found.setdefault(point.variant, point.trials[0])
    return found


def diagnosed(trace: Trace, record: TrialRecord, state: RunState) -> Diagnosis:
    """What the recording of a trial shows; gains are of the step without a profiler where that is known."""
    from profrun.analysis.rules.diagnose import diagnosis

    assert record.trace is not None  # points hold trials with a trace only
    return diagnosis(
        trace,
        provenance=provenance_beside(record.trace),
        unprofiled=unprofiled_twin(state, record.id),
        mapped=addresses_of(trace),
    )


def _answer(variant: str, points: Sequence[Point], diagnoses: dict[str, Diagnosis]) -> VariantAnswer:
    record = told_by(points).get(variant)
    step = _step_answer(step_of(_unprofiled(variant, points)))
    found = diagnoses.get(record.id) if record is not None else None
    if record is None or found is None:
        return VariantAnswer(variant, step=step)
    if step is None:
        step = _step_answer(step_of([record]), profiled_by=record.collector)
    return answer_of(found, variant, step=step, trial=record.id)


def answer_of(
    found: Diagnosis, variant: str, *, step: StepAnswer | None = None, trial: str | None = None
) -> VariantAnswer:
    """What one recording tells first.

    Args:
        found: what the recording shows.
        variant: its variant, or what else the answer is called.
        step: the step time of the variant.
        trial: the trial that was recorded; None for a recording that belongs to no run.
    """
    cost = found.cost
    return VariantAnswer(
        variant,
        step=step,
        trial=trial,
        gpus=found.gpus,
        gpu_ns=round(cost.work_ns) if found.gpus else None,
        gpu_share=cost.busy_share if found.gpus else None,
        rank_wait_ns=round(cost.rank_wait_ns),
        step_ns=round(cost.step_ns),
        basis=cost.basis,
        denominator=cost.denominator,
        side=found.parts[0].side if found.parts else None,
        parts=tuple(PartAnswer(part.name, part.share) for part in found.parts[:PARTS]),
        findings=_findings(found),
        window=found.window,
        doubts=tuple(one.title for one in found.findings if one.severity == "critical" and one.gain is None),
        use=_use(found.use),
        lines=_lines(found.lines),
    )


def _lines(found: PlaceTable | None) -> tuple[PartAnswer, ...]:
    """The lines with most GPU time; their files are named below the folder that all have in common."""
    if found is None:
        return ()
    lines = [(row.place, row.share) for row in found.rows if isinstance(row.place, Line)]
    folder = common_folder(line.file for line, _ in lines)
    return tuple(
        PartAnswer(f"{below(line.file, folder)}:{line.line} {line.function}", share)
        for line, share in lines[:LINES]
    )


def _use(found: StepUse | None) -> UseAnswer | None:
    """MFU and HFU, where there are both."""
    if found is None or found.mfu is None or found.hfu is None:
        return None
    most = found.types[0]
    return UseAnswer(
        flops=found.flops or 0.0,
        model_flops=found.model_flops or 0.0,
        dtype=most.dtype,
        peak_tflops=most.peak_tflops or 0.0,
        mfu=found.mfu,
        hfu=found.hfu,
        mfu_at_clock=found.mfu_at_clock,
        clock_mhz=found.clock_mhz if found.mfu_at_clock is not None else None,
        at_least=bool(found.unknown),
    )


def _findings(found: Diagnosis) -> tuple[FindingAnswer, ...]:
    """The warnings and critical findings that no other finding explains, the largest gain first."""
    kept = [
        FindingAnswer(
            one.code, one.title, one.severity, one.gain_ns, one.gain_share or 0.0, one.remedy, one.extent
        )
        for one in found.findings
        if one.explained_by is None and one.severity != "info" and one.gain_ns
    ]
    return tuple(sorted(kept, key=lambda one: (-one.gain_ns, one.code)))


def _unprofiled(variant: str, points: Sequence[Point]) -> list[TrialRecord]:
    return [
        record
        for point in points
        if (point.variant, point.collector, point.blocking) == (variant, UNPROFILED, False)
        for record in point.trials
    ]


def _step_answer(step: UnprofiledStep | None, profiled_by: str | None = None) -> StepAnswer | None:
    return None if step is None else StepAnswer(**vars(step), profiled_by=profiled_by)
