"""EpisodeReplay: whole episodes of B games in tianshou's `VectorReplayBuffer`, to be drawn evenly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from magrounding.errors import ConfigurationError, MissingExtra

_SUBBUFFER = ("_insertion_idx", "_size", "_ep_start_idx", "_ep_len", "_ep_return")
"""What tianshou's buffer of one game knows about where it stands."""


def load_tianshou() -> Any:
    """The module `tianshou.data`; MissingExtra where it is not installed."""
    try:
        import tianshou.data
    except ImportError:
        raise MissingExtra("QMIX keeps its episodes in a replay buffer of tianshou and", "tianshou") from None
    return tianshou.data


class EpisodeBatch(NamedTuple):
    """b whole episodes of at most T steps, S real steps in all, time first.

    Attributes:
        seen: [S, …] of each key that was stored.
        action: [S, n] int64.
        reward: [S] float32.
        cut: [S] bool, the step ended in a time-out that is no loss.
        real: [T, b] bool, where the real steps are: the first ones of each episode.
    """

    seen: dict[str, np.ndarray]
    action: np.ndarray
    reward: np.ndarray
    cut: np.ndarray
    real: np.ndarray


class EpisodeReplay:
    """The latest steps of B games, and which whole episodes are among them.

    Every game has a ring of its own, which is written in order of time, so an episode is a stretch of a ring. It is
    forgotten when its first step is written over.

    Args:
        steps: to keep, of all games together.
        num_envs: B.
        longest: steps of the longest episode.

    Raises:
        ConfigurationError: too few steps to hold a whole episode of every game.
        MissingExtra: there is no tianshou.
    """

    def __init__(self, steps: int, num_envs: int, longest: int) -> None:
        data = load_tianshou()
        self._ring = steps // num_envs
        if self._ring <= longest:
            raise ConfigurationError(
                f"a replay of {steps:,} steps leaves {self._ring} for each of {num_envs} games, whose episodes may "
                f"take {longest}: keep more than {longest * num_envs:,} steps, or play fewer games at once"
            )
        self._make_batch = data.Batch
        self._buffer = data.VectorReplayBuffer(self._ring * num_envs, num_envs, ignore_obs_next=True)
        self._length = np.zeros(self._ring * num_envs, np.int64)  # of the episode that begins at an index, or 0

    @property
    def num_episodes(self) -> int:
        """Whole episodes that can be drawn."""
        return int(np.count_nonzero(self._length))

    def add(
        self, seen: dict[str, np.ndarray], action: np.ndarray, reward: np.ndarray, done: np.ndarray, cut: np.ndarray
    ) -> None:
        """One step of all games.

        Args:
            seen: [B, …] of each key.
            action: [B, n] int64.
            reward: [B] of the team.
            done, cut: [B] bool, the episode ended; by a time-out that is no loss.
        """
        batch = self._make_batch(
            obs=self._make_batch(**seen), act=action, rew=reward, terminated=done & ~cut, truncated=cut
        )
        index, _, length, start = self._buffer.add(batch)
        self._length[index] = 0
        self._length[start[done]] = length[done]

    def sample(self, count: int, rng: np.random.Generator) -> EpisodeBatch:
        """Some different episodes, all equally likely; fewer than `count` where there are no more."""
        starts = np.flatnonzero(self._length)
        start = rng.choice(starts, min(count, len(starts)), replace=False)
        length = self._length[start]
        first, step = start % self._ring, np.arange(length.max())[:, None]
        real = step < length
        index = (start - first + (first + step) % self._ring)[real]
        kept = self._buffer
        seen = {str(name): kept.obs[name][index] for name in kept.obs.get_keys()}
        return EpisodeBatch(seen, kept.act[index], kept.rew[index].astype(np.float32), kept.truncated[index], real)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that decides what is drawn from now on, as arrays for `restore`: of each ring what is filled."""
        rings = self._buffer.buffers
        arrays = {f"ring.{name}": np.array([getattr(ring, name) for ring in rings]) for name in _SUBBUFFER}
        arrays["length"] = self._length.copy()
        if len(self._buffer):
            filled = int(arrays["ring._size"].max())
            stored = {f"obs.{name}": self._buffer.obs[name] for name in self._buffer.obs.get_keys()}
            stored |= {name: self._buffer.get(slice(None), name) for name in ("act", "rew", "terminated", "truncated")}
            for name, array in stored.items():
                arrays[f"kept.{name}"] = array.reshape(len(rings), self._ring, *array.shape[1:])[:, :filled].copy()
        return arrays

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Put back what `snapshot` took, into a replay of the same options that is still empty."""
        self._length[:] = arrays["length"]
        kept = {name.removeprefix("kept."): array for name, array in arrays.items() if name.startswith("kept.")}
        if not kept:
            return
        whole = {}
        for name, array in kept.items():
            whole[name] = np.zeros((len(array), self._ring, *array.shape[2:]), array.dtype)
            whole[name][:, : array.shape[1]] = array
            whole[name] = whole[name].reshape(-1, *array.shape[2:])
        seen = {name.removeprefix("obs."): whole.pop(name) for name in list(whole) if name.startswith("obs.")}
        done = whole["terminated"] | whole["truncated"]
        batch = self._make_batch
        self._buffer.set_batch(batch(obs=batch(**seen), done=done, **whole))
        # tianshou can save itself as HDF5 or a pickle only: these numbers are what its rings know beside their content.
        for b, ring in enumerate(self._buffer.buffers):
            for name in _SUBBUFFER:
                setattr(ring, name, arrays[f"ring.{name}"][b].item())
            ring.last_index[0] = (ring._insertion_idx - 1) % self._ring
            self._buffer.last_index[b] = b * self._ring + ring.last_index[0]
            self._buffer._lengths[b] = len(ring)

    def drop_open(self) -> None:
        """Leave out episodes that have not ended: the next step of every game is the first of a new one."""
        for ring in self._buffer.buffers:  # their steps have no length here, so they are never drawn
            ring._ep_start_idx, ring._ep_len, ring._ep_return = ring._insertion_idx, 0, 0.0
