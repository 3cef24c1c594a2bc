"""RolloutWorker: the actors. It plays B games with n policies for T steps and records what learners need."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import OTHERS, REASONS, STATE, Pass, PolicyOutput, common_diagnostics
from magrounding.brief import brief
from magrounding.capabilities import HasSnapshots, HasState, find_capability, find_halves, require_capability
from magrounding.errors import ConfigurationError
from magrounding.teams.player import Player, Shown, look, shown_to, take
from magrounding.texts import TextRecorder
from magrounding.threads import map_agents
from magrounding.training.clock import Clock
from magrounding.training.prefixes import prefixed, under
from magrounding.training.teacher import Teacher
from magrounding.training.trajectory import Texts, Trajectory, Truncations, side_by_side
from magrounding.vector import Info, Observation, StepResult, VectorEnv


@dataclass
class FinishedEpisodes:
    """Episodes that ended during a rollout, in the order of their ends.

    Not those in which a teacher ever led, nor those that a fault of their simulator ended.

    Attributes:
        won: [F] bool.
        score: [F] float32.
        length: [F] int32.
        returns: [F, n] float32.
    """

    __repr__ = brief

    won: np.ndarray
    score: np.ndarray
    length: np.ndarray
    returns: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[FinishedEpisodes], num_agents: int) -> FinishedEpisodes:
        """Several lists of episodes of n agents as one; there may be none."""
        nothing = cls(
            np.zeros(0, np.bool_), np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros((0, num_agents), np.float32)
        )
        whole = [*parts, nothing]
        return cls(*(np.concatenate([getattr(part, each.name) for part in whole]) for each in fields(cls)))


@dataclass
class Rollout:
    """T steps of B games: one trajectory for each agent, and the episodes that ended."""

    __repr__ = brief

    trajectories: list[Trajectory]
    episodes: FinishedEpisodes

    def joined(self) -> list[Trajectory]:
        """The same experience as one trajectory of n · B games, for a network that plays for all agents."""
        return [side_by_side(self.trajectories)]


class RolloutWorker:
    """Worker that plays B games with n policies and records unrolls of T steps.

    Args:
        vec: the games; `start` or `resume` comes before `collect`.
        players: one for each agent.
        unroll: T.
        clock: where the seconds of the world and of acting are booked.
        team_reward: part of each agent's reward that is the living agents' mean instead of its own.
        needs: what learners need beyond their own trajectory (`agents.policy`); what policies need is recorded as well.
        teacher: leads some games and labels every step (LABELS); None for learners who find out by themselves.
        segment: steps of the parts that learners cut games into (`Trajectory.segments`); 0: they do not.
        passes: keep what the networks compute, for their learners (`Trajectory.passes`).

    Raises:
        ConfigurationError: an unroll that is no whole number of segments.
    """

    def __init__(
        self,
        vec: VectorEnv,
        players: Sequence[Player],
        unroll: int,
        clock: Clock | None = None,
        team_reward: float = 0.0,
        needs: frozenset[str] = frozenset(),
        teacher: Teacher | None = None,
        segment: int = 0,
        passes: bool = False,
    ) -> None:
        self.vec = vec
        self.players = list(players)
        self.unroll = unroll
        self.clock = clock or Clock()
        one_network = len({id(player.policy) for player in self.players}) == 1
        # One network acts for all in less time than its agents' threads need to take turns in Python.
        self._map = map if one_network else map_agents
        self._team_reward = team_reward
        self._needs = needs.union(*(player.policy.needs for player in self.players))
        self._teacher = teacher
        self._segment = segment or unroll
        if unroll % self._segment:
            raise ConfigurationError(f"an unroll of {unroll} steps has no whole segments of {segment}")
        agents = range(len(self.players))
        # One pass acts for all agents where it is kept.
        self._groups = [agents] if passes and one_network else [[i] for i in agents]
        for first, *others in self._groups:
            for i in others:
                self.players[i].share_texts(self.players[first])
        self._keeps_passes = passes
        self._passes: list[list[Pass]] = [[] for _ in agents]  # of each group, with its first agent
        self._by_batch = any(player.policy.by_batch for player in self.players)
        self._observation: Observation
        self._info: Info
        self._shown: list[Shown] = []  # to each agent in the step that is played
        self._allocate()

    def start(self, seed: int) -> None:
        """Begin new games."""
        self._observation, self._info = self.vec.reset(seed=seed)
        self._restarted = np.ones(self.vec.num_envs, np.bool_)
        self._led = np.zeros(self.vec.num_envs, np.bool_)  # episodes in which the teacher led

    def collect(self, beta: float = 0.0, steps: int = 0) -> Rollout:
        """Play T steps; call it after the weights have changed: every text is encoded again.

        Args:
            beta: of DAgger, the probability of each game to be led by the teacher.
            steps: environment steps so far, which decide the teacher's draws.
        """
        for passes in self._passes:
            passes.clear()
        if self._teacher is not None:
            self._teacher.begin(self.vec.num_envs, beta, steps)
            self._led |= self._teacher.leads
        for player in self.players:
            player.forget_texts()
        for texts in (self._shared, *self._own):
            for recorder in texts.values():
                recorder.begin()
        for aux in self._aux:
            aux.clear()
        memories: list[list[Tensor | None]] = [[] for _ in self.players]
        episodes: list[FinishedEpisodes] = []
        truncations: list[_Truncation] = []
        for t in range(self.unroll):
            since = time.perf_counter()
            if t % self._segment == 0:
                for before, player in zip(memories, self.players, strict=True):
                    before.append(player.memory)
            self._record_observation(t)
            self.clock.add("world", since)
            self._observation, rewards, terminated, truncated, info = self._play(t)
            since = time.perf_counter()
            self._info = info
            bootstrapped = truncated & (info.lost[:, None] | (not self.vec.spec.time_limit_is_loss))
            ended = terminated | truncated | info.done[:, None]
            rewards = share_rewards(rewards.T, np.stack([kept.alive[t] for kept in self._kept]), self._team_reward)
            for i, kept in enumerate(self._kept):
                kept.reward[t] = rewards[i]
                kept.discount[t] = kept.alive[t] & (~ended | bootstrapped)[:, i]
                kept.nonterminal[t] = kept.alive[t] & ~ended[:, i]
            own = info.done & ~self._led & ~info.lost
            if info.done.any():
                episodes.append(FinishedEpisodes(info.won[own], info.score[own], info.length[own], info.returns[own]))
                if bootstrapped.any():
                    final = {name: array.copy() for name, array in info.final_observation.items()}
                    truncations.append(_Truncation(t, info.final_rows.copy(), final, bootstrapped))
            self._restarted = info.done.copy()
            self._led &= ~info.done if self._teacher is None else ~info.done | self._teacher.leads
            self.clock.add("world", since)
        self._record_observation(self.unroll)
        if self._keeps_passes and not truncations:
            since = time.perf_counter()
            for agents in self._groups:
                self._look(agents, self.unroll)
            self.clock.add("acting", since)
        n = self.vec.num_agents
        shared = {} if truncations else {names: recorder.texts() for names, recorder in self._shared.items()}
        metrics = self._diagnose()
        return Rollout(
            trajectories=[self._trajectory(i, truncations, memories[i], shared, metrics[i]) for i in range(n)],
            episodes=FinishedEpisodes.of(episodes, n),
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state of the games, as arrays for `resume`; nothing of games that cannot be kept."""
        games = find_capability(self.vec, HasSnapshots)
        if games is None:
            return {}
        return {**prefixed("vec.", games.snapshot()), "restarted": self._restarted.copy(), "helped": self._led.copy()}

    def resume(self, snapshot: dict[str, np.ndarray], seed: int) -> None:
        """Go on exactly where `snapshot` was taken, or, where games cannot be kept, with new games of `seed`."""
        if not snapshot:
            self.start(seed)
            return
        games = require_capability(self.vec, HasSnapshots)
        self._observation, self._info = games.restore(under("vec.", snapshot))
        self._restarted = snapshot["restarted"].astype(np.bool_)
        self._led = snapshot["helped"].astype(np.bool_)

    def _allocate(self) -> None:
        spec, T, B = self.vec.spec, self.unroll, self.vec.num_envs
        self._restarts = np.zeros((T + 1, B), np.bool_)
        self._aux: list[list[dict[str, np.ndarray]]] = [[] for _ in self.players]
        of_team = {text.name for text in spec.texts if text.shared}
        self._shared: _Recorders = {}
        self._own: list[_Recorders] = [{} for _ in self.players]
        for own, player in zip(self._own, self.players, strict=True):
            for names in player.policy.reads.values():
                shared = {name for name in names if name in spec} <= of_team
                (self._shared if shared else own).setdefault(names, TextRecorder(names, spec, T + 1, B))
        states = {STATE: np.zeros((T + 1, B, spec.state_size), np.int16)} if STATE in self._needs else {}
        self._kept = [  # to write to; texts and truncations are put in at the end
            Trajectory(
                observation={each.name: np.zeros((T + 1, B, *each.shape), each.dtype) for each in spec.own_fields},
                texts={},
                truncations=Truncations((np.zeros(0, np.int64), np.zeros(0, np.int64)), {}, {}),
                logits=np.zeros((T, B, spec.num_actions), np.float32),
                value=np.zeros((T, B), np.float32),
                action=np.zeros((T, B), np.int64),
                reward=np.zeros((T, B), np.float32),
                alive=np.zeros((T, B), np.bool_),
                discount=np.zeros((T, B), np.float32),
                nonterminal=np.zeros((T, B), np.bool_),
                memory=None,
                last_memory=None,
                restarts=self._restarts,
                last_action=np.zeros((T + 1, B), np.int64),
                extras=dict(states),
            )
            for _ in self.players
        ]

    def _record_observation(self, t: int) -> None:
        self._shown = []
        for i, kept in enumerate(self._kept):
            shown = shown_to(i, self._observation, self.vec.spec, self._info.document)
            for name, array in shown.observation.items():
                kept.observation[name][t] = array
            copies = {name: buffer[t] for name, buffer in kept.observation.items()}  # passes outlive the step
            self._shown.append(shown._replace(observation=copies))
            kept.last_action[t] = np.where(self._restarted, -1, self.players[i].last_action)
            if t < self.unroll:
                kept.alive[t] = self._info.alive[:, i]
            for recorder in self._own[i].values():
                recorder.add(t, shown.texts, shown.document)
        for recorder in self._shared.values():
            recorder.add(t, self._observation, self._info.document)
        self._restarts[t] = self._restarted
        if STATE in self._needs and t < self.unroll:
            self._kept[0].extras[STATE][t] = require_capability(self.vec, HasState).state()  # the same array for all

    def _play(self, t: int) -> StepResult:
        """Let all agents act and the games move; where simulators work by halves, one moves while the other thinks."""
        since, vec, teacher = time.perf_counter(), self.vec, self._teacher
        self._draw(t)
        halves = find_halves(vec) if teacher is None and not self._by_batch else None
        if halves is not None:
            for group, rows in enumerate(halves.groups):
                actions = self._act(t, np.arange(rows.start, rows.stop))
                since = self.clock.add("acting", since)
                halves.send(actions, group)
                since = self.clock.add("world", since)
            moved = halves.receive()
        else:
            actions = self._act(t)
            since = self.clock.add("acting", since)
            if teacher is not None:
                judged = teacher.label(reasons=self._needs.issuperset(REASONS))
                teacher.lead(actions)
                for i, (kept, player) in enumerate(zip(self._kept, self.players, strict=True)):
                    for name, array in judged.items():
                        self._keep(kept.extras, t, name, array[:, i], slice(None))
                    kept.action[t] = actions[:, i]
                    player.last_action = kept.action[t].copy()
                since = self.clock.add("teaching", since)
            moved = vec.step(actions)
        self.clock.add("world", since)
        return moved

    def _draw(self, t: int) -> None:
        """Draw the random numbers of `Policy.draw_record` for all games at once: halves change nothing of a run."""
        self._drawn = [p.policy.draw_record((self.vec.num_envs,), p.generator) for p in self.players]
        for i, drawn in enumerate(self._drawn):
            for name, tensor in drawn.items():
                self._keep(self._kept[i].record, t, name, tensor.numpy(), slice(None))

    def _act(self, t: int, rows: np.ndarray | None = None) -> np.ndarray:
        """Actions [R, n] int64 of some games, by default of all; each agent sees its own part."""
        some = slice(None) if rows is None else rows

        def choose(agents: Sequence[int]) -> None:
            players = [self.players[i] for i in agents]
            for i, choice in zip(agents, take(players, self._look(agents, t, rows), rows), strict=True):
                kept, player = self._kept[i], self.players[i]
                for name, array in choice.record.items():
                    self._keep(kept.record, t, name, array, some)
                if player.aux:
                    self._aux[i].append(player.aux)
                kept.action[t, some] = choice.action
                kept.logits[t, some] = choice.logits
                kept.value[t, some] = choice.value

        list(self._map(choose, self._groups))
        return np.stack([kept.action[t, some] for kept in self._kept], axis=1)

    def _look(self, agents: Sequence[int], t: int, rows: np.ndarray | None = None) -> PolicyOutput:
        """What the network of a group of agents finds in step t of some games."""
        players, shown = [self.players[i] for i in agents], [self._shown[i] for i in agents]
        records = [{name: self._kept[i].record[name][t] for name in self._drawn[i]} for i in agents]
        keep = self._keeps_passes
        seen = look(players, shown, self._restarted, records, rows, learning=True, gradients=keep)
        if keep:
            self._passes[agents[0]].append(seen)
        return seen[1]

    def _keep(
        self, kept: dict[str, np.ndarray], t: int, name: str, array: np.ndarray, rows: slice | np.ndarray
    ) -> None:
        """Keep what a learner needs of a step of some games, [R, …]."""
        if name not in kept:
            kept[name] = np.zeros((self.unroll + 1, self.vec.num_envs, *array.shape[1:]), array.dtype)
        kept[name][t, rows] = array

    def _diagnose(self) -> list[dict[str, float]]:
        """Metrics that the networks of a team count of their play, as means over living steps, for each agent."""
        diagnose = common_diagnostics(player.policy for player in self.players)
        if diagnose is None or not all(self._aux):
            return [{} for _ in self.players]
        aux = [{name: np.concatenate([step[name] for step in steps]) for name in steps[0]} for steps in self._aux]
        flat = (np.moveaxis(self._of_all(name), 0, -1).reshape(-1, len(aux)) for name in ("action", "alive"))
        found = diagnose(aux, *flat)
        return [{name: _mean(shares[:, i]) for name, shares in found.items()} for i in range(len(aux))]

    def _trajectory(
        self,
        i: int,
        truncations: Sequence[_Truncation],
        memories: Sequence[Tensor | None],
        shared: Mapping[tuple[str, ...], tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]],
        metrics: dict[str, float],
    ) -> Trajectory:
        """The trajectory of agent i; `shared` are the texts of all agents where no episode was truncated."""
        kept, reads, recorders = self._kept[i], self.players[i].policy.reads, {**self._own[i], **self._shared}
        times, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        final = {name: [array[0, :0]] for name, array in kept.observation.items()}
        last: dict[tuple[str, ...], list[np.ndarray]] = {names: [] for names in recorders}
        for truncation in truncations:
            mine = truncation.agents[truncation.rows, i]
            rows.append(truncation.rows[mine])
            times.append(np.full(int(mine.sum()), truncation.t, np.int64))
            shown = shown_to(i, truncation.observation, self.vec.spec, None)
            for name, parts in final.items():
                parts.append(shown.observation[name][mine])
            texts = {name: array[mine] for name, array in shown.texts.items()}
            for names, recorder in recorders.items():
                last[names].append(recorder.last(truncation.t, truncation.rows[mine], texts))
        read = {names: shared.get(names) or recorder.texts(last[names]) for names, recorder in recorders.items()}
        if OTHERS in self._needs:
            kept.extras[OTHERS] = others_of(i, self._of_all("action"), self._of_all("alive"))
        return replace(
            kept,
            texts={name: Texts(*read[names][:2]) for name, names in reads.items()},
            truncations=Truncations(
                (np.concatenate(times), np.concatenate(rows)),
                {name: np.concatenate(parts) for name, parts in final.items()},
                {name: read[names][2] for name, names in reads.items()},
            ),
            memory=None if memories[0] is None else torch.cat([each for each in memories if each is not None]),
            segments=self.unroll // self._segment,
            last_memory=self.players[i].memory,
            metrics=metrics,
            passes=() if truncations else self._passes[i],
        )

    def _of_all(self, name: str) -> np.ndarray:
        """[n, T, B] of all agents."""
        return np.stack([getattr(kept, name) for kept in self._kept])


_Recorders = dict[tuple[str, ...], TextRecorder]


class _Truncation(NamedTuple):
    """Games that a time limit that is no loss, or a fault, ended in step t.

    Attributes:
        rows: [F] the games that ended.
        observation: their true last observations.
        agents: [B, n] bool, which were playing.
    """

    t: int
    rows: np.ndarray
    observation: Observation
    agents: np.ndarray


def share_rewards(rewards: np.ndarray, acting: np.ndarray, team_reward: float) -> np.ndarray:
    """Rewards [n, …] of those who act, with `team_reward` as the part of each that is their mean instead of its own."""
    own = np.where(acting, rewards, 0.0)
    team = own.sum(0) / np.maximum(acting.sum(0), 1)
    return np.where(acting, (1 - team_reward) * own + team_reward * team, 0.0)


def others_of(i: int, actions: np.ndarray, acted: np.ndarray) -> np.ndarray:
    """The actions of all agents but i (OTHERS), [T+1, B, n − 1] int64, from actions and acted [n, T, B]."""
    did = np.where(acted, actions, -1)
    others = np.moveaxis(np.delete(did, i, 0), 0, -1)
    return np.pad(others, ((0, 1), (0, 0), (0, 0)), constant_values=-1)


def _mean(shares: np.ndarray) -> float:
    """The mean of those that are there, 0 where none is."""
    known = shares[~np.isnan(shares)]
    return float(known.mean()) if known.size else 0.0
