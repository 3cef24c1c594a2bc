"""Statistics against independent computations."""

import numpy as np
import pytest
from scipy.stats import beta, bootstrap, norm, trim_mean

from magrounding.experiment.tables import Summary, tidy
from magrounding.statistics import Reached, interquartile_mean, mean_interval, statistics_of


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 16, 40, 101])
def test_it_is_scipys_to_the_bit(size):
    scores = np.random.default_rng(size).normal(size=(50, size))
    scores[:10] = scores[:10].round()  # many are equal
    assert (interquartile_mean(scores) == trim_mean(scores, 0.25, axis=1)).all()
    assert interquartile_mean(scores[0]) == trim_mean(scores[0], 0.25)


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_the_interval_is_scipys(seeds):
    """Percentile bootstrap of the trimmed mean over the seeds of one task, by SciPy's own program."""
    scores = np.random.default_rng(seeds).random(seeds)
    found = bootstrap(
        (scores,), lambda x, axis: trim_mean(x, 0.25, axis), method="percentile", n_resamples=20_000, rng=0
    ).confidence_interval
    statistics = statistics_of(scores)
    assert (statistics.low, statistics.high) == pytest.approx((found.low, found.high), abs=0.03)
    assert (statistics.mean, statistics.std) == pytest.approx((scores.sum() / seeds, scores.std(ddof=1)))
    assert statistics.iqm == trim_mean(scores, 0.25)


def wins(*rates, games=200):
    return statistics_of([Reached(rate, games, is_share=True) for rate in rates])


def test_the_interval_of_one_seed_is_that_of_its_games():
    found, expected = wins(0.85), beta(170.5, 30.5).ppf([0.025, 0.975])
    assert (found.low, found.high) == (pytest.approx(expected[0], abs=1e-3), pytest.approx(expected[1], abs=1e-3))
    assert (found.seeds, found.games) == (1, 200)


@pytest.mark.parametrize("seeds", [1, 3, 5])
def test_intervals_over_games_and_seeds_cover(seeds):
    """Games are harder or easier for all seeds alike, as all of them meet the same ones."""
    rng, hits = np.random.default_rng(seeds), 0
    for _ in range(120):
        hard = rng.normal(size=200)
        rates = [(1.2 + hard + rng.normal(0, 0.05) + rng.normal(size=200) > 0).mean() for _ in range(seeds)]
        found = wins(*rates)
        hits += found.low <= norm.cdf(1.2 / np.sqrt(2)) <= found.high
    assert hits / 120 > 0.88


def over_seeds(summaries, metric):
    return Summary(tidy(summaries), ("metric",))(metric)


def test_scores_have_the_deviation_from_game_to_game():
    summary = {"games": 100, "score": 10.0, "score_std": 5.0}
    found = over_seeds([summary], "score")
    assert (found.low, found.high) == (pytest.approx(9.02, abs=0.01), pytest.approx(10.98, abs=0.01))
    assert over_seeds([{**summary, "games": 1, "score_std": None}], "score").low is None


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_what_was_not_measured_does_not_count(nothing):
    assert over_seeds([{"win_rate": nothing}], "win_rate") is None
    assert over_seeds([], "win_rate") is None
    found = over_seeds([{"win_rate": nothing}, {"win_rate": 0.5, "games": 10}], "win_rate")
    assert (found.seeds, found.mean) == (1, 0.5)


def test_one_game_says_little_of_wins_and_nothing_of_scores():
    won = mean_interval(np.array([1.0]))
    assert (won.value, won.high) == (1.0, 1.0)
    assert won.low < 0.2
    assert mean_interval(np.array([3.0])) == type(won)(3.0, None, None)
