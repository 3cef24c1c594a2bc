"""Numbers over seeds, games or people: mean and deviation as the papers print them, interquartile mean, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import trim_mean

RESAMPLES = 2000
"""Bootstrap samples of an interval."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Statistics:
    """What is said about one quantity measured with several seeds.

    Attributes:
        seeds: how many.
        mean, std: over seeds; std is the sample deviation (n − 1), 0 for one seed.
        iqm: interquartile mean over all runs.
        low, high: ends of the bootstrap interval of the interquartile mean; both equal it where there is one seed.
    """

    seeds: int
    mean: float
    std: float
    iqm: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def interquartile_mean(scores: np.ndarray) -> float:
    """Mean of the middle half of scores of any shape, a quarter cut from each end (Agarwal et al. 2021, sec. 4.3)."""
    return float(trim_mean(np.asarray(scores, np.float64).ravel(), 0.25))


def bootstrap_interval(scores: np.ndarray, *, resamples: int = RESAMPLES) -> tuple[float, float]:
    """95 % interval of the interquartile mean by percentiles of a stratified bootstrap (Agarwal et al. 2021, sec. 4.1).

    Args:
        scores: [seeds, tasks]; seeds are drawn with replacement within each task apart.
        resamples: bootstrap samples.
    """
    scores = np.asarray(scores, np.float64)
    seeds, tasks = scores.shape
    drawn = np.random.default_rng(0).integers(seeds, size=(resamples, seeds, tasks))
    samples = scores[drawn, np.arange(tasks)].reshape(resamples, seeds * tasks)
    means = trim_mean(samples, 0.25, axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def resampled(count: int, resamples: int = RESAMPLES) -> np.ndarray:
    """Numbers [resamples, G] of G things drawn with replacement, the same ones for all that is compared."""
    return np.random.default_rng(0).integers(count, size=(resamples, count))


def mean_interval(outcomes: np.ndarray) -> Interval:
    """The mean of outcomes [G]; the difference of two is paired where theirs are subtracted one by one."""
    low, high = np.quantile(outcomes[resampled(len(outcomes))].mean(1), [0.025, 0.975])
    return Interval(float(outcomes.mean()), float(low), float(high))


def summarise(scores: Sequence[float]) -> Statistics:
    """Statistics of one quantity, one score a seed."""
    values = np.asarray(scores, np.float64)
    low, high = bootstrap_interval(values[:, None])
    return Statistics(
        seeds=len(values),
        mean=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        iqm=interquartile_mean(values),
        low=low,
        high=high,
    )
