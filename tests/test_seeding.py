"""Counter-based randomness: the hash is SplitMix64, draws are uniform, streams are unrelated."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from magrounding import seeding
from magrounding.errors import ConfigurationError
from magrounding.vector import row_seeds

MASK = 2**64 - 1
EXAMPLES = [(0, 0), (0, 1), (1, 0), (MASK, 0), (2**63, 2**31), (123456789, 987654321)]


def splitmix(key, counter):
    """SplitMix64 in Python's own integers: output number `counter` of a generator whose state is `key`."""
    z = (key + 0x9E3779B97F4A7C15 * (counter + 1)) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draws(n, count, key=5):
    key = np.uint64(seeding.stream_key(key, 0, seeding.TASK))
    return np.array([seeding.below(key, counter, n) for counter in range(count)])


@pytest.mark.parametrize(("key", "counter"), EXAMPLES)
def test_the_hash_is_splitmix64(key, counter):
    assert int(seeding.hash64(np.uint64(key), counter)) == splitmix(key, counter)


def test_the_first_numbers_of_splitmix64_are_the_published_ones():
    """Seed 1234567, as listed with many implementations of the generator."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [splitmix(1234567, k) for k in range(5)] == expected
    assert [int(seeding.hash64(np.uint64(1234567), k)) for k in range(5)] == expected


def test_below_scales_the_upper_half():
    for (key, counter), n in product(EXAMPLES, (1, 2, 3, 10, 4_233_600, 2**31 - 1)):
        value = int(seeding.below(np.uint64(key), counter, n))
        assert value == ((splitmix(key, counter) >> 32) * n) >> 32
        assert 0 <= value < n


@pytest.mark.parametrize("n", [2, 3, 5, 24, 72])
def test_below_is_uniform(n):
    values = draws(n, 20_000)
    assert chisquare(np.bincount(values, minlength=n)).pvalue > 1e-4
    pairs = values[:-1:2] * n + values[1::2]
    if n < 25:
        assert chisquare(np.bincount(pairs, minlength=n * n)).pvalue > 1e-4


def test_seeds_episodes_and_streams_do_not_meet():
    keys = {
        int(seeding.stream_key(seed, episode, stream))
        for seed in range(40)
        for episode in range(40)
        for stream in range(seeding.NUM_STREAMS)
    }
    assert len(keys) == 40 * 40 * seeding.NUM_STREAMS


@pytest.mark.parametrize("other", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_neighbouring_streams_are_independent(other):
    a, b = np.uint64(seeding.stream_key(0, 0, 0)), np.uint64(seeding.stream_key(*other))
    joint = np.array([seeding.below(a, k, 5) * 5 + seeding.below(b, k, 5) for k in range(10_000)])
    assert chisquare(np.bincount(joint, minlength=25)).pvalue > 1e-4


def test_first_draws_of_consecutive_seeds_are_uniform_and_independent():
    keys = [np.uint64(seeding.stream_key(seed, 0, seeding.LAYOUT)) for seed in range(20_000)]
    first = np.array([seeding.below(key, 0, 16) for key in keys])
    assert chisquare(np.bincount(first, minlength=16)).pvalue > 1e-4
    assert chisquare(np.bincount(first[:-1:2] * 16 + first[1::2], minlength=256)).pvalue > 1e-4


def test_row_b_plays_seed_plus_b():
    assert row_seeds(5, 4).tolist() == [5, 6, 7, 8]
    assert row_seeds(np.int64(5), 2).tolist() == [5, 6]
    assert row_seeds(2**62 - 1, 2).dtype == np.int64


def test_without_a_seed_one_is_drawn():
    assert len({row_seeds(None, 1)[0].item() for _ in range(5)}) > 1


@pytest.mark.parametrize("seed", [-1, 2**62, 1.5, "7", [3]])
def test_a_seed_is_an_integer_in_range(seed):
    with pytest.raises(ConfigurationError):
        row_seeds(seed, 3)
