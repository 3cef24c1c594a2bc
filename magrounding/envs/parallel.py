"""WorldEnv: a BatchedWorld of one row as a PettingZoo ParallelEnv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.lib.stride_tricks import sliding_window_view

from magrounding.capabilities import HasState, require_capability
from magrounding.envs.drawing import rgb_array
from magrounding.envs.game_env import GameEnv, Shown, Stepped
from magrounding.envs.render import Scene, ansi
from magrounding.envs.world import BatchedWorld
from magrounding.errors import ConfigurationError
from magrounding.spec import SCENE, SCORES, STATE, EnvSpec, Grid
from magrounding.text_view import TOLD_BY, Happened, find_text_view
from magrounding.vector import Observation, observation_of, row_seeds

RENDER_MODES = ("ansi", "ansi_full", "rgb_array")


@lru_cache(maxsize=16)
def _distance_windows(height: int, width: int) -> np.ndarray:
    """`distance` from each cell: a view [H, W, H, W, 2] of a map that reaches as far as any cell is away."""
    rows, columns = np.arange(1 - height, height, dtype=np.float32), np.arange(1 - width, width, dtype=np.float32)
    wide = np.empty((2 * height - 1, 2 * width - 1, 2), np.float32)
    wide[..., 0] = columns / width
    wide[..., 1] = (rows / height)[:, None]
    return sliding_window_view(wide, (height, width), (0, 1))[::-1, ::-1].transpose(0, 1, 3, 4, 2)


def distances(row: Any, column: Any, height: int, width: int) -> np.ndarray:
    """`distance` from a cell or from B cells, a new array [(B,) H, W, 2] float32; zeros for the dead, at row −1."""
    far = _distance_windows(height, width)[row, column]
    if far.ndim == 3:
        return np.zeros(far.shape, np.float32) if row < 0 else far.copy()
    far[row < 0] = 0
    return far


def map_sides(spec: EnvSpec) -> tuple[int, int] | None:
    """Height and width of the map that positions are on; None where an agent sees no such map."""
    grids = [field for field in spec.fields if isinstance(field, Grid) and not field.egocentric]
    return (grids[0].height, grids[0].width) if grids and "position" in spec else None


def observation_space(spec: EnvSpec) -> spaces.Dict:
    """Return the space of an agent's observations: the fields of a spec and, on a map, `distance`."""
    parts, sides = dict(spec.space().spaces), map_sides(spec)
    if sides is not None:
        parts["distance"] = spaces.Box(-1.0, 1.0, (*sides, 2), np.float32)
    return spaces.Dict(parts)


class WorldEnv(GameEnv):
    """One environment of n agents, agent_0 … agent_{n-1}.

    Every array and list it returns is the caller's own. An observation has the fields of `spec` and, where an agent
    sees its position on a map, `distance` [H, W, 2]: (dx / W, dy / H) to each cell. `infos[agent]` has `action_mask`
    [A] int8, `text` (`manual`, a list of statements; `goal`; `inventory`) and `document` (equal keys mean equal texts);
    `illegal` (True) after a masked action, which did nothing; and `won`, and `score` where a world has one, in the last
    step of the episode, for the agents that are in it. An agent that dies while the others play on leaves `agents`
    after that step.

    Args:
        world: a BatchedWorld of one row; the env takes it over.
        id, options: how the world was made, so that others can make it again.
        render_mode: None, "ansi" (what each agent sees, in words), "ansi_full" (the whole game as text, for developers)
            or "rgb_array".

    Raises:
        ConfigurationError: an unknown render mode, or one that draws a world without a scene.
    """

    def __init__(
        self, world: BatchedWorld, id: str, options: Mapping[str, Any], render_mode: str | None = None
    ) -> None:
        modes = RENDER_MODES if SCENE in world.spec.capabilities else RENDER_MODES[:1]
        super().__init__(id, options, world.spec, render_mode, modes)
        self.world = world
        self._sides = map_sides(self.spec)
        if STATE in self.spec.capabilities:
            sides = (side for field in self.spec.fields if isinstance(field, Grid) for side in field.shape[:2])
            high = max([self.spec.vocabulary_size, *sides]) - 1
            # −1: row and column of the dead.
            self.state_space = spaces.Box(-1, high, (self.spec.state_size,), np.int16)
        self._places = {agent: self._make_places(i) for i, agent in enumerate(self.possible_agents)}
        self._index = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._holds, self._masks = "inventory" in self.spec, "action_mask" in self.spec
        self._acted: list[str] = []
        self._row = np.zeros((1, len(self.possible_agents)), np.int64)
        self._document: int | None = None
        self._manual: list[str] = []
        self._goal = ""
        self._inventories: dict[bytes, str] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Shown:
        """Start an episode: the first of a seed or, without one, the next after the last (at first, of a random seed).

        Args:
            seed: an integer in [0, 2**62).
            options: ignored; PettingZoo's interface has it.

        Raises:
            ConfigurationError: a seed that is none.
            CallOrderError: after `close`.
        """
        self._require_open()
        self.world.reset(row_seeds(seed, 1) if seed is not None or not self._begun else None)
        self._begun = True
        self.agents = self.possible_agents.copy()
        self._acted = []
        return self._observations(), self._infos()

    def _advance(self, chosen: list[int]) -> Stepped:
        acting = self.agents
        row = np.zeros((1, len(self.possible_agents)), np.int64)  # those of the dead are 0
        for agent, number in zip(acting, chosen, strict=True):
            row[0, self._index[agent]] = number
        self.world.step(row, False)
        self._acted, self._row = acting, row
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
        if len(acting) < len(reward):
            places = [self._index[agent] for agent in acting]
            reward, terminated, truncated = ([each[i] for i in places] for each in (reward, terminated, truncated))
        rewards = dict(zip(acting, reward, strict=True))
        terminations = dict(zip(acting, terminated, strict=True))
        truncations = dict(zip(acting, truncated, strict=True))
        self.agents = [agent for agent in acting if not (terminations[agent] or truncations[agent])]
        return observations, rewards, terminations, truncations, infos

    def state(self) -> np.ndarray:
        """Return the whole state, [state_size] int16, laid out as `spec.state_layout()`, of a world that has one."""
        require_capability(self, HasState)  # pyright: ignore[reportArgumentType]  of one game, it has a spec too
        self._require_start("state")
        return self.world.state()[0].copy()

    def render(self, marks: np.ndarray | None = None) -> str | np.ndarray | None:
        """Return text or a picture [height, width, 3] uint8 ("rgb_array"); None without a render mode.

        Args:
            marks: [n, H, W] int8, to be shown as well: 1 a cell that agent i claims, 0 one that it leaves to others, −1
                nothing there. A ConfigurationError in mode "ansi": no observation has them.
        """
        if self.render_mode is None:
            return None
        self._require_start("render")
        if self.render_mode == "ansi":
            if marks is not None:
                raise ConfigurationError('marks are in no observation: show them in mode "ansi_full" or "rgb_array"')
            seen = {agent: self._seen(agent) for agent in self.possible_agents}
            happened = {agent: self._happened(agent) for agent in self.possible_agents}
            return find_text_view(self.id, self.spec).describe_all(seen, happened)
        scene = self.scene()
        if marks is not None:
            self._check_marks(marks, scene)
            scene = scene.marked(marks)
        return ansi(scene) if self.render_mode == "ansi_full" else rgb_array(scene)

    def scene(self) -> Scene:
        """Return the facts for drawing, of a world that has a scene, and of a split manual who reads and told what."""
        scene, told_by = self.world.scene(0), self.world.observation.get(TOLD_BY)
        if told_by is None:
            return scene
        readers = (sorted(np.flatnonzero(of >= 0).tolist(), key=of.item) for of in told_by[0].T)  # the owner first
        rows = {i: self._row[0, i] - self.spec.num_actions + self.spec.tells for i in map(self._index.get, self._acted)}
        said = {i: scene.manual[row] for i, row in rows.items() if row >= 0 and not self.world.out.illegal[0, i]}
        return replace(scene, readers=tuple(map(tuple, readers)), said=said)

    def _seen(self, agent: str) -> Observation:
        return observation_of(self.spec, self.world.observation, 0, self._index[agent])

    def _happened(self, agent: str) -> Happened:
        i, out = self._index[agent], self.world.out
        over, won = agent not in self.agents, bool(out.won[0]) if out.done[0] else None
        if agent not in self._acted:
            return Happened(over=over, won=won)
        return Happened(int(self._row[0, i]), bool(out.illegal[0, i]), float(out.rewards[0, i]), over, won)

    def close(self) -> None:
        """End the game: it can be neither played nor looked at any more. Twice is fine."""
        self._closed, self.agents = True, []

    def _space(self) -> spaces.Dict:
        return observation_space(self.spec)

    def _check_marks(self, marks: np.ndarray, scene: Scene) -> None:
        expected = len(self.possible_agents), *scene.walls.shape
        if not isinstance(marks, np.ndarray) or marks.shape != expected or marks.dtype.kind not in "iub":
            got = f"{marks.dtype} {list(marks.shape)}" if isinstance(marks, np.ndarray) else type(marks).__name__
            raise ConfigurationError(f"marks are an array of integers {list(expected)}, got {got}")

    def _make_places(self, i: int) -> list[tuple[str, str, tuple[int, ...]]]:
        """(key, field, index in its buffer) of agent i's observation, in the order of its space, as flattening has it.

        `distance` has the place of the position that it is computed from.
        """
        places = []
        for key in self._observation_spaces[self.possible_agents[i]]:
            field = "position" if key == "distance" and self._sides is not None else key
            places.append((key, field, (0,) if self.spec[field].shared else (0, i)))
        return places

    def _observations(self) -> dict[str, Observation]:
        seen, observations = self.world.observation, {}
        for agent in self.agents:
            observation = {key: seen[field][index].copy() for key, field, index in self._places[agent]}
            if self._sides is not None:
                row, column = observation["distance"].tolist()
                observation["distance"] = distances(row, column, *self._sides)
            observations[agent] = observation
        return observations

    def _infos(self) -> dict[str, dict[str, Any]]:
        seen, document = self.world.observation, int(self.world.out.document[0])
        if document != self._document:  # text is built once for each document, not once a step
            text = self.world.text(0)
            self._manual, self._goal, self._document = list(text["manual"]), str(text["goal"]), document
        infos = {}
        shared = "manual" not in self.spec or self.spec["manual"].shared
        for agent in self.agents:
            i = self._index[agent]
            manual = (
                self._manual.copy() if shared else [*map(self.spec.vocabulary.decode, seen["manual"][0, i].tolist())]
            )
            text: dict[str, Any] = {"manual": manual, "goal": self._goal}
            if self._holds:
                text["inventory"] = self._held(seen["inventory"][0, i])
            infos[agent] = info = {"action_mask": seen["action_mask"][0, i].copy()} if self._masks else {}
            info["text"], info["document"] = text, document
        return infos

    def _held(self, inventory: np.ndarray) -> str:
        """Decode an inventory [I], once for each content."""
        key = inventory.tobytes()
        text = self._inventories.get(key)
        if text is None:
            text = self._inventories[key] = self.spec.vocabulary.decode(inventory.tolist())
        return text
