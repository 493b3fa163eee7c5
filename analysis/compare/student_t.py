"""Quantiles of Student's t, without scipy: one function does not justify a dependency of tens of megabytes.

``t_quantile`` takes a probability and degrees of freedom and returns the quantile, ``t_two_sided`` takes a
value of t and returns its probability. Tests compare both with ``scipy.stats.t`` where scipy is installed.
"""

from __future__ import annotations

import functools
import math


@functools.lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t, ``probability`` in (0, 1), ``freedom`` above 0 (Welch's are not whole).

    Solved by bisection and then Newton's method on the distribution function, which is the regularised
    incomplete beta function (Abramowitz & Stegun, 26.7.1); exact to about 1e-10.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < probability and high < 1e12:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _t_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-3 * high or high < 1e-11:
            break
    value = (low + high) / 2
    for _ in range(4):  # the error is squared by each
        value -= (_t_cdf(value, freedom) - probability) / _t_density(value, freedom)
    return value


def t_two_sided(value: float, freedom: float) -> float:
    """Probability that Student's t is at least as far from 0 as ``value``: a two-sided p value."""
    if math.isinf(value):
        return 0.0
    return _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5)


def _t_density(value: float, freedom: float) -> float:
    front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(front - (freedom + 1) / 2 * math.log1p(value * value / freedom))


def _t_cdf(value: float, freedom: float) -> float:
    """P(T <= value) for value >= 0."""
    return 1 - 0.5 * _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta I_x(a, b) by its continued fraction (Abramowitz & Stegun, 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only below this point
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
    )
    # Evaluated from the innermost term outwards; the fraction needs of the order of sqrt(max(a, b)) terms.
    value = 1.0
    for m in range(20 + int(2 * math.sqrt(max(a, b))), 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        value = 1 + odd / (1 + even / value)
    return front / value
