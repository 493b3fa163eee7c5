"""Which share of the variance of times goes with each of several causes: ``variance_shares``.

Causes go together (a hot GPU is a slow one), so the share of one depends on which others are looked at
before it. The share here is the mean over all orders: Lindeman, Merenda & Gold, "Introduction to Bivariate
and Multivariate Analysis", 1980, page 119 ff., known as LMG and as the Shapley value of R2 (Groemping,
"Estimators of Relative Importance in Linear Regression Based on Variance Decomposition", The American
Statistician 61, 2007; R package relaimpo). Factors of one cause stay together in every order (Owen, "Values
of Games with a Priori Unions", 1977). What only says when something was comes last: it gets what the causes
leave.

* A cause that can only make times longer has no negative slope (non-negative least squares).
* R2 is too high, because factors fit a part of the noise by chance. As in adjusted R2 that part is taken
  off. Neighbours are alike, so the degrees of freedom that a factor takes are counted with the
  autocorrelation of what is left.
* Intervals are from the stationary bootstrap, moved by the bias that the bootstrap itself shows.
* Times are logarithms, and those outside of the 1st and the 99th percentile count as these.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from profrun.analysis.dependence import Dependence, block_sums, dependence
from profrun.analysis.step_time import Floats

CONFIDENCE = 0.95
RESAMPLES = 400
TAIL = 0.01
"""Part of the values at each end that count as the value at that percentile."""
MOST_VALUES = 20_000
"""Of more values every k-th is used."""
RIDGE = 1e-6
"""Added to the variance of each standardised column: columns that say the same share equally."""
LEAST_FREE = 0.2
"""Part of the values that must be left as degrees of freedom."""
MOST_FACTORS = 9


@dataclass(frozen=True)
class Factor:
    """Something that times may go with.

    Attributes:
        name: what it is. cause: the cause that it belongs to.
        column: a number for each value, float64, shape (n,).
        longer: times can only get longer where the number is larger.
        last: it says when something was, not why, and gets what the causes leave.
        freedom: degrees of freedom that it takes: more than 1 where the column was made of the values.
    """

    name: str
    cause: str
    column: Floats
    longer: bool = True
    last: bool = False
    freedom: int = 1


@dataclass(frozen=True)
class Share:
    """Part of the variance that goes with a cause or factor, with its 95 % interval; all from 0 to 1."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class VarianceShares:
    """Shares of a variance; those of ``causes`` and ``rest`` add up to 1.

    Attributes:
        count: values that were used.
        spread: standard deviation of the logarithms, those at the ends at the percentiles: 0.04 is 4 %.
        causes: largest share first; 0 for one that never changed. factors: of the causes, in the same way.
        rest: what goes with none of them.
        slopes: factor -> slope of the logarithm of the time, per unit of the factor's column, by the causes
            alone; 0 for what comes last.
        block: mean length of the resampled blocks, in values.
    """

    count: int
    spread: float
    causes: tuple[Share, ...]
    factors: tuple[Share, ...]
    rest: Share
    slopes: dict[str, float]
    block: float

    def of(self, cause: str) -> Share | None:
        """The share of a cause; None where it was not looked at."""
        return next((one for one in self.causes if one.name == cause), None)


def variance_shares(
    times: Floats, factors: Sequence[Factor], *, ordered: bool = True, seed: int = 0
) -> VarianceShares | None:
    """The shares of the variance of the logarithm of times.

    Args:
        times: all above 0, float64, shape (n,), in their order in time.
        factors: at most ``MOST_FACTORS`` that change; one that never changes has no share.
        ordered: neighbours may be alike (steps of a run); False for independent values (trials).
        seed: the same seed gives the same intervals.

    Returns:
        None where the times do not vary, no factor does, or too few independent values are left to tell.
    """
    values = winsorised(np.log(times))
    stride = -(-len(values) // MOST_VALUES)
    values = values[::stride]
    changing = [one for one in factors if np.ptp(one.column[::stride]) > 0]
    if len(changing) > MOST_FACTORS:
        raise ValueError(f"at most {MOST_FACTORS} factors, not {len(changing)}")
    if not changing or len(values) < 4 or np.ptp(values) <= 0:
        return None
    raw = np.stack([one.column[::stride] for one in changing], axis=1)
    scales = raw.std(axis=0)
    columns = np.column_stack([(raw - raw.mean(axis=0)) / scales, values - values.mean()])
    model = _Model.of(columns, changing, ordered=ordered)
    if model.left < max(2.0, LEAST_FREE * len(values)):
        return None
    found = _told(model, columns, np.sqrt(values.var(ddof=1)), scales, seed)
    still = {one.cause for one in factors} - {one.name for one in found.causes}
    return replace(found, causes=(*found.causes, *(Share(name, 0.0, 0.0, 0.0) for name in sorted(still))))


def winsorised(values: Floats) -> Floats:
    """The values, those outside of the 1st and the 99th percentile moved to these (to a value that is one).

    Of fewer than 1 / ``TAIL`` / 5 values nothing is moved.
    """
    if len(values) * TAIL * 5 < 1:
        return values
    low = np.quantile(values, TAIL, method="higher")
    high = np.quantile(values, 1 - TAIL, method="lower")
    return np.clip(values, low, high)


def _told(model: _Model, columns: Floats, spread: float, scales: Floats, seed: int) -> VarianceShares:
    names = [one.name for one in model.factors]
    causes = list(dict.fromkeys(one.cause for one in model.factors))
    member = np.array([[one.cause == cause for one in model.factors] for cause in causes], dtype=np.float64)
    point = model.shares(_gram(columns)[None])
    products = _products(columns)
    rng = np.random.default_rng(seed)
    drawn = np.concatenate(
        [
            model.shares(_centred(total, columns.shape[1]))
            for total in block_sums(products, model.block, RESAMPLES, rng)
        ]
    )
    whole = np.concatenate([point, drawn])
    every = _intervals([*causes, "rest"], _complete(whole @ member.T))
    order = sorted(every[:-1], key=lambda one: -one.share)
    causes_alone = sum(1 << place for place, one in enumerate(model.factors) if not one.last)
    slopes = model.slopes(_gram(columns), causes_alone) / scales
    return VarianceShares(
        count=len(columns),
        spread=float(spread),
        causes=tuple(order),
        factors=tuple(_intervals(names, whole)),
        rest=every[-1],
        slopes=dict(zip(names, map(float, slopes), strict=True)),
        block=model.block,
    )


def _complete(shares: Floats) -> Floats:
    """Shares of causes with the rest as the last column; the first row, the estimate, has none below 0.

    Without that a cause that has nothing to do with the times has a small share of either sign.
    """
    point = np.clip(shares[:1], 0, None)
    point *= min(1.0, max(0.0, float(shares[0].sum())) / max(float(point.sum()), 1e-12))
    found = np.concatenate([point, shares[1:] - shares[:1] + point])
    return np.column_stack([found, 1 - found.sum(axis=1)])


def _intervals(names: Sequence[str], rows: Floats) -> list[Share]:
    """Shares with intervals: the first row is the estimate, the others are resampled.

    Resampled shares are on average higher or lower than the estimate; both ends are moved back by that.
    """
    tail = (1 - CONFIDENCE) / 2
    shift = rows[0] - rows[1:].mean(axis=0)
    low, high = np.quantile(rows[1:], (tail, 1 - tail), axis=0) + shift
    ends = np.clip(np.stack([rows[0], np.minimum(low, rows[0]), np.maximum(high, rows[0])]), 0, 1)
    return [Share(name, *map(float, ends[:, place])) for place, name in enumerate(names)]


def _gram(columns: Floats) -> Floats:
    return np.asarray(columns.T @ columns)


def _products(columns: Floats) -> Floats:
    """Sums of these rows give means and products: 1, the columns, and the upper triangle of products."""
    upper = np.triu_indices(columns.shape[1])
    return np.column_stack([columns, columns[:, upper[0]] * columns[:, upper[1]], np.ones(len(columns))])


def _centred(sums: Floats, width: int) -> Floats:
    """Centred products of resampled columns, shape (resamples, width, width), of sums of ``_products``."""
    upper = np.triu_indices(width)
    gram = np.zeros((len(sums), width, width))
    gram[:, upper[0], upper[1]] = gram[:, upper[1], upper[0]] = sums[:, width:-1]
    means = sums[:, :width]
    return np.asarray(gram - means[:, :, None] * means[:, None, :] / sums[:, -1, None, None])


@dataclass(frozen=True)
class _Model:
    """Factors, and what is fixed when series are resampled.

    Attributes:
        count: of values. block: length of blocks.
        freedom: degrees of freedom that each set of factors takes, by bit mask, shape (2 ** factors,).
        mean_freedom: those that the mean takes.
    """

    factors: Sequence[Factor]
    count: int
    block: float
    freedom: Floats
    mean_freedom: float

    @classmethod
    def of(cls, columns: Floats, factors: Sequence[Factor], *, ordered: bool) -> _Model:
        size, n = len(factors), len(columns)
        bare = cls(factors, n, 1.0, np.zeros(1 << size), 1.0)
        gram = _gram(columns)
        left = columns[:, -1] - columns[:, :size] @ bare.slopes(gram, -1)
        alike = dependence(left) if ordered else Dependence(np.ones(1), 1.0)
        block = max(alike.block, dependence(columns[:, -1]).block) if ordered else 1.0
        noise = columns[:, :size].T @ alike.times(columns[:, :size])
        freedom = np.zeros(1 << size)
        more = np.array([one.freedom - 1 for one in factors])
        for mask in range(1, 1 << size):
            chosen = _places(mask)
            inside = np.ix_(chosen, chosen)
            taken = np.trace(np.linalg.solve(gram[inside] + RIDGE * n * np.eye(len(chosen)), noise[inside]))
            freedom[mask] = max(float(len(chosen)), float(taken)) + float(more[chosen].sum())
        ones = np.ones((n, 1))
        mean = max(1.0, float(alike.times(ones).sum()) / n)
        return cls(factors, n, block, freedom, mean)

    @property
    def left(self) -> float:
        """Degrees of freedom of what is left."""
        return self.count - self.mean_freedom - float(self.freedom[-1])

    def shares(self, grams: Floats) -> Floats:
        """Shares of the factors.

        Args:
            grams: centred products of the columns, the values last, shape (m, factors + 1, factors + 1).

        Returns:
            float64, shape (m, factors).
        """
        explained, _ = self._fits(grams)
        whole = grams[:, -1, -1]
        best = self._best(explained)
        used = np.take_along_axis(explained, best, axis=1)
        noise = np.clip(whole - used[:, -1], 0, None) / max(self.left, 1.0)
        worth = used - noise[:, None] * self.freedom[best]
        total = worth[:, -1] + noise * (self.count - 1)
        total = np.where(total > 0, total, 1.0)
        return np.asarray(worth @ _orders(self._key()) / total[:, None])

    def slopes(self, gram: Floats, mask: int) -> Floats:
        """Slopes of the model with these factors, per standard deviation of each, shape (factors,)."""
        explained, slopes = self._fits(gram[None])
        return np.asarray(slopes[0, self._best(explained)[0, mask]])

    def _fits(self, grams: Floats) -> tuple[Floats, Floats]:
        """Explained sums of squares of each set (minus infinity where a slope has the wrong sign), shape
        (m, sets), and slopes, shape (m, sets, factors)."""
        size = len(self.factors)
        explained = np.zeros((len(grams), 1 << size))
        slopes = np.zeros((len(grams), 1 << size, size))
        longer = np.array([one.longer for one in self.factors])
        for mask in range(1, 1 << size):
            chosen = _places(mask)
            inner = grams[:, chosen[:, None], chosen[None, :]] + RIDGE * self.count * np.eye(len(chosen))
            outer = grams[:, chosen, -1]
            found = np.linalg.solve(inner, outer[:, :, None])[:, :, 0]
            wrong = (found[:, longer[chosen]] < 0).any(axis=1)
            explained[:, mask] = np.where(wrong, -np.inf, (found * outer).sum(axis=1))
            slopes[:, mask, chosen] = found
        return explained, slopes

    def _best(self, explained: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """For each set the part of it that fits best with slopes of the right signs, shape (m, sets)."""
        best = np.tile(np.arange(explained.shape[1]), (len(explained), 1))
        free = sum(1 << place for place, one in enumerate(self.factors) if not one.longer)
        worth = explained.copy()
        for mask in range(explained.shape[1]):
            for place in _places(mask & ~free):
                other = mask & ~(1 << int(place))
                better = worth[:, other] > worth[:, mask]
                best[better, mask] = best[better, other]
                worth[better, mask] = worth[better, other]
        return best

    def _key(self) -> tuple[tuple[str, bool], ...]:
        return tuple((one.cause, one.last) for one in self.factors)


def _places(mask: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The places of the bits of a mask."""
    return np.array([place for place in range(mask.bit_length()) if mask >> place & 1], dtype=np.int64)


@functools.cache
def _orders(key: tuple[tuple[str, bool], ...]) -> Floats:
    """What each set of factors counts for each factor: the mean over all orders that keep causes together.

    Args:
        key: cause, and whether it comes last, of each factor.

    Returns:
        float64, shape (2 ** factors, factors): worths of the sets times this are the worths of the factors.
    """
    found = np.zeros((1 << len(key), len(key)))
    tiers = [list(dict.fromkeys(cause for cause, last in key if last is late)) for late in (False, True)]
    members = {cause: [place for place, one in enumerate(key) if one[0] == cause] for cause, _ in key}
    orders = [
        [place for part in inner for place in part]
        for first in itertools.permutations(tiers[0])
        for second in itertools.permutations(tiers[1])
        for inner in itertools.product(*(itertools.permutations(members[one]) for one in first + second))
    ]
    for order in orders:
        mask = 0
        for place in order:
            found[mask, place] -= 1 / len(orders)
            mask |= 1 << place
            found[mask, place] += 1 / len(orders)
    return found
