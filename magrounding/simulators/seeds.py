"""Seeds of the games of a row: the k-th game depends on the row's seed and on k, and on nothing else."""

from __future__ import annotations

_ONES = 2**64 - 1
_STREAM = 5
"""`seeding.NUM_STREAMS`, so a stream of its own. To import it is to import numba, longer than many a worker's start."""

_SEED_BITS = 31
"""Many simulators take seeds of 32 bits, signed."""


def _hash(key: int, counter: int) -> int:
    """`seeding.hash64` in plain integers."""
    z = (key + 0x9E3779B97F4A7C15 * (counter + 1)) & _ONES
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ONES
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ONES
    return z ^ (z >> 31)


def episode_key(seed: int, episode: int) -> int:
    """A 64-bit key of one episode of one row, in a stream of its own."""
    return _hash(_hash(_hash(0, seed), episode), _STREAM)


def episode_seed(seed: int, episode: int) -> int:
    """What the env is reset with for episode k of a row: the row's seed itself for k = 0, then 31-bit hashes."""
    return seed if episode == 0 else episode_key(seed, episode) >> (64 - _SEED_BITS)
