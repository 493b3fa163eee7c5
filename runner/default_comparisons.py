"""The comparisons that every run makes at its end, chosen from its points.

A point is variant x collector x launch blocking; its repeats are the trials of one side. Step times of the
trials without a profiler (``none``) decide where there are such; else those of the first collector. What
changed inside a step is told by the trials of the first collector that is a profiler with a time axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.contract.codec import from_json, to_json
from profrun.contract.profilers import UNPROFILED
from profrun.runner.run_times import timed_runs
from profrun.store.run_result import PairKind, PairReason, PairResult
from profrun.store.state import TrialRecord

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial, Comparison
    from profrun.analysis.compare.kernel_agreement import KernelAgreement
    from profrun.contract.denominator import Denominator


@dataclass(frozen=True)
class Point:
    """The finished trials of one point that have a trace, in the order of the plan.

    Attributes:
        serial: kernels ran one at a time under its profiler.
    """

    variant: str
    collector: str
    blocking: bool
    serial: bool = False
    trials: list[TrialRecord] = field(default_factory=list)

    @property
    def name(self) -> str:
        """``<variant>-<collector>[-blocking]``."""
        return point_name(self.variant, self.collector, self.blocking)

    @property
    def run(self) -> str:
        """Name of the run, which is the name of its folder: RUN/trials/TRIAL/trace."""
        trace = self.trials[0].trace
        assert trace is not None  # points hold trials with a trace only
        return trace.parents[2].name


@dataclass(frozen=True)
class Pair:
    """Two points to compare; ``a`` is the base."""

    kind: PairKind
    a: Point
    b: Point


def point_name(variant: str, collector: str, blocking: bool) -> str:
    """``<variant>-<collector>[-blocking]``: what the trials of a point have in common in their names."""
    return f"{variant}-{collector}{'-blocking' if blocking else ''}"


def points_of(records: Iterable[TrialRecord]) -> list[Point]:
    """The points that have a finished trial with a trace, in the order of the plan; a mapping is none."""
    found: dict[tuple[str, str, bool], Point] = {}
    for record in records:
        if record.trace is not None and record.state == "finished" and not record.maps:
            key = (record.variant, record.collector, record.blocking)
            point = found.setdefault(key, Point(*key, serial=record.serial))
            point.trials.append(record)
    return list(found.values())


def default_pairs(points: Sequence[Point]) -> list[Pair]:
    """Which points are compared, in the order in which they are shown."""
    by_key = {(point.collector, point.variant, point.blocking): point for point in points}
    collectors = list(dict.fromkeys(point.collector for point in points))
    timed = UNPROFILED if UNPROFILED in collectors else next(iter(collectors), None)
    timeline = next((point.collector for point in points if has_time_axis(point)), None)
    pairs = _against_first("variant", points, timed)
    for point in points:
        blocking = by_key.get((point.collector, point.variant, True))
        if point.collector == timed and not point.blocking and blocking is not None:
            pairs.append(Pair("blocking", point, blocking))
    for point in points:
        plain = by_key.get((UNPROFILED, point.variant, point.blocking))
        if has_time_axis(point) and plain is not None:
            pairs.append(Pair("overhead", plain, point))
    if timed == UNPROFILED and timeline is not None:
        pairs += _against_first("change", points, timeline)
    return pairs


def telling_points(points: Sequence[Point]) -> list[Point]:
    """The points that tell what changed between variants: without a profiler and of the first timeline.

    Launches block in none of them.
    """
    plain = [point for point in points if not point.blocking]
    timeline = next((point.collector for point in plain if has_time_axis(point)), None)
    return [point for point in plain if point.collector in (UNPROFILED, timeline)]


def has_time_axis(point: Point) -> bool:
    """Whether a profiler recorded the point as the program ran, not kernel by kernel."""
    return point.collector != UNPROFILED and not point.serial


def _against_first(kind: PairKind, points: Sequence[Point], collector: str | None) -> list[Pair]:
    """Each later variant of a collector against its first, without blocking."""
    plain = [point for point in points if point.collector == collector and not point.blocking]
    return [Pair(kind, plain[0], point) for point in plain[1:]]


Trials = Callable[[Point], "list[ComparedTrial]"]
"""The traces of a point as comparisons take them."""


def compare_pairs(
    pairs: Iterable[Pair], points: Sequence[Point], trials_of: Trials, recorded_of: Trials
) -> list[PairResult]:
    """Compare each pair.

    Args:
        pairs: what to compare.
        points: all points of the run: launch-blocking twins are asked for their kernels in profiled ones.
        trials_of: reads the traces of a point.
        recorded_of: the same, with the steps of the phase that a profiler records. The overhead of a profiler
            is told by these: another phase of the run is faster or slower without it, too.
    """
    from profrun.analysis.compare import compare
    from profrun.analysis.compare.kernel_agreement import same_kernels
    from profrun.analysis.compare.ratio import BLOCKING_DIFFERENCES, OVERHEAD_DIFFERENCES
    from profrun.reports.compare_sentence import verdict_line
    from profrun.reports.compare_text import largest_changes

    asked = {"blocking": BLOCKING_DIFFERENCES, "overhead": OVERHEAD_DIFFERENCES}  # the pair is about these
    found = []
    for pair in pairs:
        sides = _sides(pair, recorded_of if pair.kind == "overhead" else trials_of)
        if sides is None:
            continue
        a_trials, b_trials, start_ns = sides
        result = compare(a_trials, b_trials, allow=asked.get(pair.kind, ()))
        a_side, b_side = result.sides
        known = result.verdict != "incomparable"
        twins = _profiled_twins(pair, points) if pair.kind == "blocking" else None
        agreement = same_kernels(trials_of(twins[0]), trials_of(twins[1])) if twins else None
        found.append(
            PairResult(
                kind=pair.kind,
                a=pair.a.name,
                b=pair.b.name,
                verdict=result.verdict,
                a_ns=a_side.step_ns if known else None,
                b_ns=b_side.step_ns if known else None,
                ratio=result.ratio,
                ci95=result.ci95,
                mde=result.mde,
                trials=tuple(result.trials),
                text="; ".join(
                    [verdict_line(result, (pair.a.name, pair.b.name)), *_advice(result, start_ns)]
                ),
                commands=_commands(result, pair),
                reasons=tuple(from_json(PairReason, to_json(reason)) for reason in result.reasons),
                changed=() if pair.kind == "overhead" else tuple(largest_changes(result)),
                same_kernels=agreement.equal if agreement else None,
                kernels=kernels_sentence(agreement, result.denominator) if agreement else None,
                a_variant=pair.a.variant,
                b_variant=pair.b.variant,
                collector=pair.b.collector,
                denominator=result.denominator,
                start_ns=start_ns,
            )
        )
    return found


def _sides(
    pair: Pair, trials_of: Trials
) -> tuple[Sequence[ComparedTrial], Sequence[ComparedTrial], int | None] | None:
    """The trials of both sides, and how much of b's time the start of its profiler takes.

    Returns:
        None for an overhead of runs of which the time is not known from the same begin to the same end.
    """
    a_trials, b_trials = trials_of(pair.a), trials_of(pair.b)
    if pair.kind != "overhead" or not (_is_run(pair.a) and _is_run(pair.b)):
        return a_trials, b_trials, None
    a_runs, b_runs = timed_runs(pair.a.trials, a_trials), timed_runs(pair.b.trials, b_trials)
    if a_runs is None or b_runs is None:
        return None
    return a_runs.trials, b_runs.trials, b_runs.start_ns


def _is_run(point: Point) -> bool:
    """Whether its program has no steps."""
    return all(record.steps.how == "run" for record in point.trials)


def _advice(result: Comparison, start_ns: int | None) -> list[str]:
    """What can be said or done, in words; that one trial proves nothing is said by the verdict already."""
    from profrun.reports.compare_sentence import start_text

    start = start_text(start_ns, result.sides[1].step_ns)
    steps = [str(one) for one in result.next_steps[:1] if one.code != "one_trial"]
    return [*([f"the profiler takes {start} of its run to start"] if start else []), *steps]


def _commands(result: Comparison, pair: Pair) -> tuple[tuple[str, str], ...]:
    """The commands that go on after a refusal, and what each is for."""
    from profrun.reports.compare_sentence import Called, go_on

    run = pair.a.run
    found = go_on(result, Called((f"{run}/{pair.a.name}", "vs", f"{run}/{pair.b.name}")))
    return tuple((one.why, one.text) for one in found)


def _profiled_twins(pair: Pair, points: Sequence[Point]) -> tuple[Point, Point] | None:
    """The first collector that recorded kernels of this variant both without and with blocking."""
    for plain in points:
        if plain.variant != pair.a.variant or plain.blocking or plain.collector == UNPROFILED:
            continue
        for blocking in points:
            if (blocking.variant, blocking.collector) == (
                plain.variant,
                plain.collector,
            ) and blocking.blocking:
                return plain, blocking
    return None


def kernels_sentence(agreement: KernelAgreement, of: Denominator) -> str:
    """Whether launch-blocking twins launched the same kernels, in one sentence."""
    if agreement.equal is None:
        return "no kernels were recorded, so it is not known whether both sides launched the same ones"
    if agreement.equal:
        return f"both sides launched the same kernels, {agreement.kernels_per_step[0]:g} {of.rate}"
    first = agreement.differences[0]
    more = f", and {len(agreement.differences) - 1} more differ" if len(agreement.differences) > 1 else ""
    return (
        f"NOT the same kernels: {first.name} {first.async_calls:g} times {of.rate} without blocking, "
        f"{first.blocking_calls:g} times with it{more}"
    )
