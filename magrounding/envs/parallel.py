"""WorldEnv: one game of a BatchedWorld as a PettingZoo ParallelEnv.

The bookkeeping of agents, flags, masks and seeds of single games is here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from magrounding.envs.render import ansi, rgb_array
from magrounding.envs.world import BatchedWorld
from magrounding.errors import ConfigurationError, InvalidAction, choose
from magrounding.spec import SCENE, SCORES, STATE, EnvSpec, Grid
from magrounding.vector import row_seeds

RENDER_MODES = ("ansi", "rgb_array")
FRAMES_PER_SECOND = 4

Observation = dict[str, np.ndarray]


@lru_cache(maxsize=16)
def distance_maps(height: int, width: int) -> np.ndarray:
    """`distance` from each cell, computed once: [H * W + 1, H, W, 2] float32, the last of them for a dead agent."""
    rows, columns = np.indices((height, width), np.float32)
    maps = np.zeros((height * width + 1, height, width, 2), np.float32)
    maps[:-1, ..., 0] = (columns - columns.reshape(-1, 1, 1)) / width
    maps[:-1, ..., 1] = (rows - rows.reshape(-1, 1, 1)) / height
    return maps


def map_sides(spec: EnvSpec) -> tuple[int, int] | None:
    """Height and width of the map that positions are on; None where an agent sees no such map."""
    grids = [field for field in spec.fields if isinstance(field, Grid) and not field.egocentric]
    return (grids[0].height, grids[0].width) if grids and "position" in spec else None


class WorldEnv(ParallelEnv[str, Observation, SupportsIndex]):
    """One game for n agents, agent_0 … agent_{n-1}.

    Every array and list it returns is the caller's own. An observation has the fields of `spec` and, where an agent
    sees its position on a map, `distance` [H, W, 2]: (dx / W, dy / H) to each cell. `infos[agent]` has `action_mask`
    [A] int8, `text` (`manual`, a list of statements; `goal`; `inventory`) and `document` (equal keys mean equal texts);
    `illegal` (True) after a masked action, which did nothing; and `won`, and `score` where a world has one, in the last
    step of the game, for the agents that are in it. An agent that dies while the others play on leaves `agents` after
    that step.

    Args:
        world: a BatchedWorld of one game; the env takes it over.
        id, options: how the world was made, so that others can make it again.
        render_mode: None, "ansi" or "rgb_array".

    Raises:
        ConfigurationError: an unknown render mode, or a world of several games.
    """

    def __init__(
        self, world: BatchedWorld, id: str, options: Mapping[str, Any], render_mode: str | None = None
    ) -> None:
        if world.num_envs != 1:
            raise ConfigurationError(
                f"a WorldEnv plays one game, got a world of {world.num_envs}; use make_vec for many"
            )
        if render_mode is not None:
            choose("render_mode", render_mode, RENDER_MODES)
        self.world = world
        self.id = id
        self.options = dict(options)
        self.render_mode = render_mode
        self.spec = world.spec
        self.metadata = {
            "name": f"{id}-v0",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": True,
            "render_fps": FRAMES_PER_SECOND,
        }
        self.possible_agents = [f"agent_{i}" for i in range(world.num_agents)]
        self.agents: list[str] = []
        sides = map_sides(self.spec)
        self._distance, self._width = (None, 0) if sides is None else (distance_maps(*sides), sides[1])
        self._observation_spaces = {agent: self._make_observation_space() for agent in self.possible_agents}
        self._action_spaces = {agent: spaces.Discrete(self.spec.num_actions) for agent in self.possible_agents}
        if STATE in self.spec.capabilities:
            self.state_space = self._make_state_space()
        # Key order of the space, so that flattening wrappers and dicts agree; `distance` is ours to add.
        self._fields = tuple(
            (key, key in self.spec and self.spec[key].shared) for key in self._observation_spaces["agent_0"]
        )
        self._index = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._holds, self._masks = "inventory" in self.spec, "action_mask" in self.spec
        self._num_actions = self.spec.num_actions
        self._started = False
        self._document: int | None = None
        self._manual: list[str] = []
        self._goal = ""
        self._inventories: dict[bytes, str] = {}

    def observation_space(self, agent: str) -> spaces.Dict:
        """The space of what an agent sees; the same object on each call."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The space of an agent's actions; the same object on each call."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode: the first of a seed or, without one, the next after the last (at first, of a random seed).

        Args:
            seed: an integer in [0, 2**62).
            options: ignored; PettingZoo's interface has it.

        Returns:
            observations, infos: by agent.
        """
        if seed is not None or not self._started:
            self.world.reset(row_seeds(seed, 1))
            self._started = True
        else:
            self.world.reset()
        self.agents = self.possible_agents.copy()
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, SupportsIndex]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: one integer in [0, A) for each of `agents`, none for anybody else.

        Returns:
            observations, rewards, terminations, truncations, infos: by agent, for the agents who acted; five empty
            dicts where the episode is over and no action is given.

        Raises:
            InvalidAction: an action outside the space, a missing or unknown agent, a step before `reset` or after the
                end. Nothing has happened then: the step can be repeated with better actions.
        """
        acting = self.agents
        if not acting and self._started and not actions:
            return {}, {}, {}, {}, {}
        self.world.step(self._action_row(actions), False)
        out = self.world.out
        reward, terminated, truncated = out.rewards[0].tolist(), out.terminated[0].tolist(), out.truncated[0].tolist()
        observations, infos = self._observations(), self._infos()
        for agent, info in infos.items():
            if out.illegal[0, self._index[agent]]:
                info["illegal"] = True
        if out.done[0]:
            ending: dict[str, Any] = {"won": bool(out.won[0])}
            if SCORES in self.spec.capabilities:
                ending["score"] = float(out.score[0])
            for info in infos.values():
                info.update(ending)
        if len(acting) == len(reward):
            rewards = dict(zip(acting, reward, strict=True))
            terminations = dict(zip(acting, terminated, strict=True))
            truncations = dict(zip(acting, truncated, strict=True))
        else:
            places = [self._index[agent] for agent in acting]
            rewards = {agent: reward[i] for agent, i in zip(acting, places, strict=True)}
            terminations = {agent: terminated[i] for agent, i in zip(acting, places, strict=True)}
            truncations = {agent: truncated[i] for agent, i in zip(acting, places, strict=True)}
        self.agents = [agent for agent in acting if not (terminations[agent] or truncations[agent])]
        return observations, rewards, terminations, truncations, infos

    def state(self) -> np.ndarray:
        """The whole game, [state_size] int16, laid out as `spec.state_layout()`; ConfigurationError without one."""
        self._require(STATE)
        return self.world.state()[0].copy()

    def render(self, marks: np.ndarray | None = None) -> str | np.ndarray | None:
        """The game as text ("ansi") or picture [height, width, 3] uint8 ("rgb_array"); None without a render mode.

        Args:
            marks: [n, H, W] int8, to be shown as well: 1 a cell that agent i claims, 0 one that it leaves to others, −1
                nothing there.
        """
        if self.render_mode is None:
            return None
        if not self._started:
            raise ConfigurationError("call reset() before render()")
        self._require(SCENE)
        scene = self.world.scene(0) if marks is None else self.world.scene(0).marked(marks)
        return ansi(scene) if self.render_mode == "ansi" else rgb_array(scene)

    def close(self) -> None:
        """Nothing to release: the world is plain memory."""

    def _require(self, capability: str) -> None:
        if capability not in self.spec.capabilities:
            offered = ", ".join(sorted(self.spec.capabilities)) or "nothing"
            raise ConfigurationError(f"{self.id!r} has no {capability}; it offers: {offered}")

    def _make_observation_space(self) -> spaces.Dict:
        parts: dict[str, spaces.Space] = dict(self.spec.space().spaces)
        if self._distance is not None:
            parts["distance"] = spaces.Box(-1.0, 1.0, self._distance.shape[1:], np.float32)
        return spaces.Dict(parts)

    def _make_state_space(self) -> spaces.Box:
        sides = (side for field in self.spec.fields if isinstance(field, Grid) for side in field.shape[:2])
        high = max([self.spec.vocabulary_size, *sides]) - 1
        return spaces.Box(-1, high, (self.spec.state_size,), np.int16)  # −1: row and column of the dead

    def _action_row(self, actions: Mapping[str, SupportsIndex]) -> np.ndarray:
        """Actions [1, n] int64, those of the dead 0; raises InvalidAction."""
        if not self.agents:
            raise InvalidAction("the episode is over: call reset()" if self._started else "call reset() before step()")
        if actions.keys() != set(self.agents):
            raise InvalidAction(f"actions are for {list(actions)}, expected one for each of {self.agents}")
        row, limit = [0] * len(self.possible_agents), self._num_actions
        for agent, action in actions.items():
            try:
                number = index(action)
            except TypeError:
                number = -1
            if not 0 <= number < limit:
                raise InvalidAction(f"action {action!r} of {agent} is not an integer in [0, {limit})")
            row[self._index[agent]] = number
        return np.array([row], np.int64)

    def _observations(self) -> dict[str, Observation]:
        buffers = self.world.observation
        rows = {key: buffer[0] for key, buffer in buffers.items()}
        maps, width = self._distance, self._width
        observations = {}
        for agent in self.agents:
            i = self._index[agent]
            observation = {}
            for key, shared in self._fields:
                if key == "distance" and maps is not None:
                    row, column = rows["position"][i].tolist()
                    observation[key] = maps[row * width + column if row >= 0 else -1].copy()
                else:
                    observation[key] = (rows[key] if shared else rows[key][i]).copy()
            observations[agent] = observation
        return observations

    def _infos(self) -> dict[str, dict[str, Any]]:
        seen, document = self.world.observation, int(self.world.out.document[0])
        if document != self._document:  # text is built once for each document, not once a step
            text = self.world.text(0)
            self._manual, self._goal, self._document = list(text["manual"]), str(text["goal"]), document
        infos = {}
        for agent in self.agents:
            i = self._index[agent]
            text: dict[str, Any] = {"manual": self._manual.copy(), "goal": self._goal}
            if self._holds:
                text["inventory"] = self._held(seen["inventory"][0, i])
            if self._masks:
                infos[agent] = {"action_mask": seen["action_mask"][0, i].copy(), "text": text, "document": document}
            else:
                infos[agent] = {"text": text, "document": document}
        return infos

    def _held(self, inventory: np.ndarray) -> str:
        """What an inventory [I] says, decoded once for each content."""
        key = inventory.tobytes()
        text = self._inventories.get(key)
        if text is None:
            text = self._inventories[key] = self.spec.vocabulary.decode(inventory.tolist())
        return text
