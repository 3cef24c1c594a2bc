"""Counter-based randomness: every draw is a hash of (seed, episode, stream, counter), integers only.

No generator state is carried, so the order of threads and the size of the batch cannot change an episode, and a stream
that draws more often (a new template, say) never moves what another stream decides (the map).

The hash is the finaliser of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
"""

import numpy as np
from numba import njit
from numba.core import config

TASK, TEXT, LAYOUT, DYNAMICS, ORDER = range(5)
"""Streams: what the game is, how it is worded, where things lie, what happens, in which order equals are listed."""
NUM_STREAMS = 5

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


def _hash(key, counter):
    z = key + _GAMMA * (np.uint64(counter) + np.uint64(1))
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


# Plain Python warns where uint64 wraps around, which is what a hash wants: silenced here and nowhere else.
hash64 = np.errstate(over="ignore")(_hash) if getattr(config, "DISABLE_JIT", 0) else njit(inline="always")(_hash)
"""hash64(key: uint64, counter: int) -> uint64."""


@njit
def stream_key(seed, episode, stream):
    """The uint64 key of one stream of one episode."""
    return hash64(hash64(hash64(np.uint64(0), seed), episode), stream)


@njit
def below(key, counter, n):
    """A uniform integer in [0, n), n < 2**31 (bias below n / 2**32)."""
    return np.int64(((hash64(key, counter) >> _S32) * np.uint64(n)) >> _S32)
