"""DemonstrationSource: hands demonstrations to learners in the form of rollouts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from magrounding.agents.player import Player
from magrounding.training.clock import Clock
from magrounding.training.demonstrations import Demonstrations
from magrounding.training.rollout import Column, Documents, FinishedGames, OthersColumn, Rollout, share_rewards


class DemonstrationSource:
    """Gives learners demonstrations as a RolloutWorker gives them games; nobody plays, so no game is ever finished.

    The rows of all games are one stream, cut into chunks of T steps and the boundary observation. A rollout is B
    chunks; each epoch goes through all of them in an order of its own. Which chunks a rollout holds is decided by the
    seed and the steps before it. A recurrent policy meets every chunk with a fresh memory, even in mid-game.

    Args:
        demonstrations: what to show.
        players: those who learn, one for each agent; they are asked for fresh memories only.
        num_envs: B.
        unroll: T.
        clock: where the seconds are booked.
        team_reward: part of each agent's reward that is the acting agents' mean instead of its own.
    """

    def __init__(
        self,
        demonstrations: Demonstrations,
        players: Sequence[Player],
        num_envs: int,
        unroll: int,
        clock: Clock | None = None,
        team_reward: float = 0.0,
    ) -> None:
        self.demonstrations = shown = demonstrations
        self.num_envs, self.unroll = num_envs, unroll
        self.clock = clock or Clock()
        self._players = list(players)
        self._seed = 0
        self._acted = shown.acted
        self._rewards = share_rewards(shown.rewards.T, self._acted.T, team_reward).T.astype(np.float32)
        self._restarts = np.diff(shown.game, prepend=-1) != 0
        goes_on = np.append(~self._restarts[1:], False)[:, None]  # the next row is of the same game
        following, acting = (np.roll(flags, -1, axis=0) & goes_on for flags in (shown.alive, self._acted))
        self._worth = (self._acted & following).astype(np.float32)
        self._continues = self._acted & acting
        self.num_chunks = -(-len(shown.game) // unroll)

    def start(self, seed: int) -> None:
        """Choose the order of the chunks."""
        self._seed = seed

    def collect(self, teacher_share: float = 0.0, steps: int = 0) -> Rollout:
        """The chunks that follow `steps` steps of learning; nobody leads, so `teacher_share` is ignored."""
        since = time.perf_counter()
        shown, T = self.demonstrations, self.unroll
        index = self._draw(steps) * T + np.arange(T + 1)[:, None]  # [T+1, B] rows of the stream
        inside = index[:-1] < len(shown.game)  # the last chunk is filled up with rows in which nobody acts
        index = np.minimum(index, len(shown.game) - 1)
        used, document = np.unique(shown.game[index], return_inverse=True)
        documents = Documents(shown.manual[used], shown.goal[used], document.reshape(index.shape).astype(np.int64))
        columns = [self._column(i, index, inside, steps) for i in range(shown.header.agents)]
        nobody = FinishedGames(
            np.zeros(0, np.bool_), np.zeros(0, np.int32), np.zeros((0, shown.header.agents), np.float32)
        )
        self.clock.add("teaching", since)
        return Rollout(documents, columns, nobody)

    def snapshot(self) -> dict[str, np.ndarray]:
        """The seed: all else follows from the steps."""
        return {"seed": np.array([self._seed], np.int64)}

    def resume(self, snapshot: dict[str, np.ndarray]) -> None:
        """Go on exactly where `snapshot` was taken."""
        self._seed = int(snapshot["seed"][0])

    def _draw(self, steps: int) -> np.ndarray:
        """[B] int64, which chunks come next."""
        places = steps // (self.unroll * self.num_envs) * self.num_envs + np.arange(self.num_envs)
        epochs, places = np.divmod(places, self.num_chunks)
        chunks = np.zeros(self.num_envs, np.int64)
        for epoch in np.unique(epochs).tolist():
            order = np.random.default_rng((self._seed, epoch)).permutation(self.num_chunks)
            chunks[epochs == epoch] = order[places[epochs == epoch]]
        return chunks

    def _column(self, i: int, index: np.ndarray, inside: np.ndarray, steps: int) -> Column:
        shown, now = self.demonstrations, index[:-1]
        policy = self._players[i].policy
        memory = policy.initial_memory(self.num_envs)
        observation = {name: array[index, i] for name, array in shown.observation.items()}
        seed = int(np.random.SeedSequence((self._seed, steps, i)).generate_state(1)[0])
        noise = policy.draw_noise(index.size, torch.Generator().manual_seed(seed))
        if noise is not None:
            observation["noise"] = noise.numpy().reshape(*index.shape, *noise.shape[1:])
        return Column(
            observation=observation,
            logits=np.zeros((*now.shape, shown.labels.shape[-1]), np.float32),
            value=np.zeros(now.shape, np.float32),
            action=shown.actions[now, i],
            reward=self._rewards[now, i],
            alive=self._acted[now, i] & inside,
            worth=self._worth[now, i],
            continues=self._continues[now, i],
            cut=(np.zeros(0, np.int64), np.zeros(0, np.int64)),  # true last observations are rows of the stream
            final={name: array[:0, i] for name, array in shown.observation.items()},
            memory=None if memory is None else memory.to(self._players[i].device),
            restarts=self._restarts[index],
            labels=shown.labels[now, i],
            others=self._others(i, now, inside) if policy.models_others else None,
        )

    def _others(self, i: int, now: np.ndarray, inside: np.ndarray) -> OthersColumn:
        actions, acted = (np.moveaxis(array[now], -1, 0) for array in (self.demonstrations.actions, self._acted))
        return OthersColumn.of(i, actions, acted & inside)
