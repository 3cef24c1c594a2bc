"""Posterior of the number of demonstrations that a level takes, from success rates (BabyAI, appendix A.2)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError, needed

TARGET = 0.99
"""Success rate of a level that is solved."""
LOWEST = 0.95
"""Points below this success rate are left out: the curve is fitted where it crosses the target."""
FEWEST = 4
"""Points that a curve is fitted to, at least."""
CREDIBLE = 0.99
"""Probability of an interval."""
_DRAWS = 20_000
_GRID = 200


@dataclass(frozen=True)
class Curve:
    """Success rate over the number of samples.

    Attributes:
        samples: [G] numbers, on a logarithmic scale.
        mean, std: [G] of the expected success rate.
        low, median, high: quantiles of the smallest number whose expected success rate is the target, among the curves
            that cross it; None where less than half of them do.
        below, above: probability that the target is reached at the smallest number already, and that it is not reached
            at the largest.
    """

    samples: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    low: float | None
    median: float | None
    high: float | None
    below: float
    above: float


def fit(samples: Sequence[float], rates: Sequence[float]) -> Curve:
    """Fit the paper's Gaussian process to success rates, and return its posterior.

    The expected success rate in percent is 99 + σ_f f(log2 k), with f of a Gaussian process with a kernel of radial
    basis functions; what is measured has white noise beside (equations 1 to 4). The scales, the length and the noise
    maximize the likelihood of the points. The paper evaluates equation 5 on a grid; here curves are drawn on it.

    Args:
        samples: numbers of demonstrations, of each run.
        rates: success rate of each run, in [0, 1].

    Raises:
        ConfigurationError: fewer than FEWEST runs reach LOWEST, or all of them have one number of demonstrations.
        MissingExtra: scikit-learn is not installed.
    """
    kept = [(k, rate) for k, rate in zip(samples, rates, strict=True) if rate >= LOWEST]
    if len(kept) < FEWEST or len({k for k, _ in kept}) < 2:
        raise ConfigurationError(
            f"a curve takes {FEWEST} runs of at least two sizes with a success rate of {LOWEST:.0%} or more, and there "
            f"are {len(kept)}: train with more demonstrations"
        )
    x = np.log2([k for k, _ in kept])[:, None]
    y = 100 * (np.array([rate for _, rate in kept]) - TARGET)
    grid = np.linspace(x.min(), x.max(), _GRID)[:, None]
    process = _process()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hyperparameters at their bounds, as where all points are alike
        process.fit(x, y)
    mean, covariance = process.predict(grid, return_cov=True)
    covariance = covariance - process.kernel_.k2.noise_level * np.eye(
        _GRID
    )  # of the expected rate, not of what is measured
    paths = np.random.default_rng(0).multivariate_normal(mean, covariance, _DRAWS, method="eigh") >= 0
    crossed, first = paths.any(1), paths.argmax(1)
    numbers = 2.0 ** grid[:, 0]
    tail = (1 - CREDIBLE) / 2
    found = np.quantile(numbers[first[crossed]], (tail, 0.5, 1 - tail)).tolist() if crossed.mean() > 0.5 else [None] * 3
    std = np.sqrt(np.clip(np.diag(covariance), 0, None))
    below, above = float(paths[:, 0].mean()), float(1 - crossed.mean())
    return Curve(numbers, TARGET + mean / 100, std / 100, *found, below=below, above=above)


def _process() -> Any:
    """Return scikit-learn's process with the paper's kernel, whose second part is the noise."""
    with needed("benchmarks.sample_efficiency", "efficiency"):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(2.0, (0.3, 30.0)) + WhiteKernel(0.1, (1e-3, 10.0))
    return GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
