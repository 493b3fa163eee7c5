"""Whether two variants compute the same, by the values of their trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.compare.same_result import (
    TOLERANCES,
    SameResult,
    Verdict,
    Why,
    relative_difference,
    same_result,
    tolerance_of,
)
from profrun.contract.changes import Exactness
from profrun.contract.results import ResultKind, ResultsFile

Values = Sequence[float | None]
NAN = None


def side(*trials: Values, kind: ResultKind = "loss", rank: int = 0) -> list[list[ResultsFile]]:
    """One side whose trials have one rank."""
    return [[ResultsFile(rank, kind if values else "none", tuple(values))] for values in trials]


def judged(found: SameResult) -> tuple[Verdict, Why | None, int | None]:
    return found.verdict, found.why, found.place


ONE = [4.0, 2.0, 1.0]
TINY = [4.0, 2.000008, 1.0]  # 4e-6
LITTLE = [4.0, 2.0008, 1.0]  # 4e-4
SOME = [4.0, 2.0, 1.01]  # 1 %
MUCH = [4.0, 2.0, 1.1]  # 9 %


@pytest.mark.parametrize(
    ("base", "changed", "exactness", "verdict", "why", "place"),
    [
        # what the changes may do
        ([ONE, ONE], [ONE, ONE], [], "same", None, 1),
        ([ONE, ONE], [TINY], [], "same", None, 2),
        ([ONE, ONE], [LITTLE], [], "differs", "too-far", 2),
        ([ONE, ONE], [LITTLE], ["same"], "differs", "too-far", 2),
        ([ONE, ONE], [LITTLE], ["rounding"], "same", None, 2),
        ([ONE, ONE], [SOME], ["rounding", "same"], "differs", "too-far", 3),
        ([ONE, ONE], [SOME], ["rounding", "precision", "same"], "same", None, 3),
        ([ONE, ONE], [MUCH], ["precision"], "differs", "too-far", 3),
        # what is due to chance
        ([ONE, LITTLE], [[4.0, 2.0015, 1.0]], [], "same", None, 2),  # 5.5e-4 from the median, 1.2e-3 allowed
        ([ONE, LITTLE], [[4.0, 2.003, 1.0]], [], "differs", "too-far", 2),
        ([ONE, MUCH], [ONE], ["precision"], "unknown", "not-reproducible", 3),
        ([ONE], [MUCH], [], "unknown", "base-once", 3),
        ([ONE], [TINY], [], "same", None, 2),
        ([ONE, ONE, ONE], [ONE, MUCH, ONE], ["precision"], "differs", "varies", 3),
        ([ONE, ONE, ONE], [ONE, SOME, ONE], [], "same", None, 1),  # one trial of three, by less than 2 %
        # values that are not finite
        ([ONE, ONE], [[4.0, NAN, NAN]], [], "differs", "not-finite", 2),
        ([ONE, MUCH], [ONE, [4.0, 2.0, NAN]], [], "differs", "not-finite", 3),
        ([[4.0, NAN], [4.0, NAN]], [[4.0, NAN]], [], "same", None, 1),
        ([[4.0, NAN], [4.0, NAN]], [[4.0, 2.0]], [], "differs", "base-not-finite", 2),
        ([[4.0, NAN], [4.0, 2.0]], [[4.0, 2.0]], [], "unknown", "not-reproducible", 2),
        ([[4.0, NAN], [4.0, NAN]], [[5.0, NAN]], [], "differs", "too-far", 1),
        ([[NAN], [NAN]], [[NAN]], [], "unknown", "nothing-seen", None),
        # how many values there are
        ([ONE, ONE], [ONE[:2]], [], "same", None, 1),
        ([ONE, ONE[:1]], [MUCH], [], "same", None, 1),
        ([ONE, []], [ONE], [], "same", None, 1),  # a trial without values does not count
        ([ONE, ONE], [[]], [], "unknown", "nothing-seen", None),
        ([[]], [ONE], [], "unknown", "nothing-seen", None),
        ([[]], [[]], [], "unknown", "nothing-seen", None),
        ([], [], [], "unknown", "nothing-seen", None),
        # a value near 0 among others that are not: 0.1 of their middle size counts
        ([[1.0, 0.001, -1.0]] * 2, [[1.0, -0.001, -1.0]], ["precision"], "same", None, 2),
        ([[0.001, 0.001]] * 2, [[0.001, -0.001]], ["precision"], "differs", "too-far", 2),
        ([[0.0, 0.0]] * 2, [[0.0, 0.0]], [], "same", None, 1),
    ],
)
def test_verdicts(
    base: list[Values],
    changed: list[Values],
    exactness: list[Exactness],
    verdict: Verdict,
    why: Why | None,
    place: int | None,
) -> None:
    assert judged(same_result(side(*base), side(*changed), exactness)) == (verdict, why, place)


def test_the_result_says_what_was_allowed_and_how_far_it_is() -> None:
    found = same_result(side(ONE, LITTLE), side(ONE), ["same"])
    assert (found.kind, found.place) == ("loss", 2)
    assert found.difference == pytest.approx(2e-4, rel=1e-2)
    assert found.tolerance == pytest.approx(3 * 4e-4, rel=1e-2)


def test_what_the_user_accepts_counts_instead_of_the_changes() -> None:
    base = side(ONE, ONE)
    assert same_result(base, side(MUCH), ["same"], accept=0.1).verdict == "same"
    assert same_result(base, side(LITTLE), ["precision"], accept=1e-5).verdict == "differs"
    assert same_result(base, base, accept=0.0).verdict == "same"
    scatters = side(ONE, MUCH)
    assert same_result(scatters, side(SOME)).why == "not-reproducible"
    assert same_result(scatters, side(SOME), accept=0.1).verdict == "same"


BFLOAT16 = 2.0**-7
HALF = 2.0**-10


@pytest.mark.parametrize(
    ("spacings", "exactness", "allowed"),
    [
        ((BFLOAT16, BFLOAT16), ["rounding"], 2 * BFLOAT16),
        ((None, BFLOAT16), ["rounding"], 2 * BFLOAT16),  # the change makes the loss one of 16 bits, or none
        ((BFLOAT16, None), ["same", "rounding"], 2 * BFLOAT16),
        ((HALF, HALF), ["rounding"], 2 * HALF),
        ((2.0**-23, 2.0**-23), ["rounding"], 1e-3),
        ((BFLOAT16, BFLOAT16), ["precision"], 2e-2),
        ((BFLOAT16, BFLOAT16), ["same"], 1e-5),
        ((BFLOAT16, BFLOAT16), [], 1e-5),
    ],
)
def test_a_loss_of_16_bits_may_differ_by_two_neighbours_where_a_change_rounds_otherwise(
    spacings: tuple[float | None, float | None], exactness: list[Exactness], allowed: float
) -> None:
    base, changed = ([[ResultsFile(0, "loss", (0.5, 0.5), spacing)]] for spacing in spacings)
    assert same_result(base, changed, exactness).tolerance == allowed
    assert same_result(base, changed, exactness, accept=1e-4).tolerance == 1e-4


def test_losses_are_not_compared_with_outputs() -> None:
    found = same_result(side(ONE), side(ONE, kind="output"))
    assert (found.verdict, found.why) == ("unknown", "kinds-differ")


SUMS = [1000.0, 1000.01, 1000.02]


@pytest.mark.parametrize(
    ("base", "changed", "expected"),
    [
        ([SUMS, SUMS], SUMS, ("same", None, 1)),
        ([SUMS, SUMS], [1000.0, 1000.01, 1000.02001], ("same", None, 3)),  # moved 5e-4 more
        ([SUMS, SUMS], [1000.0, 1000.02, 1000.04], ("unknown", "says-little", 2)),  # twice as far
        ([SUMS, SUMS], [1000.0, 1000.01, 1003.0], ("differs", "too-far", 3)),
        ([SUMS], [1000.0, 1000.02, 1000.04], ("unknown", "base-once", 2)),
        ([SUMS, [1000.0, 1000.02, 1000.04]], SUMS, ("unknown", "not-reproducible", 2)),
        ([[1000.0] * 3] * 2, [1000.0] * 3, ("same", None, 1)),  # nothing is trained
    ],
)
def test_parameters_are_the_same_where_their_sums_move_alike(
    base: list[Values], changed: Values, expected: tuple[Verdict, Why | None, int]
) -> None:
    found = same_result(side(*base, kind="parameters"), side(changed, kind="parameters"), ["rounding"])
    assert (judged(found), found.kind) == (expected, "parameters")


def ranks(*values: Values) -> list[ResultsFile]:
    """A trial of several ranks."""
    return [ResultsFile(rank, "loss" if one else "none", tuple(one)) for rank, one in enumerate(values)]


@pytest.mark.parametrize(
    ("changed", "verdict", "rank"),
    [
        ((ONE, ONE, []), "same", 0),
        ((ONE, TINY, []), "same", 1),
        ((LITTLE, MUCH, []), "differs", 1),
        ((LITTLE, [], []), "differs", 0),
        ((ONE, [], []), "unknown", 1),
        ((ONE, ONE, ONE), "unknown", 2),
        ((ONE,), "unknown", 1),
    ],
)
def test_the_rank_that_is_furthest_from_the_same_decides(
    changed: tuple[Values, ...], verdict: Verdict, rank: int
) -> None:
    found = same_result([ranks(ONE, ONE, [])] * 2, [ranks(*changed)])
    assert (found.verdict, found.rank) == (verdict, rank)


def test_the_loosest_of_several_changes_counts() -> None:
    assert tolerance_of([]) == tolerance_of(["same"]) == 1e-5
    assert tolerance_of(["rounding", "same"]) == 1e-3
    assert tolerance_of(["rounding", "precision", "same"]) == 2e-2
    assert list(TOLERANCES.values()) == sorted(TOLERANCES.values())


# The losses of bench/programs/lines/gan.py on an H200: two runs with the same seed, and one whose cuda-graphs
# add the gradients of two backwards wrongly (github.com/pytorch/pytorch/issues/181723).
GAN = (
    [0.55292809, 0.96388143, 3.52530479, 0.40266863, 0.52532554, 3.57908916, 0.19949901, 0.47156128],
    [0.55292809, 0.96387774, 3.52516508, 0.40261921, 0.5251379, 3.57873273, 0.19933987, 0.47284824],
)
GRAPHED = [0.55292809, 0.96388489, 4.38562441, 1.93299389, 0.17255554, 5.0283165, 3.3581841, 0.06419126]


@pytest.mark.parametrize(
    ("exactness", "verdict"), [("same", "differs"), ("rounding", "differs"), ("precision", "unknown")]
)
def test_of_a_program_that_differs_from_itself_the_first_values_are_compared(
    exactness: Exactness, verdict: Verdict
) -> None:
    own = same_result(side(*GAN), side(GAN[0]), [exactness])
    assert (own.verdict, own.first) == ("same", 3)
    assert own.difference is not None
    assert own.difference < 4e-5
    graphed = same_result(side(*GAN), side(GRAPHED), [exactness])
    assert graphed.verdict == verdict
    if verdict == "differs":
        assert judged(graphed) == ("differs", "too-far", 3)
        assert graphed.difference == pytest.approx(0.196, abs=0.001)


@pytest.mark.parametrize(
    ("own", "changed", "verdict"),
    [
        ([0, 0, 1e-6, 1e-5, 0.1], [0, 0, 0, 9e-4, 0.5], "same"),
        ([0, 0, 1e-6, 1e-5, 0.1], [0, 0, 2e-3, 0, 0], "differs"),  # 0.1 % may be
        ([0, 0, 1e-6, 1e-5, 0.1], [0, 0, 0, 2e-2, 0], "differs"),  # 1 % may be after a growth of 10
        ([0, 0, 1e-6, 1e-4, 0.1], [0, 0, 0, 2e-2, 0], "same"),  # after a growth of 100 it does not count
        ([0, 1e-6, 1e-4, 1e-4, 0.1], [0, 0, 0, 0, 0], "unknown"),  # two values that agree are too few
        ([1e-2, 1e-2, 1e-2, 1e-2, 0.1], [0, 0, 0, 0, 0.5], "same"),
        ([3e-2, 3e-2, 3e-2, 3e-2, 0.1], [0, 0, 0, 0, 0], "unknown"),
    ],
)
def test_what_a_change_may_do_grows_as_the_differences_of_the_base(
    own: list[float], changed: list[float], verdict: Verdict
) -> None:
    base = side([1.0] * 5, [1.0 - one for one in own])
    assert same_result(base, side([1.0 - one for one in changed]), ["rounding"]).verdict == verdict


@given(st.integers(0, 2**32 - 1), st.floats(1, 8), st.integers(3, 5))
def test_a_chaotic_program_that_computes_the_same_is_not_called_another(
    seed: int, growth: float, trials: int
) -> None:
    """Each run differs by 1e-7 at its first value, and by ``growth`` times as much at each further one."""
    random = np.random.default_rng(seed)
    steps = 1e-7 * growth ** np.arange(20) * random.normal(1, 0.2, 20)
    runs = [2.0 * np.exp(np.minimum(steps, 1.0) * random.uniform(-1, 1)) for _ in range(trials + 1)]
    found = same_result(side(*(run.tolist() for run in runs[1:])), side(runs[0].tolist()), ["rounding"])
    assert found.verdict != "differs"


SERIES = st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=4)
KINDS = st.sampled_from(("loss", "parameters", "output"))
ACCEPT = st.floats(0, 1)


@given(SERIES, SERIES, KINDS, ACCEPT)
def test_the_order_of_two_reproducible_sides_does_not_matter(
    a: Values, b: Values, kind: ResultKind, accept: float
) -> None:
    one, other = (
        same_result(side(*[x] * 2, kind=kind), side(*[y] * 2, kind=kind), accept=accept)
        for x, y in ((a, b), (b, a))
    )
    assert (one.verdict, one.difference, one.place) == (other.verdict, other.difference, other.place)
    assert same_result(side(*[a] * 2, kind=kind), side(a, kind=kind), accept=0.0).verdict in (
        "same",
        "unknown",
    )


@given(
    st.lists(SERIES, min_size=1, max_size=3), st.lists(SERIES, min_size=1, max_size=3), KINDS, ACCEPT, ACCEPT
)
def test_what_is_the_same_stays_so_where_more_is_accepted(
    a: list[Values], b: list[Values], kind: ResultKind, accept: float, more: float
) -> None:
    little, much = sorted((accept, more))
    first, second = (
        same_result(side(*a, kind=kind), side(*b, kind=kind), accept=one) for one in (little, much)
    )
    if (
        first.verdict == "same" and first.first is None
    ):  # else more values are compared where more is accepted
        assert second.verdict == "same"


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(0, 1e300))
def test_a_relative_difference_lies_between_0_and_2(a: float, b: float, least: float) -> None:
    found = relative_difference(a, b, least)
    assert 0 <= found <= 2
    assert found == relative_difference(b, a, least)
    assert found <= relative_difference(a, b) or math.isclose(found, relative_difference(a, b))
