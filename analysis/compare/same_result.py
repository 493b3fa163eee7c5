"""Whether two variants of a program compute the same: ``same_result`` compares the values that they computed
in their first steps (``contract.results``).

What is compared. At each place (the first loss, the second, ...) the median over the trials of one side
stands against that of the other. The largest relative difference over all places is the difference of the two
sides.

* The largest, not the mean: a change that breaks a program may show in some steps only, and a mean over 20
  steps hides it. Training is chaotic, so two runs that differ by rounding drift apart, and the difference
  grows with the steps. Therefore only the first values are compared, and tolerances are for about 20 of them.
* Medians, because the limit of what is due to chance comes from a few trials (below): a single trial of
  several that is a little outside of it says nothing.

The relative difference of a and b is ``|a - b| / max(|a|, |b|)``, as in Python's ``math.isclose``, so that
the order of the sides does not matter. A value close to 0 in a series that is not (the loss of a GAN changes
its sign) counts as ``SMALL`` of the middle size of all values.

Parameters. The sum of the absolute values of all parameters hardly moves in a step, whatever is computed. So
two sides are the same only where the sums also move alike since the first one. Where the sums are alike and
their moves are not, nothing can be said: most of the moves of single parameters cancel in a sum, and what is
left may be rounding.

What is due to chance. The trials of the base show by how much the program differs from itself, and a change
may do ``CHANCE`` times as much.

Programs that differ from themselves. Training is chaotic: where kernels add in no fixed order, a difference
of one rounding is multiplied from step to step (the losses of a GAN on an H200: 4e-6 at the second value,
5e-2 at the twentieth). What a change may do grows from value to value as the differences of the base do. The
comparison ends where these have become ``GROWTH`` times as large, or are more than a change of the precision
may do. If it ends early, fewer than ``EARLY`` values that agree are too few to say that both compute the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, median_low
from typing import Literal

from profrun.contract.changes import Exactness
from profrun.contract.results import ResultKind, ResultsFile

Verdict = Literal["same", "differs", "unknown"]

Why = Literal[
    "too-far",
    "not-finite",
    "base-not-finite",
    "varies",
    "nothing-seen",
    "kinds-differ",
    "says-little",
    "not-reproducible",
    "base-once",
]
"""Why they are not the same, or why that is not known.

* too-far: the difference is above the tolerance.
* not-finite, base-not-finite: a value of the changed program alone, or of the base alone, is NaN or infinite.
* varies: the trials of the changed program differ among themselves, those of the base do not.
* nothing-seen: one of the sides has no values, or none that is finite.
* kinds-differ: losses of one side, parameters or outputs of the other.
* says-little: the sums of parameters are alike, and their moves are not.
* not-reproducible: the trials of the base differ among themselves, from the first values on.
* base-once: the difference is above the tolerance, but the base has a single trial, so it may be chance.
"""

TOLERANCES: Mapping[Exactness, float] = {"same": 1e-5, "rounding": 1e-3, "precision": 2e-2}
"""The relative difference that a change may make, by what it may do to the numbers.

* same: numbers of 32 bits have a relative precision of 6e-8, and concurrent sums that are added in another
  order differ by a few of these.
* rounding: kernels add in another order, and hand over numbers of 16 bits to each other (relative precision
  4e-3 of bfloat16, 5e-4 of half). A loss is a mean over many such numbers, and most of the error cancels.
* precision: the factors of each product have 10 bits (TF32: 5e-4) or 8 bits (bfloat16: 4e-3), in each layer
  and for 20 steps of training.

For comparison, the largest difference in 20 losses of five small trainings (a convolutional network and a
transformer, SGD and AdamW, CPU): 4e-6 where all parameters are changed by 1e-7 at the start, 2e-4 where by
1e-3 under autocast to bfloat16, and 1e-4 between autocast and 32 bits. Larger models and learning rates drift
further.
"""
SPACINGS = 2.0
"""A loss that the program keeps in 16 bits may differ by so many neighbouring numbers of its type, where a
change rounds differently. One step of bfloat16 is up to 0.8 % of the value, so the tolerances above would
mean "exactly the same". The last sum and the loss itself are rounded once each."""
LIMIT = TOLERANCES["precision"]
"""A base whose own trials differ by more says nothing, unless the user accepts more."""
CHANCE = 3.0
"""So many times the largest difference between trials of the base may be due to chance: the largest of few
trials is less than what many would show."""
EARLY = 3
"""If the comparison ends early, at least so many values must agree. The first loss is computed before any
gradient has an effect, and the second may belong to another model (a GAN has two)."""
GROWTH = LIMIT / TOLERANCES["rounding"]
"""The comparison ends where the differences of the base have grown by more than this factor. From there on, a
change that only rounds differently may differ as much as a change of the precision."""
ROUNDED = 1e-6
"""Growth is counted from this difference on, because smaller ones are single roundings of 32 bits."""
SMALL = 0.1
"""A value counts as at least this part of the middle size of all values of its series."""


@dataclass(frozen=True)
class SameResult:
    """Whether two sides compute the same.

    Attributes:
        verdict: ``same``, ``differs`` or ``unknown``.
        kind: what was compared; none where nothing was.
        difference: largest relative difference between the sides, 0 to 2; for ``varies`` and
            ``not-reproducible`` between the trials of one side. None where there is none.
        place: at which value it is, from 1; for values that are not finite the first of them.
        tolerance: what was allowed.
        why: why it is not ``same``; None where it is.
        rank: of the process whose values decided.
        first: how many values were compared, from the first on, where the comparison ended early; None where
            all values were compared.
    """

    verdict: Verdict
    kind: ResultKind = "none"
    difference: float | None = None
    place: int | None = None
    tolerance: float = 0.0
    why: Why | None = None
    rank: int = 0
    first: int | None = None


def tolerance_of(exactness: Collection[Exactness]) -> float:
    """What several changes together may do: as much as the loosest of them; no change does as ``same``."""
    return max((TOLERANCES[one] for one in exactness), default=TOLERANCES["same"])


def same_result(
    base: Sequence[Sequence[ResultsFile]],
    changed: Sequence[Sequence[ResultsFile]],
    exactness: Collection[Exactness] = (),
    accept: float | None = None,
) -> SameResult:
    """Whether a changed program computes the same as the base.

    Args:
        base, changed: of each trial what its ranks computed. Trials without any value do not count.
        exactness: of each change that was made.
        accept: the relative difference that the user accepts, instead of that of the changes.

    Returns:
        The result of the rank that decides: of one that differs, else of one of which it is not known, else
        of the one that is closest to its tolerance.
    """
    tolerance = _tolerance((*base, *changed), exactness) if accept is None else accept
    ranks = sorted({one.rank for trial in (*base, *changed) for one in trial if one.values})
    found = [
        replace(_of_rank(_values(base, rank), _values(changed, rank), tolerance), rank=rank) for rank in ranks
    ]
    if not found:
        return SameResult("unknown", tolerance=tolerance, why="nothing-seen")
    return max(found, key=_weight)


def _tolerance(trials: Sequence[Sequence[ResultsFile]], exactness: Collection[Exactness]) -> float:
    """What the changes may do; where they round differently, at least what the type of the values tells."""
    usual = tolerance_of(exactness)
    if all(one == "same" for one in exactness):
        return usual
    return max([usual, *(SPACINGS * one.spacing for trial in trials for one in trial if one.spacing)])


def _weight(found: SameResult) -> tuple[int, float]:
    decides = ("same", "unknown", "differs").index(found.verdict)
    return decides, (found.difference or 0.0) / found.tolerance if found.tolerance else 0.0


def _values(side: Sequence[Sequence[ResultsFile]], rank: int) -> list[ResultsFile]:
    """What a rank computed in each trial in which it computed anything."""
    return [one for trial in side for one in trial if one.rank == rank and one.values]


def _of_rank(base: list[ResultsFile], changed: list[ResultsFile], tolerance: float) -> SameResult:
    """The result for one rank. Places up to the first value that is not finite are compared."""
    if not base or not changed:
        return SameResult("unknown", tolerance=tolerance, why="nothing-seen")
    kinds = {one.kind for one in (*base, *changed)}
    if len(kinds) > 1:
        return SameResult("unknown", tolerance=tolerance, why="kinds-differ")
    (kind,) = kinds
    a, b = ([one.values for one in side] for side in (base, changed))
    count = min(map(len, (*a, *b)))
    finite = next((place for place in range(count) if _has_gap(a, place) or _has_gap(b, place)), count)
    compare = _of_parameters if kind == "parameters" else _compared
    compared = compare(_first(a, finite), _first(b, finite), tolerance)
    unlike = _gap(a, b, finite) if finite < count else None
    if unlike is None or compared.verdict == "differs":
        return replace(compared, kind=kind)
    differs_from_itself = compared.why == "not-reproducible" or compared.first is not None
    if differs_from_itself and unlike.why != "not-finite":
        return replace(compared, kind=kind)
    return replace(unlike, kind=kind, tolerance=tolerance)


def _has_gap(side: Sequence[Sequence[float | None]], place: int) -> bool:
    return any(values[place] is None for values in side)


def _gap(
    base: Sequence[Sequence[float | None]], changed: Sequence[Sequence[float | None]], place: int
) -> SameResult | None:
    """What it means that a value is not finite at a place; None where it never is, in both."""
    in_base, in_changed = ([values[place] is None for values in side] for side in (base, changed))
    if not any(in_base):
        return SameResult("differs", place=place + 1, why="not-finite")
    if not all(in_base):
        return SameResult("unknown", place=place + 1, why="not-reproducible")
    return None if all(in_changed) else SameResult("differs", place=place + 1, why="base-not-finite")


def _first(side: Sequence[Sequence[float | None]], count: int) -> list[list[float]]:
    """The first ``count`` values of each trial, which are finite."""
    return [[value for value in values[:count] if value is not None] for values in side]


def _of_parameters(base: list[list[float]], changed: list[list[float]], tolerance: float) -> SameResult:
    """The result for sums of parameters, without their kind."""
    moves = _compared(_moves(base), _moves(changed), tolerance)
    if moves.verdict == "same":
        return moves
    sums = _compared(base, changed, tolerance)
    if sums.verdict == "differs":
        return sums
    return replace(moves, verdict="unknown", why="says-little") if moves.verdict == "differs" else moves


def _moves(side: list[list[float]]) -> list[list[float]]:
    """The first value of each trial, then how far the others are from it."""
    return [[*values[:1], *(value - values[0] for value in values[1:])] for values in side]


def _compared(base: list[list[float]], changed: list[list[float]], tolerance: float) -> SameResult:
    """The result for series of finite values, of equal length, without their kind."""
    a, b = ([median(values) for values in zip(*side, strict=True)] for side in (base, changed))
    if not a:
        return SameResult("unknown", tolerance=tolerance, why="nothing-seen")
    least = SMALL * median_low(max(abs(one), abs(other)) for one, other in zip(a, b, strict=True))
    own = _apart(base, least)
    limit = max(LIMIT, tolerance)
    allowed = _allowed(own, tolerance, limit)
    first = len(allowed) if len(allowed) < len(own) else None
    differences = _apart([a, b], least)[: len(allowed)]
    over = [place for place, most in enumerate(allowed) if differences[place] > most]
    if over:
        place = max(over, key=lambda place: differences[place])
        verdict, why = _too_far(len(base))
        return SameResult(verdict, "none", differences[place], place + 1, allowed[place], why, first=first)
    if first is not None and (first < EARLY or max(differences) > limit):
        return SameResult("unknown", "none", *_largest(own), tolerance, "not-reproducible")
    varies, place = _largest(_apart(changed, least)[: len(allowed)])
    if varies > max(limit, allowed[place - 1]):
        return SameResult("differs", "none", varies, place, allowed[place - 1], "varies", first=first)
    difference, place = _largest(differences)
    return SameResult("same", "none", difference, place, allowed[place - 1], first=first)


def _too_far(trials: int) -> tuple[Verdict, Why]:
    """What it means that both sides are too far from each other, by how many trials the base has."""
    return ("differs", "too-far") if trials > 1 else ("unknown", "base-once")


def _allowed(own: Sequence[float], tolerance: float, limit: float) -> list[float]:
    """What a change may do at each value, up to the last one that is compared.

    Args:
        own: by how much the trials of the base differ at each value.
        tolerance: what the change may do where no difference grows.
        limit: the comparison ends where the trials of the base differ by more.
    """
    allowed: list[float] = []
    largest = begin = 0.0
    for one in own:
        largest = max(largest, one)
        begin = begin or (max(largest, ROUNDED) if largest else 0.0)
        growth = max(1.0, largest / begin) if begin else 1.0
        if growth > GROWTH or largest > limit:
            break
        allowed.append(max(tolerance * growth, CHANCE * largest))
    return allowed


def _apart(side: list[list[float]], least: float) -> list[float]:
    """The largest relative difference between series at each value.

    Args:
        least: the smallest size that a value counts as.
    """
    return [relative_difference(min(values), max(values), least) for values in zip(*side, strict=True)]


def _largest(differences: Sequence[float]) -> tuple[float, int]:
    """The largest of differences, and at which value it is, from 1."""
    largest = max(differences)
    return largest, differences.index(largest) + 1


def relative_difference(a: float, b: float, least: float = 0.0) -> float:
    """``|a - b| / max(|a|, |b|)``, from 0 to 2; 0 where both are 0.

    Args:
        least: the smallest size that a value counts as.
    """
    size = max(abs(a), abs(b), least)
    return abs(a / size - b / size) if size else 0.0
