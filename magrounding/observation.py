"""ObservationSpec: what an agent sees, declared once, and turned into a Gymnasium space and into batch buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

SHARED_TEXT = ("manual", "goal")
"""What all agents of a game read, once an episode."""


def shared_text(observation: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`manual` [B, S, L] and `goal` [B, G] of some games; a world whose goal never changes shows none: G = 0."""
    manual = observation["manual"]
    goal = observation.get("goal")
    return {"manual": manual, "goal": np.zeros((len(manual), 0), np.int16) if goal is None else goal}


@dataclass(frozen=True)
class ObservationField:
    """One key of the observation.

    Attributes:
        name: key in the observation dict.
        shape: shape for one agent.
        low, high: inclusive bounds.
        dtype: NumPy dtype name.
        shared: one array for the whole team ([B, *shape] in a batch) instead of one for each agent ([B, n, *shape]).
    """

    name: str
    shape: tuple[int, ...]
    low: float
    high: float
    dtype: str = "int16"
    shared: bool = False


@dataclass(frozen=True)
class ObservationSpec:
    """The declaration that world, faces, networks and learners agree on.

    Attributes:
        fields: everything the world writes, in order.
        num_agents: n.
        num_actions: A.
        height, width: of the grid.
        vocabulary_size: number of ids, padding included.
        scenery_ids: ids in `grid` that are nobody: padding, empty, wall, fog.
        avatar_ids: ids in `grid` that are agents: me, ally. Every other id in `grid` belongs to an entity.
        words_per_occupant: ids that one occupant of a cell takes: K is a multiple of it.
        words: the word of each id, for networks that read with a pretrained language model; empty where nobody says.
    """

    fields: tuple[ObservationField, ...]
    num_agents: int
    num_actions: int
    height: int
    width: int
    vocabulary_size: int
    scenery_ids: tuple[int, ...]
    avatar_ids: tuple[int, ...]
    words_per_occupant: int = 1
    words: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ObservationField:
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return any(field.name == name for field in self.fields)

    def reads_alike(self, other: ObservationSpec) -> bool:
        """Whether agents made for the one can play with the other: all is equal but the size of the map."""

        def but_size(spec: ObservationSpec) -> tuple:
            shapes = [(f.name, f.shape[2:] if f.name == "grid" else f.shape, f.shared) for f in spec.fields]
            return shapes, spec.num_agents, spec.num_actions, spec.vocabulary_size, spec.words

        return but_size(self) == but_size(other)

    def space(self) -> spaces.Dict:
        """The Gymnasium space of one agent's observation; `distance` (derived from `position`) is part of it."""
        boxes: dict[str, spaces.Space] = {
            f.name: spaces.Box(f.low, f.high, f.shape, np.dtype(f.dtype).type) for f in self.fields
        }
        boxes["distance"] = spaces.Box(-1.0, 1.0, (self.height, self.width, 2), np.float32)
        return spaces.Dict(boxes)

    def allocate(self, num_envs: int) -> dict[str, np.ndarray]:
        """Zeroed batch buffers: [B, *shape] for shared keys, [B, n, *shape] for the others, nothing for `distance`."""
        agents = (self.num_agents,)
        return {f.name: np.zeros((num_envs, *(() if f.shared else agents), *f.shape), f.dtype) for f in self.fields}

    def distance(self, position: np.ndarray) -> np.ndarray:
        """Distances [H, W, 2] float32, (dx / W, dy / H), from `position` (row, column) to each cell; zeros if dead."""
        row, column = int(position[0]), int(position[1])
        if row < 0:
            return np.zeros((self.height, self.width, 2), np.float32)
        grid = np.empty((self.height, self.width, 2), np.float32)
        grid[..., 0] = (np.arange(self.width, dtype=np.float32) - column) / self.width
        grid[..., 1] = ((np.arange(self.height, dtype=np.float32) - row) / self.height)[:, None]
        return grid
