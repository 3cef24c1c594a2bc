"""RolloutWorker: the actors. It plays B games with n policies for T steps and writes down what learners need."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from magrounding.agents.policy import LABELS, OTHERS, REGRETS, STATE, common_diagnostics
from magrounding.capabilities import HasSnapshots, HasState, find_capability, find_halves, require_capability
from magrounding.play.player import Player, Shown
from magrounding.threads import map_agents
from magrounding.training.clock import Clock
from magrounding.training.experience import Column, FinishedGames, Rollout, others_of, share_rewards
from magrounding.training.teacher import Teacher
from magrounding.training.text_track import TextColumn, TextTrack
from magrounding.vector import Info, Observation, StepResult, VectorEnv


class RolloutWorker:
    """Plays B games with n policies and records unrolls of T steps.

    Args:
        vec: the games; `start` or `resume` comes before `collect`.
        players: one for each agent.
        unroll: T.
        clock: where the seconds of the world and of acting are booked.
        team_reward: part of each agent's reward that is the living agents' mean instead of its own.
        needs: what learners need beyond their own column (`agents.policy`); what policies need is recorded as well.
        teacher: leads some games and labels every step (LABELS); None for learners who find out by themselves.
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
    ) -> None:
        self.vec = vec
        self.players = list(players)
        self.unroll = unroll
        self.clock = clock or Clock()
        # One network acts for all in less time than its agents' threads need to take turns in Python.
        self._map = map if len({id(player.policy) for player in self.players}) == 1 else map_agents
        self._team_reward = team_reward
        self._needs = needs.union(*(player.policy.needs for player in self.players))
        self._teacher = teacher
        self._fields = vec.spec.own_fields
        self._restarted = np.ones(vec.num_envs, np.bool_)
        self._helped = np.zeros(vec.num_envs, np.bool_)  # games in which the teacher led
        self._observation: Observation = {}
        self._info: Info
        self._allocate()

    def start(self, seed: int) -> None:
        """Begin new games."""
        self._observation, self._info = self.vec.reset(seed=seed)
        self._restarted = np.ones(self.vec.num_envs, np.bool_)
        self._helped = np.zeros(self.vec.num_envs, np.bool_)

    def collect(self, teacher_share: float = 0.0, steps: int = 0) -> Rollout:
        """Play T steps; call it after the weights have changed: every text is read again.

        Args:
            teacher_share: probability of each game to be led by the teacher.
            steps: environment steps so far, which decide the teacher's draws.
        """
        if self._teacher is not None:
            self._teacher.begin(self.vec.num_envs, teacher_share, steps)
            self._helped |= self._teacher.leads
        for player in self.players:
            player.forget_texts()
        for track in self._every_track():
            track.begin()
        for aux in self._aux:
            aux.clear()
        memories = [player.memory for player in self.players]
        ended: list[FinishedGames] = []
        cuts: list[_Cut] = []
        for t in range(self.unroll):
            since = time.perf_counter()
            self._record_observation(t)
            self.clock.add("world", since)
            self._observation, rewards, terminated, truncated, info = self._play(t)
            since = time.perf_counter()
            self._info = info
            cut_off = truncated & (info.lost[:, None] | (not self.vec.spec.time_limit_is_loss))
            self._record_outcome(t, rewards, terminated | truncated | info.done[:, None], cut_off)
            own = info.done & ~self._helped & ~info.lost
            if info.done.any():
                ended.append(FinishedGames(info.won[own], info.score[own], info.length[own], info.returns[own]))
                if cut_off.any():
                    final = {name: array.copy() for name, array in info.final_observation.items()}
                    cuts.append(_Cut(t, info.final_rows.copy(), final, cut_off))
            self._restarted = info.done.copy()
            self._helped &= ~info.done if self._teacher is None else ~info.done | self._teacher.leads
            self.clock.add("world", since)
        self._record_observation(self.unroll)
        n = self.vec.num_agents
        shared = {name: track.column() for name, track in self._shared.items()} if not cuts else {}
        metrics = self._diagnose()
        return Rollout(
            columns=[self._column(i, cuts, memories[i], shared, metrics[i]) for i in range(n)],
            games=FinishedGames.of(ended, n),
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """Where the games stand, as arrays for `resume`; nothing of games that cannot be kept."""
        games = find_capability(self.vec, HasSnapshots)
        if games is None:
            return {}
        kept = {f"vec.{name}": array for name, array in games.snapshot().items()}
        return {**kept, "restarted": self._restarted.copy(), "helped": self._helped.copy()}

    def resume(self, snapshot: dict[str, np.ndarray], seed: int) -> None:
        """Go on exactly where `snapshot` was taken, or, where games cannot be kept, with new games of `seed`."""
        if not snapshot:
            self.start(seed)
            return
        self._observation, self._info = require_capability(self.vec, HasSnapshots).restore(
            {name.removeprefix("vec."): array for name, array in snapshot.items() if name.startswith("vec.")}
        )
        self._restarted = snapshot["restarted"].astype(np.bool_)
        self._helped = snapshot["helped"].astype(np.bool_)

    def _allocate(self) -> None:
        T, B, n, A = self.unroll, self.vec.num_envs, self.vec.num_agents, self.vec.spec.num_actions
        spec = self.vec.spec
        self._seen = [{f.name: np.zeros((T + 1, B, *f.shape), f.dtype) for f in self._fields} for _ in range(n)]
        self._records: list[dict[str, np.ndarray]] = [{} for _ in range(n)]
        self._aux: list[list[dict[str, np.ndarray]]] = [[] for _ in range(n)]
        of_team = {text.name for text in spec.texts if text.shared}
        self._shared: dict[tuple[str, ...], TextTrack] = {}
        self._own: list[dict[tuple[str, ...], TextTrack]] = [{} for _ in range(n)]
        for own, player in zip(self._own, self.players, strict=True):
            for names in player.policy.reads.values():
                shared = {name for name in names if name in spec} <= of_team
                (self._shared if shared else own).setdefault(names, TextTrack(names, spec, T + 1, B))
        self._restarts = np.zeros((T + 1, B), np.bool_)
        self._last_actions = np.zeros((n, T + 1, B), np.int64)
        self._logits = [np.zeros((T, B, A), np.float32) for _ in range(n)]
        self._values = np.zeros((n, T, B), np.float32)
        self._actions = np.zeros((n, T, B), np.int64)
        self._labels = np.zeros((n, T + 1, B, A) if self._teacher else 0, np.bool_)
        judges = self._teacher is not None and self._teacher.judges
        self._regrets = np.zeros((n, T + 1, B, A) if judges else 0, np.float32)
        self._states = np.zeros((T + 1, B, spec.state_size) if STATE in self._needs else 0, np.int16)
        self._rewards = np.zeros((n, T, B), np.float32)
        self._alive = np.zeros((n, T + 1, B), np.bool_)
        self._discounts = np.zeros((n, T, B), np.float32)
        self._continues = np.zeros((n, T, B), np.bool_)

    def _every_track(self) -> list[TextTrack]:
        return [*self._shared.values(), *(track for own in self._own for track in own.values())]

    def _record_observation(self, t: int) -> None:
        for i, seen in enumerate(self._seen):
            for each in self._fields:
                shown = self._observation[each.name]
                seen[each.name][t] = shown if each.shared else shown[:, i]
            self._last_actions[i, t] = np.where(self._restarted, -1, self.players[i].last_action)
            for track in self._own[i].values():
                track.note(t, self._texts_of(i, self._observation), self._info.document)
        for track in self._shared.values():
            track.note(t, self._observation, self._info.document)
        self._alive[:, t] = self._info.alive.T
        self._restarts[t] = self._restarted
        if STATE in self._needs and t < self.unroll:
            self._states[t] = require_capability(self.vec, HasState).state()

    def _texts_of(self, i: int, observation: Observation) -> Observation:
        """What agent i reads, [B, …]."""
        return {
            text.name: observation[text.name] if text.shared else observation[text.name][:, i]
            for text in self.vec.spec.texts
        }

    def _play(self, t: int) -> StepResult:
        """Let all agents act and the games move; where simulators work by halves, one moves while the other thinks."""
        since, vec = time.perf_counter(), self.vec
        self._draw(t)
        halves = find_halves(vec) if self._teacher is None else None
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
            if self._teacher is not None:
                self._labels[:, t] = self._teacher.label().transpose(1, 0, 2)
                if self._teacher.judges:
                    self._regrets[:, t] = self._teacher.judge().transpose(1, 0, 2)
                self._teacher.lead(actions)
                self._actions[:, t] = actions.T
                for i, player in enumerate(self.players):
                    player.last_action = self._actions[i, t].copy()
                since = self.clock.add("teaching", since)
            moved = vec.step(actions)
        self.clock.add("world", since)
        return moved

    def _draw(self, t: int) -> None:
        """Draw the random numbers of `Policy.draw_record` for all games at once: halves change nothing of a run."""
        self._drawn = [p.policy.draw_record((self.vec.num_envs,), p.generator) for p in self.players]
        for i, drawn in enumerate(self._drawn):
            for name, tensor in drawn.items():
                self._record(i, t, name, tensor.numpy(), slice(None))

    def _act(self, t: int, rows: np.ndarray | None = None) -> np.ndarray:
        """Actions [R, n] int64 of some games, by default of all; each agent reads its own column."""
        some = slice(None) if rows is None else rows

        def choose(i: int) -> None:
            player = self.players[i]
            record = {name: self._records[i][name][t] for name in self._drawn[i]}
            column = {name: buffer[t] for name, buffer in self._seen[i].items()}
            shown = Shown(column, self._texts_of(i, self._observation), self._info.document)
            choice = player.choose(shown, self._restarted, rows=rows, record=record)
            for name, array in choice.record.items():
                self._record(i, t, name, array, some)
            if player.aux:
                self._aux[i].append(player.aux)
            self._actions[i, t, some] = choice.action
            self._logits[i][t, some] = choice.logits
            self._values[i, t, some] = choice.value

        for _ in self._map(choose, range(len(self.players))):
            pass
        return np.ascontiguousarray(self._actions[:, t, some].T)

    def _record(self, i: int, t: int, name: str, array: np.ndarray, rows: slice | np.ndarray) -> None:
        """Note what the network of agent i wants replayed of some games, [R, …]."""
        if name not in self._records[i]:
            shape = self.unroll + 1, self.vec.num_envs, *array.shape[1:]
            self._records[i][name] = np.zeros(shape, array.dtype)
        self._records[i][name][t, rows] = array

    def _record_outcome(self, t: int, rewards: np.ndarray, ended: np.ndarray, cut_off: np.ndarray) -> None:
        alive = self._alive[:, t]
        self._rewards[:, t] = share_rewards(rewards.T, alive, self._team_reward)
        self._discounts[:, t] = alive & (~ended | cut_off).T
        self._continues[:, t] = alive & ~ended.T

    def _diagnose(self) -> list[dict[str, float]]:
        """What the networks of a team have to say of their play, as means over living steps, for each agent."""
        diagnose = common_diagnostics(player.policy for player in self.players)
        if diagnose is None or not all(self._aux):
            return [{} for _ in self.players]
        aux = [{name: np.concatenate([step[name] for step in steps]) for name in steps[0]} for steps in self._aux]
        flat = (np.moveaxis(array, 0, -1).reshape(-1, len(aux)) for array in (self._actions, self._alive[:, :-1]))
        found = diagnose(aux, *flat)
        return [{name: _mean(shares[:, i]) for name, shares in found.items()} for i in range(len(aux))]

    def _column(
        self,
        i: int,
        cuts: Sequence[_Cut],
        memory: Tensor | None,
        shared: dict[tuple[str, ...], TextColumn],
        metrics: dict[str, float],
    ) -> Column:
        times, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        final = {each.name: [self._seen[i][each.name][0, :0]] for each in self._fields}
        tracks = {**self._own[i], **({} if shared else self._shared)}
        for track in tracks.values():
            track.forget_final()
        for cut in cuts:
            mine = cut.agents[cut.rows, i]
            rows.append(cut.rows[mine])
            times.append(np.full(int(mine.sum()), cut.t, np.int64))
            for name, parts in final.items():
                shown = cut.observation[name][mine]
                parts.append(shown if self.vec.spec[name].shared else shown[:, i])
            texts = {name: array[mine] for name, array in self._texts_of(i, cut.observation).items()}
            for track in tracks.values():
                track.note_final(cut.t, cut.rows[mine], texts)
        columns = {**shared, **{names: track.column() for names, track in tracks.items()}}
        reads = self.players[i].policy.reads
        return Column(
            observation=self._seen[i],
            texts={name: columns[names] for name, names in reads.items()},
            logits=self._logits[i],
            value=self._values[i],
            action=self._actions[i],
            reward=self._rewards[i],
            alive=self._alive[i, :-1],
            discount=self._discounts[i],
            continues=self._continues[i],
            cut=(np.concatenate(times), np.concatenate(rows)),
            final={name: np.concatenate(parts) for name, parts in final.items()},
            memory=memory,
            last_memory=self.players[i].memory,
            restarts=self._restarts,
            last_action=self._last_actions[i],
            record=self._records[i],
            extras=self._extras(i),
            metrics=metrics,
        )

    def _extras(self, i: int) -> dict[str, np.ndarray]:
        extras: dict[str, np.ndarray] = {}
        if self._teacher is not None:
            extras[LABELS] = self._labels[i]
            if self._teacher.judges:
                extras[REGRETS] = self._regrets[i]
        if OTHERS in self._needs:
            extras[OTHERS] = others_of(i, self._actions, self._alive[:, :-1])
        if STATE in self._needs:
            extras[STATE] = self._states
        return extras


class _Cut(NamedTuple):
    """Games that a time limit, where that is no loss, or a fault cut off in step t.

    Attributes:
        rows: [F] the games that ended.
        observation: their true last observations.
        agents: [B, n] bool, who was cut off.
    """

    t: int
    rows: np.ndarray
    observation: Observation
    agents: np.ndarray


def _mean(shares: np.ndarray) -> float:
    """Of those that are there, 0 where none is."""
    known = shares[~np.isnan(shares)]
    return float(known.mean()) if known.size else 0.0
