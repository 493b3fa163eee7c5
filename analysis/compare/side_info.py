"""What a comparison shows of each side: ``side_infos`` is given both sides and the rows of what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from profrun.analysis.compare.compared_trial import StepSample
from profrun.analysis.compare.model import Row, SideInfo
from profrun.analysis.compare.side_names import side_names
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.step_time import Statistic, side_value


def side_infos(
    sides: Sides, statistic: Statistic, rows: Sequence[Row] = (), kernels: Sequence[Row] = ()
) -> tuple[SideInfo, SideInfo]:
    """Both sides.

    Args:
        rows: of the breakdown that was asked for; shares of GPU time are those of its rows on GPU time, or of
            ``kernels`` where it has none. Without any rows there are no shares.
    """
    gpu = [row for row in rows if row.basis == "gpu"] or kernels
    shared = set(sides[0].outside) & set(sides[1].outside) - {"unknown"}
    a = _share((row.a_ns, row.b_ns) for row in gpu)
    b = _share((row.b_ns, row.a_ns) for row in gpu)
    names = side_names(sides[0].trials, sides[1].trials)
    return (
        _info(names[0], sides[0], statistic, a, shared),
        _info(names[1], sides[1], statistic, b, shared),
    )


def _share(times: Iterable[tuple[float, float]]) -> float | None:
    """Of the first times, the share where the second is not 0."""
    pairs = list(times)
    total = sum(one for one, _ in pairs)
    return sum(one for one, other in pairs if one and other) / total if total else None


def _info(name: str, side: Side, statistic: Statistic, aligned: float | None, shared: set[str]) -> SideInfo:
    conditions = [trial.conditions for trial in side.trials]
    whole = sum(one.total_gpu_ns for one in conditions)
    outside = sum(one.outside_ns for one in conditions)
    attributed = None
    if aligned is not None and whole:
        known = sum(time for category, time in side.outside.items() if category in shared)
        attributed = (aligned * (whole - outside) + known) / whole
    times = [steps for steps in side.times if steps]
    peaks = [trial.memory_peak for trial in side.trials if trial.memory_peak is not None]
    return SideInfo(
        name=name,
        labels=tuple(one.label for one in conditions),
        vendor=conditions[0].vendor,
        devices=conditions[0].devices,
        collector=conditions[0].collector,
        tool=conditions[0].tool,
        trials=len(conditions),
        steps=sum(map(len, times)),
        step_ns=side_value(times, statistic) if times else 0.0,
        typical_ns=side.typical_step_ns / side.per,
        gpu_ns=side.mean(lambda sample: sample.gpu_ns) / side.per,
        outside_share=outside / whole if whole else 0.0,
        aligned_share=aligned,
        attributed_share=attributed,
        outliers=_named(side, lambda sample: sample.outlier),
        edges=_named(side, lambda sample: sample.edge),
        per=side.per,
        memory_peak=max(peaks, default=None),
        work=side.trials[0].work,
        times_ns=tuple(map(tuple, side.times)),
        denominator=side.denominator,
        windows=tuple(
            (one.label, one.window)
            for one in conditions
            if one.profiled and one.window is not None and not one.window.same_level
        ),
    )


def _named(side: Side, wanted: Callable[[StepSample], bool]) -> tuple[str, ...]:
    """'trial: step n' of the samples that are wanted, with the rank where there are several."""
    several = any(trial.conditions.ranks > 1 for trial in side.trials)
    return tuple(
        f"{trial.conditions.label}: {_which(side, sample)}" + (f" of {_rank(sample)}" if several else "")
        for trial in side.trials
        for sample in trial.samples
        if wanted(sample) and sample.time_ns > 0
    )


def _which(side: Side, sample: StepSample) -> str:
    return f"step {sample.step}" if side.denominator.several else side.denominator.the


def _rank(sample: StepSample) -> str:
    return f"{'guessed ' if sample.rank_guessed else ''}rank {sample.rank}"
