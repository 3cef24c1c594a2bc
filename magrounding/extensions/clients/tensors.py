"""`for_tensors`: parallel envs for clients that make tensors of everything they are given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

from magrounding.errors import ConfigurationError, check_choice
from magrounding.simulators.spaces import MASK, spec_of
from magrounding.spec import SCORES, EnvSpec

NO_OP = 0
"""The one action that a padded agent has."""

Layout = dict[str, tuple[slice, tuple[int, ...]]]
"""Field → (slice, shape), its place in a flat observation."""


def for_tensors(
    env: ParallelEnv,
    mask: Literal["info", "observation"] = "info",
    flatten: bool = False,
    dead: Literal["absent", "padded"] = "absent",
) -> TensorEnv:
    """Make a parallel env fit for clients that make tensors of infos, or want the same agents in every step.

    Args:
        env: a PettingZoo ParallelEnv whose observations are dicts with an `action_mask`, as `magrounding.make` makes.
        mask: where the action mask lies: in the infos or in the observation, never in both.
        flatten: one Box of float32 for each agent instead of a Dict: the fields of `spec`, `layout` says where each
            lies. What an env shows beside them is left out: `distance`, which `position` gives as well.
        dead: "absent": an agent that is out leaves `agents`; "padded": all agents stay to the end of the episode.

    Raises:
        ConfigurationError: another value, an env of another kind, or one without an action mask.
    """
    return TensorEnv(env, mask, flatten, dead)


class TensorEnv(BaseParallelWrapper):
    """A parallel env whose observations and infos are numbers and arrays of constant shapes.

    `infos[agent]` has the same keys in every step: `won` and, where a world has one, `score` (0 before the end),
    `illegal` (1 after a masked action, which did nothing), all float32, and with mask="info" `action_mask` [A] int8.
    Texts and their keys are left out.

    With dead="padded" an agent that is out, or joins later, observes zeros (where a space has no zero, what is nearest
    to it), is paid nothing, has only action 0, and terminates when the episode ends; its own actions are ignored, and
    may be missing.
    Arguments are those of `for_tensors`.

    Attributes:
        spec: the EnvSpec of `env`, with the words of the ids.
        layout: field → (slice, shape) of a flat observation, in the order of the Dict's keys; {} without `flatten`.
    """

    def __init__(self, env: ParallelEnv, mask: str, flatten: bool, dead: str) -> None:
        super().__init__(env)
        check_choice("mask", mask, ("info", "observation"))
        check_choice("dead", dead, ("absent", "padded"))
        self.spec: EnvSpec = spec_of(env)
        self.metadata = env.metadata
        self.possible_agents = list(env.possible_agents)
        self.agents: list[Any] = []
        self.layout: Layout = {}
        self._mask_in_info, self._padded = mask == "info", dead == "padded"
        self._numbers = numbers_of(self.spec)
        first = env.observation_space(self.possible_agents[0])
        if not isinstance(first, spaces.Dict) or MASK not in first.spaces:
            raise ConfigurationError(f"for_tensors needs observations that are dicts with an {MASK!r}, got {first}")
        self._fields = {
            name: part
            for name, part in first.spaces.items()
            if (name != MASK or not self._mask_in_info) and (name in self.spec or not flatten)
        }
        space = spaces.Dict(self._fields)
        if flatten:
            self.layout, space = flattened(space)
        self._spaces = dict.fromkeys(self.possible_agents, space)
        self._only_no_op = (np.arange(self.spec.num_actions) == NO_OP).astype(np.int8)

    def observation_space(self, agent: Any) -> spaces.Space:
        """Return a Dict or, with `flatten`, a Box; the same object on each call."""
        self.env.observation_space(agent)  # says which agents there are
        return self._spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, dict[str, Any]]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        self._count()
        for agent in [each for each in self.agents if each not in self.env.agents]:  # they join later
            observations[agent], infos[agent] = self._nothing(), {}
        return self._shown(observations), self._given(observations, infos)

    def step(
        self, actions: dict[Any, Any]
    ) -> tuple[dict[Any, Any], dict[Any, float], dict[Any, bool], dict[Any, bool], dict[Any, dict[str, Any]]]:
        acting = set(self.env.agents)
        if self._padded and isinstance(actions, Mapping):
            ignored = set(self.agents) - acting
            actions = {agent: action for agent, action in actions.items() if agent not in ignored}
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        over = not self.env.agents
        outcome, before = {**next(iter(infos.values()), {}), "illegal": False}, self.agents
        self._count()
        order = list(dict.fromkeys([*before, *self.agents]))
        for agent in order:  # envs say nothing of some that join or leave
            out = agent not in self.env.agents
            waits = self._padded and out and (agent not in acting or not over)
            if waits:
                terminations[agent], truncations[agent] = over, False
            if waits or agent not in observations:
                observations[agent] = self._nothing()
            rewards.setdefault(agent, 0.0)
            truncations.setdefault(agent, False)
            terminations.setdefault(agent, out and not truncations[agent])
            infos.setdefault(agent, outcome)  # `_given` copies it
        results = (self._shown(observations), rewards, terminations, truncations, self._given(observations, infos))
        return tuple({agent: part[agent] for agent in order} for part in results)  # pyright: ignore[reportReturnType]

    def _count(self) -> None:
        self.agents = list(self.possible_agents if self._padded and self.env.agents else self.env.agents)

    def _nothing(self) -> dict[str, np.ndarray]:
        """Return the observation of an agent that is out, its mask included."""
        fields = {}
        for name, part in self._fields.items():
            bounds = part if isinstance(part, spaces.Box) else self.spec[name]
            fields[name] = np.clip(np.zeros(part.shape or (), part.dtype), bounds.low, bounds.high)
        return {**fields, MASK: self._only_no_op.copy()}

    def _shown(self, observations: Mapping[Any, Any]) -> dict[Any, Any]:
        if self.layout:
            return {agent: self._flat(seen) for agent, seen in observations.items()}
        return {agent: {name: seen[name] for name in self._fields} for agent, seen in observations.items()}

    def _flat(self, seen: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.concatenate([seen[name].ravel() for name in self.layout]).astype(np.float32, copy=False)

    def _given(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, dict[str, Any]]:
        given: dict[Any, dict[str, Any]] = {}
        for agent, info in infos.items():
            given[agent] = {name: np.float32(info.get(name, 0.0)) for name in self._numbers}
            if self.env.agents and "score" in given[agent]:
                given[agent]["score"] = np.float32(0)  # simulators report the score so far
            if self._mask_in_info:
                given[agent][MASK] = observations[agent][MASK]
        return given


def unflatten(flat: Any, layout: Layout) -> dict[str, Any]:
    """Return the fields of flat observations [..., D], of NumPy or torch: name → [..., *shape]."""
    return {name: flat[..., where].reshape(*flat.shape[:-1], *shape) for name, (where, shape) in layout.items()}


def flat_batch(
    spec: EnvSpec, layout: Layout, observation: Mapping[str, np.ndarray], alive: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Flatten and pad observations of F rows of a vector env, as a `TensorEnv` would.

    Returns observations [F, n, D] float32 and masks [F, n, A] bool; `alive` [F, n] are agents that are in the episode.
    """
    parts = []
    for name, (_, shape) in layout.items():
        array = observation[name][:, None] if spec[name].shared else observation[name]
        parts.append(np.broadcast_to(array, (*alive.shape, *shape)).reshape(*alive.shape, -1))
    seen = np.concatenate(parts, -1, dtype=np.float32)
    seen[~alive] = 0
    return seen, np.where(alive[..., None], observation[MASK] != 0, np.arange(spec.num_actions) == NO_OP)


def numbers_of(spec: EnvSpec) -> tuple[str, ...]:
    """Return the names of the numbers in an agent's infos."""
    return ("won", "illegal", "score") if SCORES in spec.capabilities else ("won", "illegal")


def flat_observation(spec: EnvSpec) -> tuple[Layout, spaces.Box]:
    """Return the layout and the Box of what a vector env shows an agent beside the mask (`flat_batch`)."""
    fields = spec.space()
    del fields.spaces[MASK]
    return flattened(fields)


def flattened(space: spaces.Dict) -> tuple[Layout, spaces.Box]:
    """Return the place of each field of a Dict in a Box of float32, one behind the other, and that Box.

    ConfigurationError for fields that are no Boxes.
    """
    layout: Layout = {}
    start, ends = 0, []
    for name, part in space.spaces.items():
        if not isinstance(part, spaces.Box):
            raise ConfigurationError(f"flatten=True needs fields that are Boxes, {name!r} is {part}")
        layout[name] = (slice(start, start + math.prod(part.shape)), part.shape)
        start = layout[name][0].stop
        ends.append((part.low.ravel(), part.high.ravel()))
    low, high = (np.concatenate(each, dtype=np.float32) for each in zip(*ends, strict=True))
    return layout, spaces.Box(low, high, dtype=np.float32)
