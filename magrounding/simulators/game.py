"""Game: one env as a game of n agents that plays in one row of an arena and restarts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.simulators.arena import Arena
from magrounding.simulators.faces import ByAgent, ParallelFace, attribute
from magrounding.simulators.seeds import episode_key, episode_seed
from magrounding.simulators.spaces import MASK, ONLY_FIELD
from magrounding.spec import EnvSpec

_SUCCESS = ("won", "is_success", "success")
_NOTHING: Mapping[str, Any] = {}


class Game:
    """One env in one row of an arena: it reads its row's actions, and writes everything that the row shows.

    Agents that are dead keep what they saw last. An agent that vanishes from `env.agents` without a flag is
    terminated; a step that is both the end and the limit is an end.

    Args:
        face: the env.
        spec: of the arena.
        arena: where it reads and writes.
        row: its row.
    """

    def __init__(self, face: ParallelFace, spec: EnvSpec, arena: Arena, row: int) -> None:
        self._face, self._spec, self._arena, self._row = face, spec, arena, row
        self._agents = face.possible_agents
        self._first_action = int(getattr(face.action_space(self._agents[0]), "start", 0))
        seen = arena.observation
        self._shared = [(f.name, seen[f.name][row : row + 1].reshape(f.shape)) for f in spec.fields if f.shared]
        self._own = [
            [(f.name, seen[f.name][row, i : i + 1].reshape(f.shape)) for f in spec.fields if not f.shared]
            for i in range(spec.num_agents)
        ]
        self._alive: list[bool] = []
        self._ended: list[bool] = []
        self._returns: list[float] = []
        self._length = 0
        self._score: float | None = None

    def reset(self) -> None:
        """Start the episode that the arena names, with nothing played yet."""
        self._start()
        self._show_nothing_played()

    def _show_nothing_played(self) -> None:
        arena, row = self._arena, self._row
        for array in (arena.rewards, arena.returns, arena.score, arena.length):
            array[row] = 0
        for array in (arena.terminated, arena.truncated, arena.illegal, arena.done, arena.won):
            array[row] = False

    def step(self) -> None:
        """Play the row's actions; a game that ends keeps its last observation and starts the next episode."""
        face, arena, row, first = self._face, self._arena, self._row, self._first_action
        if arena.held[row]:
            self._show_nothing_played()
            return
        alive, ended, actions = self._alive, self._ended, arena.actions[row].tolist()
        chosen = {
            agent: first + (action if lives else 0)
            for agent, action, lives in zip(self._agents, actions, alive, strict=True)
            if lives or agent in face.agents
        }
        observations, rewards, terminations, truncations, infos = face.step(chosen)
        acting = face.agents
        gains, terminated, truncated, illegal = [], [], [], []
        shared = self._shared
        for i, agent in enumerate(self._agents):
            over = ended[i]
            if not over and agent in observations:
                self._write(observations[agent], infos.get(agent, _NOTHING), self._own[i])
                if shared:
                    self._write(observations[agent], _NOTHING, shared)
                    shared = []
            lived = alive[i]
            gain = float(rewards.get(agent, 0)) if lived else 0.0
            truncates = lived and bool(truncations.get(agent, False))
            terminates = lived and (bool(terminations.get(agent, False)) or not (truncates or agent in acting))
            gains.append(gain)
            self._returns[i] += gain
            terminated.append(terminates)
            truncated.append(truncates and not terminates)
            illegal.append(lived and bool(infos.get(agent, _NOTHING).get("illegal", False)))
            ended[i] = over or terminates or truncates
            alive[i] = not ended[i] and agent in acting
        self._length += 1
        done = not any(alive)
        won = done and _success(infos)
        self._score = _first(infos, "score", self._score)
        arena.rewards[row], arena.returns[row], arena.illegal[row] = gains, self._returns, illegal
        arena.terminated[row], arena.truncated[row] = terminated, truncated
        arena.done[row], arena.won[row], arena.length[row] = done, won, self._length
        arena.score[row] = won if self._score is None else self._score
        if done:
            for name, array in arena.final_observation.items():
                array[row] = arena.observation[name][row]
            arena.episode[row] += 1
            self._start()
        else:
            arena.alive[row] = alive

    def label(self) -> None:
        """Write the env's best actions; every action where it knows none, as no label is ever empty."""
        labels = self._arena.labels[self._row]
        labels[...] = np.reshape(attribute(self._face.env, "best_actions")(), labels.shape)
        labels[~labels.any(1)] = True

    def write_state(self) -> None:
        """Write the env's state."""
        self._arena.state[self._row] = np.ravel(attribute(self._face.env, "state")())

    def close(self) -> None:
        """Release what the env holds."""
        self._face.env.close()

    def _start(self) -> None:
        arena, row, agents = self._arena, self._row, self._agents
        seed, episode = int(arena.seeds[row]), int(arena.episode[row])
        observations, infos = self._face.reset(episode_seed(seed, episode))
        acting = self._face.agents
        self._alive = [agent in acting for agent in agents]
        if not any(self._alive):
            raise ConfigurationError(f"{type(self._face.env).__name__} has no agents after reset()")
        self._ended = [False] * len(agents)
        self._returns = [0.0] * len(agents)
        self._length, self._score = 0, None
        shared = self._shared
        for agent, views in zip(agents, self._own, strict=True):
            if agent in observations:
                for group, info in ((views, infos.get(agent, _NOTHING)), (shared, _NOTHING)):
                    self._check(observations[agent], group)
                    self._write(observations[agent], info, group)
                shared = []
            else:
                for name, view in views:
                    view.fill(name == MASK)
        arena.alive[row] = self._alive
        arena.document[row] = self._document(infos, seed, episode)

    def _write(self, observation: Any, info: Mapping[str, Any], views: list[tuple[str, np.ndarray]]) -> None:
        if not isinstance(observation, Mapping):
            observation = {ONLY_FIELD: observation}
        for name, view in views:
            if name in observation:
                view[...] = observation[name]
            else:  # a mask, as `_check` has seen
                view[...] = info.get(name, 1)

    def _check(self, observation: Any, views: list[tuple[str, np.ndarray]]) -> None:
        found = observation if isinstance(observation, Mapping) else {ONLY_FIELD: observation}
        for name, view in views:
            if name not in found and name != MASK:
                raise ConfigurationError(f"the env shows {', '.join(found)}, but not {name!r}, which its spec names")
            if name in found and np.shape(found[name]) != view.shape:
                raise ConfigurationError(f"{name!r} has shape {np.shape(found[name])}, its spec says {view.shape}")

    def _document(self, infos: ByAgent, seed: int, episode: int) -> int:
        document = _first(infos, "document", None)
        if document is not None:
            return int(document)
        if self._spec.shared_texts:
            from magrounding.texts import content_keys  # with numba: workers that need none start faster

            seen = dict(self._shared)
            return int(content_keys({name: seen[name][None] for name in self._spec.shared_texts})[0])
        return episode_key(seed, episode) >> 1  # no text to be the same, so a key that no other episode has


def _first(infos: ByAgent, key: str, default: Any) -> Any:
    """What the first agent that says anything about a key says."""
    return next((info[key] for info in infos.values() if key in info), default)


def _success(infos: ByAgent) -> bool:
    """Whether an agent is reported to have won, by the first of the known keys that is there."""
    for key in _SUCCESS:
        said = [info[key] for info in infos.values() if key in info]
        if said:
            return any(said)
    return False
