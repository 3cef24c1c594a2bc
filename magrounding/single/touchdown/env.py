"""TouchdownEnv: Touchdown as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.seeding import TASK, stream_key
from magrounding.single.one_agent import OneAgentEnv
from magrounding.single.touchdown.city import FAR, load_city
from magrounding.single.touchdown.files import Route, folder_of
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, HORIZON, MAX_DIRECTIONS, SPLITS, column_of
from magrounding.single.touchdown.options import Touchdown, tokenizer
from magrounding.single.touchdown.picture import View, ansi, rgb_array
from magrounding.spec import COLUMNS as TOWARDS
from magrounding.vector import Observation

HOP = 0.1
"""Reward of coming a link nearer."""


class TouchdownEnv(OneAgentEnv):
    """One walk for agent_0; arguments and infos as of `OneAgentEnv`, with the instruction as the `goal` of `text`.

    Attributes:
        city: graph, routes and panoramas.
        route: the one of this episode.
        place, heading: where the agent is, by number, and where it looks, in degrees.

    Raises:
        DataNotFound, ConfigurationError: the city lacks a file, or has one that is not what it should be.
    """

    id = "touchdown"

    def __init__(self, config: Touchdown, render_mode: str | None = None) -> None:
        folder = folder_of(config.data)
        self._tokenizer = tokenizer(folder)
        super().__init__(config, render_mode)
        self.city = load_city(folder)
        self._graph = self.city.graph
        self._routes = self.city.routes(config.split)
        self._ids = np.array([self._tokenizer.vocabulary[name] for name in CLASSES], np.int16)
        self._stop = MAX_DIRECTIONS if config.manual_stop else None
        self.route: Route = self._routes[0]
        self.place, self.heading = 0, 0.0
        self.visited: list[int] = []

    @property
    def goal(self) -> int:
        """The place to reach."""
        return self._graph.number(self.route.nodes[-1])

    def best_actions(self) -> np.ndarray:
        """Labels [1, A] bool: along the route where the agent is on it, or else any of the shortest ways to the goal.

        Every action once the walk is over; a CallOrderError before `reset` and after `close`.
        """
        self._require_start("best_actions")
        labels = np.full((1, self._num_actions), not self.agents)
        if not self.agents:
            return labels
        if self._stop is not None and self.place == self.goal:
            labels[0, self._stop] = True
            return labels
        ends = [end for _, end, _ in self._ways]
        following = self._following()
        if following in ends and self._mask[ends.index(following)]:
            labels[0, ends.index(following)] = True
            return labels
        far = [int(self._far[end]) if self._mask[j] else FAR for j, end in enumerate(ends)]
        labels[0, : len(ends)] = np.equal(far, min(far, default=FAR)) & self._mask[: len(ends)].astype(bool)
        labels[0, 0] |= not ends  # where no way begins, action 0 stays
        return labels

    def _draw(self, mode: str) -> str | np.ndarray:
        view = View(
            instruction=self.route.instruction,
            panorama=np.roll(self.city.panorama(self.place), self._shift(1), axis=1),
            columns=[(column + self._shift(1)) % COLUMNS for column, _, _ in self._raw_ways()],
            looks_at=(self._looks_at() + self._shift(1)) % COLUMNS,
            step=len(self.played),
            max_cycles=self.config.max_cycles,
            left=int(self._far[self.place]),
            graph=self._graph,
            route=[self._graph.number(id) for id in self.route.nodes],
            visited=self.visited,
            place=self.place,
            heading=self.heading,
        )
        return ansi(view) if mode == "ansi_full" else rgb_array(view)

    def _begin(self, seed: int, episode: int) -> None:
        place = list(SPLITS).index(self.config.split)
        self.route = self._routes[int(stream_key(seed, episode, TASK + 8 * place)) % len(self._routes)]
        self.place, self.heading = self._graph.number(self.route.nodes[0]), self.route.heading
        self._far = self._graph.distances(self.goal)
        if self._far[self.place] >= FAR:
            raise ConfigurationError(
                f"no way leads from {self.route.nodes[0]} to {self.route.nodes[-1]}: mend the route"
            )
        self._goal_row = self._tokenizer.row(self.route.instruction, self.spec["goal"].shape[0])
        self._begin_text("goal", self._goal_row)
        self.visited = [self.place]
        self._look()

    def _play(self, action: int) -> tuple[float, bool, bool]:
        before = self._far[self.place]
        self._illegal = not self._mask[action]
        stops = action == self._stop and not self._illegal
        if not self._illegal and not stops and self._ways:  # where no way begins, action 0 stays
            _, self.place, self.heading = self._ways[action]
            self.visited.append(self.place)
            self._look()
        self._won = self.place == self.goal and (stops or self._stop is None)
        terminated = self._won or stops
        truncated = not terminated and len(self.played) >= self.config.max_cycles
        if terminated or truncated:
            return (1.0 if self._won else -1.0), terminated, truncated
        after = self._far[self.place]
        return (0.0 if FAR in (before, after) else HOP * float(before - after)), False, False

    def _look(self) -> None:
        """Compute ways, mask and panorama of the current place."""
        patch = self.config.patch
        # In patches throughout: panorama, ways and the agent's own column turn by the same whole number of them.
        shift, width = self._shift(patch), COLUMNS // patch
        raw = self._raw_ways()
        ways = [((column // patch + shift) % width, end, heading) for column, end, heading in raw]
        opened = self._graph.open_ways(self.place, self.goal)
        order = sorted(range(len(ways)), key=lambda k: ((raw[k][0] + shift * patch) % COLUMNS, ways[k][1]))
        self._ways = [ways[k] for k in order]
        self._mask = np.zeros(self._num_actions, np.int8)
        self._mask[: len(order)] = [opened[k] for k in order]
        self._columns = np.full(self._num_actions, -1, np.int16)
        self._columns[: len(order)] = [column for column, _, _ in self._ways]
        if not order:
            self._mask[0] = 1
            self._columns[0] = 0
        looks_at = (self._looks_at() // patch + shift) % width
        if self._stop is not None:
            self._mask[self._stop], self._columns[self._stop] = 1, looks_at
        self._position = np.array((HORIZON // patch, looks_at), np.int16)
        self._grid = self._ids[np.roll(self.city.panorama(self.place, patch), shift, axis=1)][..., None]

    def _raw_ways(self) -> list[tuple[int, int, float]]:
        """(column of the panorama as it was taken, place, heading) of each way."""
        return [(column, end, heading) for column, heading, end in self._graph.ways[self.place]]

    def _looks_at(self) -> int:
        """Return the column of the panorama, as it was taken, that the agent looks at."""
        return column_of(float(self._graph.yaw[self.place]), self.heading)

    def _shift(self, patch: int) -> int:
        """Return the number of patches by which the panorama is turned so that the agent looks at its middle."""
        return COLUMNS // patch // 2 - self._looks_at() // patch if self.config.turned else 0

    def _following(self) -> int | None:
        """Return the next place of the route, where the agent is on it."""
        nodes, here = self.route.nodes, self._graph.ids[self.place]
        if here not in nodes:
            return None
        last = len(nodes) - 1 - nodes[::-1].index(here)
        return self._graph.number(nodes[last + 1]) if last + 1 < len(nodes) else None

    def _observe(self) -> Observation:
        return {
            "action_mask": self._mask.copy(),
            TOWARDS: self._columns.copy(),
            "goal": self._goal_row.copy(),
            "grid": self._grid.copy(),
            "position": self._position.copy(),
        }

    def _info(self) -> dict[str, Any]:
        return {"text": {"goal": self.route.instruction}}
