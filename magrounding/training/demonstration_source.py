"""DemonstrationSource: hands demonstrations to learners in the form of rollouts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from magrounding.agents.policy import LABELS, OTHERS
from magrounding.teams.player import Player
from magrounding.texts import content_keys, gather_texts
from magrounding.training.clock import Clock
from magrounding.training.demonstrations import Demonstrations
from magrounding.training.rollout import FinishedEpisodes, Rollout, others_of, share_rewards
from magrounding.training.trajectory import Texts, Trajectory, Truncations


class DemonstrationSource:
    """Source of demonstrations, in place of a RolloutWorker's games; no game is played, so none is ever finished.

    The rows of all games are one stream, cut into chunks of T steps and the boundary observation. A rollout is B
    chunks; each epoch goes through all of them in an order of its own. Which chunks a rollout holds is decided by the
    seed and the steps before it. A recurrent policy meets every chunk with a fresh memory, even in mid-game.

    With `carry_memory` an epoch lays the games, in an order of its own, in B streams side by side, and a rollout is the
    next T steps of each: what a player remembers (`Player.memory`, which the learner fills in: `Trajectory.carried`)
    goes on from rollout to rollout. Only where an epoch begins does memory start in mid-game.

    Players, one for each agent, give the memory with which a chunk begins, and play nothing. The other arguments are
    those of `RolloutWorker`.
    """

    def __init__(
        self,
        demonstrations: Demonstrations,
        players: Sequence[Player],
        num_envs: int,
        unroll: int,
        clock: Clock | None = None,
        team_reward: float = 0.0,
        *,
        carry_memory: bool = False,
    ) -> None:
        self._carries = carry_memory
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
        self._discount = (self._acted & following).astype(np.float32)
        self._nonterminal = self._acted & acting
        self.num_chunks = -(-len(shown.game) // unroll)
        self._first = np.flatnonzero(self._restarts)  # the first row of each game
        self._rows = np.diff(np.append(self._first, len(shown.game)))
        self._order: tuple[int, np.ndarray] = -1, self._first  # an epoch, and its rows in the order of the streams

    def start(self, seed: int) -> None:
        """Choose the order of the chunks."""
        self._seed = seed

    def collect(self, beta: float = 0.0, steps: int = 0) -> Rollout:
        """The chunks that follow `steps` steps of learning; there is no teacher, so `beta` is ignored."""
        since = time.perf_counter()
        shown, T = self.demonstrations, self.unroll
        if self._carries:
            index, inside, fresh = self._next_of_streams(steps)
        else:
            index = self._draw(steps) * T + np.arange(T + 1)[:, None]  # [T+1, B] rows of the stream
            inside = index[:-1] < len(shown.game)  # the last chunk is filled up with rows in which no agent acts
            index, fresh = np.minimum(index, len(shown.game) - 1), True
        n = shown.header.agents
        trajectories = [self._trajectory(i, index, inside, fresh, steps) for i in range(n)]
        self.clock.add("teaching", since)
        return Rollout(trajectories, FinishedEpisodes.of([], n))

    def snapshot(self) -> dict[str, np.ndarray]:
        """The seed: all else follows from the steps."""
        return {"seed": np.array([self._seed], np.int64)}

    def resume(self, snapshot: dict[str, np.ndarray], seed: int) -> None:
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

    def _next_of_streams(self, steps: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """[T+1, B] rows of the next steps of all streams, [T, B] bool which are there, and whether an epoch begins."""
        updates, T = steps // (self.unroll * self.num_envs), self.unroll
        length = -(-len(self.demonstrations.game) // self.num_envs)
        chunks = -(-length // T)
        epoch, chunk = divmod(updates, chunks)
        if self._order[0] != epoch:
            games = np.random.default_rng((self._seed, epoch)).permutation(len(self._first))
            rows = np.repeat(self._first[games] - np.cumsum(self._rows[games]) + self._rows[games], self._rows[games])
            self._order = epoch, rows + np.arange(len(rows))
        place = np.arange(self.num_envs) * length + chunk * T + np.arange(T + 1)[:, None]
        end = (np.arange(self.num_envs) + 1) * length
        rows = self._order[1]
        inside = (place < end) & (place < len(rows))
        return rows[np.minimum(place, len(rows) - 1)], inside[:-1], chunk == 0

    def _texts(self, i: int, index: np.ndarray, names: tuple[str, ...]) -> Texts:
        """Return what agent i read in rows [T+1, B], of fields that are read together."""
        shown, own = self.demonstrations, self._players[i].spec.unshared_texts.intersection(names)
        rows, place = np.unique(index if own else shown.game[index], return_inverse=True)
        game = shown.game[rows] if own else rows
        found = {name: shown.texts[name][game] for name in names if name in shown.texts}
        ids = gather_texts(found | {name: shown.observation[name][rows, i] for name in own}, names, len(rows))
        if own:  # most rows show what the row before did
            _, first, same = np.unique(content_keys(ids), return_index=True, return_inverse=True)
            ids, place = {name: array[first] for name, array in ids.items()}, same.reshape(-1)[place]
        return Texts(ids, place.reshape(index.shape).astype(np.int64))

    def _trajectory(self, i: int, index: np.ndarray, inside: np.ndarray, fresh: bool, steps: int) -> Trajectory:
        shown, now, player = self.demonstrations, index[:-1], self._players[i]
        policy = player.policy
        memory = policy.initial_memory(self.num_envs) if fresh else player.memory
        memory = None if memory is None else memory.to(player.device)
        carried = None
        if self._carries and memory is not None:
            carried = player.memory = torch.zeros_like(memory)
        seed = int(np.random.SeedSequence((self._seed, steps, i)).generate_state(1)[0])
        drawn = policy.draw_record(index.shape, torch.Generator().manual_seed(seed))
        nothing = np.zeros(0, np.int64)
        seen = {name: array for name, array in shown.observation.items() if name not in player.spec.unshared_texts}
        labels = np.zeros((*index.shape, shown.labels.shape[-1]), np.bool_)
        labels[:-1] = shown.labels[now, i]
        extras = {LABELS: labels}
        if OTHERS in policy.needs:
            acted = np.moveaxis(self._acted[now], -1, 0) & inside
            extras[OTHERS] = others_of(i, np.moveaxis(shown.actions[now], -1, 0), acted)
        return Trajectory(
            observation={name: array[index, i] for name, array in seen.items()},
            texts={name: self._texts(i, index, names) for name, names in policy.reads.items()},
            truncations=Truncations(  # true last observations are rows of the stream
                (nothing, nothing),
                {name: array[:0, i] for name, array in seen.items()},
                dict.fromkeys(policy.reads, nothing),
            ),
            logits=np.zeros((*now.shape, shown.labels.shape[-1]), np.float32),
            value=np.zeros(now.shape, np.float32),
            action=shown.actions[now, i],
            reward=self._rewards[now, i],
            alive=self._acted[now, i] & inside,
            discount=self._discount[now, i],
            nonterminal=self._nonterminal[now, i],
            memory=memory,
            last_memory=memory,
            restarts=self._restarts[index],
            last_action=np.where(self._restarts[index], -1, shown.actions[np.maximum(index - 1, 0), i]),
            record={name: tensor.numpy() for name, tensor in drawn.items()},
            extras=extras,
            carried=carried,
        )
