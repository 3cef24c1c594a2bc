"""GameEnv: base of our PettingZoo envs: spaces, the order of calls, and observations in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

from gymnasium import spaces
from pettingzoo import ParallelEnv

from magrounding.errors import CallOrderError, check_choice
from magrounding.registry import ENVS
from magrounding.spec import EnvSpec
from magrounding.text_view import Happened, find_text_view
from magrounding.vector import CallOrder, DeepCopied, Observation, action_numbers

FRAMES_PER_SECOND = 4
Shown = tuple[dict[str, Observation], dict[str, dict[str, Any]]]
"""Observations and infos, by agent."""
Stepped = tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]
"""Observations, rewards, terminations, truncations and infos, by agent."""


class ParallelGame(DeepCopied, CallOrder, ParallelEnv[str, Observation, SupportsIndex], ABC):
    """One game of n agents, agent_0 … agent_{n-1}: spaces and the order of calls; a subclass plays it (`_advance`)."""

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec
        self.possible_agents = [f"agent_{i}" for i in range(spec.num_agents)]
        self.agents: list[str] = []
        self._num_actions = spec.num_actions
        self._observation_spaces = {agent: self._space() for agent in self.possible_agents}
        self._action_spaces = {agent: spaces.Discrete(spec.num_actions) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of an agent's observations; the same object on each call."""
        return self._observation_spaces[check_choice("agent", agent, self.possible_agents)]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the space of an agent's actions; the same object on each call."""
        return self._action_spaces[check_choice("agent", agent, self.possible_agents)]

    def step(self, actions: Mapping[str, SupportsIndex]) -> Stepped:
        """Play one step.

        Args:
            actions: one integer in [0, A) for each of `agents`, none for another agent.

        Returns:
            observations, rewards, terminations, truncations, infos: by agent, for the agents who acted; five empty
            dicts where the episode is over and no action is given.

        Raises:
            InvalidAction: an action outside the space, a missing or unknown agent. Nothing has happened then: the step
                can be repeated with better actions.
            CallOrderError: before `reset`, after the episode's end, or after `close`.
        """
        self._require_start("step")
        if self.agents:
            return self._advance(action_numbers(actions, self.agents, self._num_actions))
        if isinstance(actions, Mapping) and not actions:
            return {}, {}, {}, {}, {}
        raise CallOrderError("the episode is over: call reset()")

    def _space(self) -> spaces.Dict:
        """Return a new space of an agent's observations."""
        return self.spec.space()

    @abstractmethod
    def _advance(self, chosen: list[int]) -> Stepped:
        """Play one step, given the action of each of `agents`."""


class GameEnv(ParallelGame):
    """One game of n agents; a subclass plays it (`reset`, `_advance`) and shows it (`_seen`).

    Args:
        id, options: how the env was made, so that others can make it again.
        spec: of its world.
        render_mode: None or one of render_modes; ConfigurationError for another.

    Attributes:
        frames_per_second: of films.
    """

    id = ""
    frames_per_second = FRAMES_PER_SECOND

    def __init__(
        self,
        id: str,
        options: Mapping[str, Any],
        spec: EnvSpec,
        render_mode: str | None,
        render_modes: Sequence[str],
    ) -> None:
        if render_mode is not None:
            check_choice("render_mode", render_mode, render_modes)
        self.id, self.options, self.render_mode = id, dict(options), render_mode
        self.metadata = {
            "name": ENVS[id].versioned_id if id in ENVS else id,
            "render_modes": list(render_modes),
            "is_parallelizable": True,
            "render_fps": self.frames_per_second,
        }
        super().__init__(spec)

    def describe(self, agent: str) -> str:
        """Return what an agent's observation holds, and what its last action has come to, as plain text.

        It is made of the agent's own arrays alone, see `TextView`; at the end, of the last ones. A ConfigurationError
        for an unknown agent, a CallOrderError before `reset` and after `close`.
        """
        self._require_start("describe")
        check_choice("agent", agent, self.possible_agents)
        return find_text_view(self.id, self.spec).describe(self._seen(agent), self._happened(agent))

    @abstractmethod
    def _seen(self, agent: str) -> Observation:
        """Return an agent's present observation; at the end, the last."""

    @abstractmethod
    def _happened(self, agent: str) -> Happened:
        """Return what an agent's last action has come to."""
