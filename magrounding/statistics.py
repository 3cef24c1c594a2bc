"""Numbers over seeds, games or people: mean and deviation as the papers print them, interquartile mean, intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

RESAMPLES = 2000
"""Bootstrap samples of an interval."""

_QUANTILES = (np.random.default_rng(1).permutation(RESAMPLES) + 0.5) / RESAMPLES
"""[RESAMPLES] how lucky the games of each bootstrap sample are."""
_ENDS = np.array([0.025, 0.975])
"""Quantiles at the ends of an interval."""
SHARES_OF_GAMES = ("win_rate", "timed_out")
"""Metrics that are shares of games, and beginnings of the names of others."""


class Interval(NamedTuple):
    """An estimate and its 95 % interval over games; None for its ends where one game says nothing of others."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Reached:
    """The result of one seed in its games.

    Attributes:
        value: mean over the games.
        games: how many; 0: not known.
        std: deviation of single games; None: not known, or it is a share of the games.
        is_share: whether it is a share of the games.
    """

    value: float
    games: int = 0
    std: float | None = None
    is_share: bool = False

    @property
    def varies(self) -> bool:
        """The variation over other games is known."""
        return self.games > 0 and (self.is_share or (self.std is not None and self.games > 1))

    def drawn(self, quantiles: np.ndarray) -> np.ndarray:
        """Quantiles [R] of the mean over all games there are, as far as the seed's games leave it open.

        Of a share Jeffreys' posterior, which also knows that 10 wins in 10 games are no certainty (Brown, Cai and
        DasGupta 2001); of another mean the normal one.
        """
        if not self.varies:
            return np.full(len(quantiles), self.value)
        from scipy.special import betaincinv, ndtri  # takes longer to import than many a command takes

        if self.is_share:
            won = min(1.0, max(0.0, self.value)) * self.games
            return betaincinv(won + 0.5, self.games - won + 0.5, quantiles)
        return self.value + ndtri(quantiles) * (self.std or 0.0) / math.sqrt(self.games)

    @property
    def interval(self) -> Interval:
        """The mean and its 95 % interval; of a share it begins at 0 where nothing was won, and ends at 1 for all."""
        low, high = map(float, self.drawn(_ENDS))
        return Interval(self.value, min(low, self.value), max(high, self.value))


@dataclass(frozen=True)
class Statistics:
    """Statistics of one quantity measured with several seeds.

    Attributes:
        seeds: how many.
        mean, std: over seeds; std is the sample deviation (n − 1), 0 for one seed.
        iqm: interquartile mean over all runs.
        low, high: ends of its 95 % interval over seeds and games; None where neither says anything.
        games: of each seed, the fewest where they differ; 0: not known.
        metric: the quantity.
    """

    seeds: int
    mean: float
    std: float
    iqm: float
    low: float | None
    high: float | None
    games: int = 0
    metric: str = ""

    @property
    def estimate(self) -> Interval:
        """The interquartile mean and its interval."""
        return Interval(self.iqm, self.low, self.high)

    def to_dict(self) -> dict[str, float | None]:
        """JSON-able."""
        content = asdict(self)
        del content["metric"]
        return content


def resampled(count: int, resamples: int = RESAMPLES) -> np.ndarray:
    """Numbers [resamples, G] of G things drawn with replacement, the same ones for all that is compared."""
    return np.random.default_rng(0).integers(count, size=(resamples, count))


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The means [...] of values [..., N] without the lowest and the highest quarter: SciPy's `trim_mean`, bit for bit.

    To import `scipy.stats` takes half a second.
    """
    count = values.shape[-1]
    cut = count // 4
    return np.partition(values, (cut, count - cut - 1))[..., cut : count - cut].mean(-1)


def mean_interval(outcomes: np.ndarray) -> Interval:
    """The mean of outcomes [G] of games; the difference of two is paired where theirs are subtracted one by one.

    Of games won and lost (1 and 0) the interval is Jeffreys', of other outcomes a bootstrap over games.
    """
    outcomes = np.asarray(outcomes, np.float64)
    if not outcomes.size:
        return Interval(math.nan, None, None)
    value = float(outcomes.mean())
    if np.isin(outcomes, (0.0, 1.0)).all():
        return Reached(value, len(outcomes), is_share=True).interval
    if len(outcomes) == 1:
        return Interval(value, None, None)
    low, high = np.quantile(outcomes[resampled(len(outcomes))].mean(1), _ENDS)
    return Interval(value, float(low), float(high))


def statistics_of(scores: Sequence[float | Reached], metric: str = "") -> Statistics:
    """Statistics of one quantity, one score a seed.

    The interval is of the interquartile mean, by percentiles of a hierarchical bootstrap: in each sample seeds are
    drawn with replacement (Agarwal et al. 2021), and each seed's mean over games from what its games leave open
    (`Reached.drawn`). All seeds meet the same games, so games are as lucky for one seed of a sample as for the others.
    With one seed it is the interval over games. `metric` is the name of the quantity.
    """
    found = [each if isinstance(each, Reached) else Reached(float(each)) for each in scores]
    values = np.array([each.value for each in found])
    iqm, low, high = float(interquartile_mean(values)), None, None
    if len(found) > 1 or found[0].varies:
        drawn = np.stack([each.drawn(_QUANTILES) for each in found])
        means = interquartile_mean(np.take_along_axis(drawn.T, resampled(len(found)), 1))
        low, high = (float(end) for end in np.quantile(means, _ENDS))
        low, high = min(low, iqm), max(high, iqm)
    return Statistics(
        seeds=len(values),
        mean=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        iqm=iqm,
        low=low,
        high=high,
        games=min(each.games for each in found),
        metric=metric,
    )
