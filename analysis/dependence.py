"""How alike neighbours in a series are: autocorrelation, block lengths, and blocks to resample.

Times of steps that follow each other are alike, so 600 steps are fewer than 600 independent values.
Everything here is given a series in its order and tells by how much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profrun.analysis.step_time import Floats

SIGNIFICANT = 2.0
"""An autocorrelation counts where it is above so many times sqrt(log10(n) / n) (Politis & White 2004)."""
QUIET_LAGS = 5
"""Values that are further apart count as independent where so many lags in a row do not count."""
MOST_LAG = 0.25
"""Longest lag that is looked at, as a part of the series."""
CHUNK = 4_000_000
"""Most numbers of a chunk of resampled blocks, 32 MB."""


@dataclass(frozen=True)
class Dependence:
    """How the values of a series depend on earlier ones.

    Attributes:
        correlations: autocorrelations from lag 0 on, tapered to 0, float64, shape (lags,).
        block: mean length of the blocks with which the stationary bootstrap resamples it best, in values.
    """

    correlations: Floats
    block: float

    def times(self, columns: Floats) -> Floats:
        """The covariance matrix of the series, in units of its variance, times columns.

        Args:
            columns: float64, shape (n, k).
        """
        n, reach = len(columns), len(self.correlations)
        size = 1 << (n + 2 * reach).bit_length()
        kernel = np.zeros(size)
        kernel[:reach] = self.correlations
        kernel[size - reach + 1 :] = self.correlations[:0:-1]
        spectrum = np.fft.rfft(kernel)[:, None] * np.fft.rfft(columns, size, axis=0)
        return np.asarray(np.fft.irfft(spectrum, size, axis=0)[:n], dtype=np.float64)


def dependence(series: Floats) -> Dependence:
    """Autocorrelations of a series with a flat-top taper, and the length of its blocks.

    The taper and the length are those of Politis & White, "Automatic Block-Length Selection for the Dependent
    Bootstrap", Econometric Reviews 23, 2004, as corrected by Patton, Politis & White, ibid. 28, 2009.

    Args:
        series: float64, shape (n,), in its order.
    """
    n = len(series)
    most = int(n * MOST_LAG)
    centred = series - series.mean()
    variance = float(centred @ centred)
    if most < QUIET_LAGS or variance <= 0:
        return Dependence(np.ones(1), 1.0)
    spectrum = np.fft.rfft(centred, 1 << (2 * n).bit_length())
    found = np.fft.irfft(np.abs(spectrum) ** 2)[: most + 1] / variance
    quiet = np.abs(found[1:]) < SIGNIFICANT * math.sqrt(math.log10(n) / n)
    runs = np.convolve(quiet, np.ones(QUIET_LAGS), "valid") >= QUIET_LAGS
    last = int(np.argmax(runs)) if runs.any() else most // 2
    width = min(most, 2 * last)
    if not width:
        return Dependence(np.ones(1), 1.0)
    lags = np.arange(width + 1)
    tapered = np.clip(2 * (1 - lags / width), 0, 1) * found[: width + 1]
    spread = float(2 * (lags * tapered).sum())
    level = float(1 + 2 * tapered[1:].sum())
    block = abs(spread / level) ** (2 / 3) * n ** (1 / 3) if level > 0 else math.inf
    return Dependence(tapered, float(np.clip(block, 1, min(3 * math.sqrt(n), n / 3))))


def block_sums(rows: Floats, block: float, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Sums over resampled series: stationary bootstrap (Politis & Romano, JASA 89, 1994).

    A resampled series is made of stretches of the series, of geometric length and from any place, until it is
    as long; the end is followed by the beginning.

    Args:
        rows: float64, shape (n, k), in the order of the series.
        block: mean length of a stretch.
        resamples: how many resampled series.
        rng: where randomness comes from.

    Yields:
        Sums of the rows, float64, shape (some resamples, k).
    """
    n = len(rows)
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    pieces = int(n / block + 6 * math.sqrt(n / block)) + 10
    batch = max(1, CHUNK // (pieces * rows.shape[1]))
    for done in range(0, resamples, batch):
        count = min(batch, resamples - done)
        ends = np.cumsum(rng.geometric(1 / block, (count, pieces)), axis=1).clip(max=n)
        ends[:, -1] = n
        lengths = np.diff(ends, axis=1, prepend=0)
        starts = rng.integers(0, n, (count, pieces))
        stops = starts + lengths
        over = stops > n
        total = sums[np.where(over, n, stops)] - sums[starts] + sums[np.where(over, stops - n, 0)]
        yield total.sum(axis=1)
