"""EpisodeReplay: the latest steps of B games in rings, from which whole episodes are drawn evenly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.errors import ConfigurationError


class EpisodeBatch(NamedTuple):
    """b whole episodes of at most T steps, S real steps in all, time first.

    Attributes:
        seen: [S, …] of each key that was stored.
        action: [S, n] int64.
        reward: [S] float32.
        truncated: [S] bool, the step ended in a time-out that is no loss.
        real: [T, b] bool, where the real steps are: the first ones of each episode.
    """

    seen: dict[str, np.ndarray]
    action: np.ndarray
    reward: np.ndarray
    truncated: np.ndarray
    real: np.ndarray


class EpisodeReplay:
    """The latest steps of B games, and which whole episodes are among them.

    Every game has a ring of its own, and all are written in step, so an episode is a stretch of a ring. It is forgotten
    when its first step is written over.

    Args:
        steps: to keep, of all games together.
        num_envs: B.
        longest: steps of the longest episode.

    Raises:
        ConfigurationError: too few steps to hold a whole episode of every game.
    """

    def __init__(self, steps: int, num_envs: int, longest: int) -> None:
        self._ring = steps // num_envs
        if self._ring <= longest:
            raise ConfigurationError(
                f"a replay of {steps:,} steps leaves {self._ring} for each of {num_envs} games, whose episodes may "
                f"take {longest}: keep more than {longest * num_envs:,} steps, or play fewer games at once"
            )
        self._kept: dict[str, np.ndarray] = {}  # [B, ring, …]
        self._added = 0  # steps of each game
        self._open = np.zeros(num_envs, np.int64)  # steps of the episode in progress
        self._length = np.zeros((num_envs, self._ring), np.int64)  # of the episode that begins at a step, or 0

    @property
    def num_episodes(self) -> int:
        """Whole episodes that can be drawn."""
        return int(np.count_nonzero(self._length))

    def add(
        self,
        seen: dict[str, np.ndarray],
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        truncated: np.ndarray,
    ) -> None:
        """Add one step of all games [B, …]: of each key; whether the episode ended; by a time-out that is no loss."""
        at = self._added % self._ring
        arrays = {f"obs.{name}": array for name, array in seen.items()}
        for name, array in (arrays | {"act": action, "rew": reward, "truncated": truncated}).items():
            if name not in self._kept:
                self._kept[name] = np.zeros((len(array), self._ring, *array.shape[1:]), array.dtype)
            self._kept[name][:, at] = array
        self._added += 1
        self._open += 1
        self._length[:, at] = 0
        self._length[done, (at + 1 - self._open[done]) % self._ring] = self._open[done]
        self._open[done] = 0

    def sample(self, count: int, rng: np.random.Generator) -> EpisodeBatch:
        """Draw some different episodes, all equally likely; fewer than `count` where there are no more."""
        starts = np.flatnonzero(self._length)
        game, first = np.divmod(rng.choice(starts, min(count, len(starts)), replace=False), self._ring)
        length = self._length[game, first]
        step = np.arange(length.max())[:, None]
        real = step < length
        game, at = np.broadcast_to(game, real.shape)[real], ((first + step) % self._ring)[real]
        drawn = {name: array[game, at] for name, array in self._kept.items()}
        action, reward, truncated = (drawn.pop(name) for name in ("act", "rew", "truncated"))
        seen = {name.removeprefix("obs."): array for name, array in drawn.items()}
        return EpisodeBatch(seen, action, reward.astype(np.float32), truncated, real)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that decides what is drawn from now on, as arrays for `restore`: of each ring what is filled."""
        filled = min(self._added, self._ring)
        kept = {f"kept.{name}": array[:, :filled].copy() for name, array in self._kept.items()}
        return {**kept, "added": np.array([self._added]), "open": self._open.copy(), "length": self._length.copy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Put back what `snapshot` took, into a replay of the same options that is still empty."""
        if "added" in arrays:
            self._added, self._open[:] = int(arrays["added"][0]), arrays["open"]
        else:  # as long as QMIX's replay was tianshou's, checkpoints held the counters of its rings
            size, at = (int(arrays[f"ring.{name}"][0]) for name in ("_size", "_insertion_idx"))
            self._added, self._open[:] = at + (self._ring if size == self._ring else 0), arrays["ring._ep_len"]
        self._length[:] = arrays["length"].reshape(self._length.shape)
        for name, array in arrays.items():
            if name.startswith("kept.") and name != "kept.terminated":
                whole = np.zeros((len(array), self._ring, *array.shape[2:]), array.dtype)
                whole[:, : array.shape[1]] = array
                self._kept[name.removeprefix("kept.")] = whole

    def drop_open(self) -> None:
        """Leave out episodes that have not ended: the next step of every game is the first of a new one."""
        self._open[:] = 0
