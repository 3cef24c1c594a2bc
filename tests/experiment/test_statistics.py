"""Statistics against independent computations."""

import numpy as np
import pytest
from scipy.stats import bootstrap, norm, trim_mean

from magrounding.experiment.statistics import bootstrap_interval, interquartile_mean, summarise


@pytest.mark.parametrize("size", [4, 5, 8, 10, 40])
def test_the_interquartile_mean_drops_a_quarter_at_each_end(size):
    scores = np.random.default_rng(size).normal(size=size)
    kept = np.sort(scores)[size // 4 : size - size // 4]
    assert interquartile_mean(scores) == pytest.approx(kept.mean())


def test_extremes_do_not_move_it():
    scores = np.linspace(0, 1, 12)
    wild = scores.copy()
    wild[0], wild[-1] = -1e6, 1e6
    assert interquartile_mean(wild) == pytest.approx(interquartile_mean(scores))


def test_the_interval_is_a_stratified_bootstrap():
    """The same by another road: task by task, sample by sample, in plain Python."""
    scores = np.random.default_rng(0).random((6, 3))
    low, high = bootstrap_interval(scores, resamples=4000)
    rng = np.random.default_rng(1)
    means = []
    for _ in range(4000):
        sample = sorted(scores[rng.integers(6), task] for task in range(3) for _ in range(6))
        means.append(sum(sample[4:14]) / 10)
    means.sort()
    assert low == pytest.approx(means[100], abs=0.01)
    assert high == pytest.approx(means[3900], abs=0.01)


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_the_interval_is_scipys(seeds):
    """Percentile bootstrap of the trimmed mean over the seeds of one task, by SciPy's own program."""
    scores = np.random.default_rng(seeds).random(seeds)
    found = bootstrap(
        (scores,), lambda x, axis: trim_mean(x, 0.25, axis), method="percentile", n_resamples=20_000, rng=0
    ).confidence_interval
    statistics = summarise(scores)
    assert (statistics.low, statistics.high) == pytest.approx((found.low, found.high), abs=0.03)
    assert (statistics.mean, statistics.std) == pytest.approx((scores.sum() / seeds, scores.std(ddof=1)))
    assert statistics.iqm == trim_mean(scores, 0.25)


def test_strata_stay_apart():
    """Two tasks of one certain score each: any resampling within them gives the same mean."""
    scores = np.tile([0.0, 1.0], (8, 1))
    assert bootstrap_interval(scores) == (pytest.approx(0.5), pytest.approx(0.5))


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(2)
    hits = [
        low <= 0 <= high
        for low, high in (bootstrap_interval(rng.normal(size=(40, 1)), resamples=300) for _ in range(400))
    ]
    slack = norm.ppf(0.9999) * np.sqrt(0.95 * 0.05 / 400)
    assert 0.92 - slack < np.mean(hits) < 0.95 + slack  # percentile intervals of small samples fall a little short


def test_a_summary_of_seeds():
    summary = summarise([0.2, 0.4, 0.6, 0.8])
    assert (summary.seeds, summary.mean, summary.iqm) == (4, pytest.approx(0.5), pytest.approx(0.5))
    assert summary.std == pytest.approx(np.sqrt(0.2 / 3))
    assert 0.2 <= summary.low < 0.5 < summary.high <= 0.8
    alone = summarise([0.7])
    assert (alone.seeds, alone.mean, alone.std, alone.low, alone.high) == (1, 0.7, 0.0, 0.7, 0.7)
