"""Two sides that hold several kinds of trials, such as two whole runs: like is compared with like.

``compare_points`` divides the trials of both sides into points (variant, recorder, launch blocking), compares
each point with the same one of the other side, and says what has no counterpart. Sides of one point each are
compared as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from profrun.analysis.compare.comparability import records_timeline
from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions, StepWork
from profrun.analysis.compare.comparing import compare
from profrun.analysis.compare.gate import Gate, Rule, gate
from profrun.analysis.compare.model import By, Comparison, Reason
from profrun.analysis.compare.ratio import THRESHOLD
from profrun.analysis.compare.side_names import side_names
from profrun.analysis.json import to_json
from profrun.analysis.step_time import Statistic
from profrun.contract.finding import Finding
from profrun.contract.profilers import TIMELINE

Trials = Sequence[ComparedTrial]


@dataclass(frozen=True)
class Recorder:
    """How the trials of a point were recorded.

    Attributes:
        collector: as the job names it; ``none`` without a profiler.
        blocking: did launches block, as far as that is known.
    """

    collector: str
    blocking: bool = False

    @property
    def profiled(self) -> bool:
        """Did a profiler run?"""
        return self.collector != "none"


@dataclass(frozen=True)
class PointPair:
    """One point of both sides, compared.

    Attributes:
        variants: of side a and b; None where no job is known.
    """

    variants: tuple[str | None, str | None]
    recorder: Recorder
    comparison: Comparison


@dataclass(frozen=True)
class PointPairs:
    """All points that both sides have.

    Attributes:
        pairs: those without launch blocking first, of these those without a profiler; at least one.
        left_out: trials of one side without a counterpart, in words.
    """

    pairs: tuple[PointPair, ...]
    left_out: tuple[Finding, ...] = ()

    @property
    def variants(self) -> tuple[tuple[str | None, str | None], ...]:
        """The variants that are compared."""
        return tuple(dict.fromkeys(pair.variants for pair in self.pairs))

    def of(self, variants: tuple[str | None, str | None]) -> tuple[PointPair, ...]:
        """The pairs of one pair of variants."""
        return tuple(pair for pair in self.pairs if pair.variants == variants)

    def deciding(self, variants: tuple[str | None, str | None]) -> PointPair:
        """The pair whose step times decide: without a profiler where there is one."""
        return self.of(variants)[0]

    def telling(self, variants: tuple[str | None, str | None]) -> PointPair:
        """The pair that tells what changed inside of a step: the first with kernels, else with rows."""

        def tells(pair: PointPair) -> tuple[bool, bool]:
            return bool(pair.comparison.kernels), bool(pair.comparison.rows)

        return max(self.of(variants), key=tells)

    @property
    def exit_code(self) -> int:
        """1 where a variant is slower, else 2 where one has no verdict, else 0."""
        codes = {self.deciding(variants).comparison.exit_code for variants in self.variants}
        return next((code for code in (1, 2) if code in codes), 0)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values: of one pair its comparison; of several a list of them."""
        left_out = {"left_out": to_json(self.left_out)} if self.left_out else {}
        if len(self.pairs) == 1:
            return {**self.pairs[0].comparison.to_json(), **left_out}
        pairs = [
            {"variants": list(pair.variants), **to_json(pair.recorder), **pair.comparison.to_json()}
            for pair in self.pairs
        ]
        return {"pairs": pairs, **left_out, "exit_code": self.exit_code}


Compare = Callable[[Trials, Trials], Comparison]


def compare_points(
    a: Trials,
    b: Trials,
    *,
    by: By = "kernel",
    statistic: Statistic = "median",
    threshold: float = THRESHOLD,
    per: str | None = None,
    allow: Collection[str] = (),
) -> PointPairs:
    """Compare each point of side a with the same point of side b.

    Where profiled trials show that both sides do different work, the trials without a profiler count as
    different work, too. With ``per`` their work per step is that of the profiled trials of their variant,
    because only a profiler records it.

    Where a side has several variants, variants of the same name are compared; the only variant of a side is
    compared with the only one of the other, whatever their names. Sides without any point in common are
    compared as they are, and the result says why they cannot be compared. Sides whose mixture is allowed are
    compared as they are, too.

    Args:
        a, b: trials of each side; ``a`` is the base.
        by, statistic, threshold, per, allow: as ``comparing.compare`` takes them.

    Raises:
        UsageError: as ``comparing.compare``.
    """
    one = partial(compare, by=by, statistic=statistic, threshold=threshold, per=per, allow=allow)
    points = _points(a), _points(b)
    if not a or not b or max(map(len, points)) == 1 or "mixed" in allow:
        return PointPairs((_pair(a, b, one),))
    variants = _same_variants(*points)
    names = side_names(a, b)
    pairs, left_out = [], []
    for left, right in variants:
        other_work = None
        for key in sorted(dict.fromkeys((*left, *right)), key=_tells_no_work):
            trials = left.get(key, ()), right.get(key, ())
            if per is not None:
                trials = _with_work(trials[0], left), _with_work(trials[1], right)
            if all(trials) and not trials[0][0].conditions.replayed:
                pairs.append(_pair(*trials, partial(one, other_work=other_work)))
                other_work = other_work or _other_work(pairs[-1])
            else:
                left_out.append(_without_counterpart(*trials, names))
    if not pairs:
        return PointPairs((_pair(a, b, one),))
    left_out += _other_variants(points[0], [pair.variants[0] for pair in pairs], names)
    left_out += _other_variants(points[1], [pair.variants[1] for pair in pairs], names[::-1])
    pairs.sort(key=lambda pair: (pair.recorder.blocking, pair.recorder.profiled))
    return PointPairs(tuple(pairs), tuple(left_out))


_Key = tuple[str, bool]
"""What recorded a point, and whether launches blocked."""
_Points = dict[tuple[str | None, _Key], list[ComparedTrial]]
_OfVariant = dict[_Key, Trials]


def _points(side: Trials) -> _Points:
    """The trials of a side by variant and by what recorded them, in their order."""
    found: _Points = {}
    for trial in side:
        one = trial.conditions
        recorder = TIMELINE if records_timeline(one) else one.collector
        found.setdefault((one.variant, (recorder, _blocking(one))), []).append(trial)
    return found


def _same_variants(a: _Points, b: _Points) -> list[tuple[_OfVariant, _OfVariant]]:
    """The points of each pair of variants that belong together."""
    left, right = (list(dict.fromkeys(variant for variant, _ in side)) for side in (a, b))
    both = [(one, one) for one in left if one in right]
    if not both and len(left) == len(right) == 1:
        both = [(left[0], right[0])]
    return [(_of_variant(a, one), _of_variant(b, two)) for one, two in both]


def _of_variant(points: _Points, wanted: str | None) -> _OfVariant:
    return {key: trials for (variant, key), trials in points.items() if variant == wanted}


def _pair(a: Trials, b: Trials, compared: Compare) -> PointPair:
    """Both sides compared; their first trials stand for them."""
    comparison = compared(a, b)
    one, two = a[0].conditions, b[0].conditions
    names = dict.fromkeys((one.collector, two.collector))
    return PointPair((one.variant, two.variant), Recorder("/".join(names), _blocking(one)), comparison)


def _tells_no_work(key: _Key) -> bool:
    """Only a profiler records what work is done."""
    return key[0] == "none"


def _with_work(trials: Trials, of_variant: _OfVariant) -> Trials:
    """The trials; those whose work per step is not known have that of another trial of the variant."""
    each = (trial.work for point in of_variant.values() for trial in point)
    known = next((work for work in each if _is_known(work)), None)
    if known is None:
        return trials
    return [trial if _is_known(trial.work) else replace(trial, work=known) for trial in trials]


def _is_known(work: StepWork) -> bool:
    return work.tokens is not None or work.matrix_flops is not None


def _other_work(pair: PointPair) -> Reason | None:
    """That both sides do different work, where this pair shows it."""
    return next((one for one in pair.comparison.reasons if one.code == "work"), None)


def _blocking(one: RecordingConditions) -> bool:
    """Did the job, or the launches, say that launches blocked?"""
    return one.launches_block is True


def _without_counterpart(a: Trials, b: Trials, names: tuple[str, str]) -> Finding:
    """That a point has no counterpart, or nothing that could be compared."""
    (name, other) = names if a else names[::-1]
    one = (a or b)[0].conditions
    how = f"{one.collector}{', blocking' if _blocking(one) else ''}"
    what = f"{one.variant}, {how}" if one.variant else how
    if a and b:
        return _left_out(f"{what}: kernels were replayed to read counters, so there is no timeline")
    return _left_out(f"{what} of {name}: {other} has no such trial")


def _other_variants(points: _Points, paired: Sequence[str | None], names: tuple[str, str]) -> list[Finding]:
    """The variants of a side that the other side does not have."""
    others = dict.fromkeys(str(variant) for variant, _ in points if variant not in paired)
    found = [f"variant {variant} of {names[0]}: {names[1]} has no variant of that name" for variant in others]
    return [_left_out(text) for text in found]


def _left_out(text: str) -> Finding:
    return Finding("left_out", "info", text)


def gate_of(
    found: PointPairs, rules: Sequence[Rule], *, expectations: Sequence[tuple[str, bool | None]] = ()
) -> Gate:
    """Check all pairs of variants against rules.

    Rules about the step time, the energy and expectations ask the pair whose step times decide; the others
    ask the pair that tells what changed.

    Args:
        found: the compared points.
        rules: the rules.
        expectations: see ``gate.gate``.
    """
    results = []
    for variants in found.variants:
        for rule in rules:
            of_step = rule.what in ("step", "energy", "expectations")
            pair = found.deciding(variants) if of_step else found.telling(variants)
            (one,) = gate(pair.comparison, [rule], expectations=expectations).results
            results.append(one)
    return Gate.of(results)
