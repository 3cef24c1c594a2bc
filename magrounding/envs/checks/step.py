"""Checks of each step by itself: names of agents, spaces, masks, texts, rewards and flags."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from magrounding.envs.checks.episode import STEP_NAMES, require
from magrounding.errors import ConfigurationError
from magrounding.spec import EPISODE, MASK, SCORE, SCORES, STATE, WON, EnvSpec


def check_declarations(env: Any) -> EnvSpec:
    """Check agents' names, metadata and spaces against the spec, and return it; ConfigurationError without a spec."""
    parallel = hasattr(env, "possible_agents") and hasattr(env, "observation_space")
    require(parallel, "agents", f"a PettingZoo ParallelEnv is checked, this is a {type(env).__name__}")
    agents, spec = env.possible_agents, getattr(env, "spec", None)
    if not isinstance(spec, EnvSpec):
        raise ConfigurationError(
            f"{type(env).__name__}.spec is {type(spec).__name__}, where checks read what to expect: set it to a "
            "magrounding.spec.EnvSpec"
        )
    require(len(agents) > 0 and len(set(agents)) == len(agents), "agents", f"possible_agents is {agents}")
    require(len(agents) == spec.num_agents, "agents", f"there are {len(agents)}, the spec says {spec.num_agents}")
    for key in ("name", "render_modes"):
        require(key in env.metadata, "metadata", f"metadata lacks {key!r}")
    for agent in agents:
        observation, action = env.observation_space(agent), env.action_space(agent)
        same = observation is env.observation_space(agent) and action is env.action_space(agent)
        require(same, "spaces", f"each call gives {agent} another space object")
        discrete = isinstance(action, spaces.Discrete) and action.n == spec.num_actions and action.start == 0
        require(discrete, "spaces", f"the action space of {agent} is {action}, not Discrete({spec.num_actions})")
        parts = observation.spaces if isinstance(observation, spaces.Dict) else {}
        for name, part in spec.space().spaces.items():
            found = parts.get(name)
            same = found is not None and (found.shape, found.dtype) == (part.shape, part.dtype)
            require(same, "spaces", f"{name!r} of {agent} has the space {found}, the spec says {part}")
    if STATE in spec.capabilities:
        space = getattr(env, "state_space", None)
        fits = isinstance(space, spaces.Box) and space.shape == (spec.state_size,)
        require(fits, "spaces", f"state_space is {space}, not a Box of {spec.state_size} numbers")
    return spec


def check_step(env: Any, acting: list[str], result: tuple[dict[str, Any], ...]) -> None:
    """Check the keys of every dict, observations and state against their spaces, masks, and the keys of infos."""
    spec, names = env.spec, ("observations", "infos") if len(result) == 2 else STEP_NAMES
    for name, values in zip(names, result, strict=True):
        require(isinstance(values, dict), "keys", f"{name} is a {type(values).__name__}, not a dict")
        require(list(values) == acting, "keys", f"{name} is for {list(values)}, but {acting} acted")
    observations, infos = result[0], result[-1]
    for agent in acting:
        _check_observation(agent, observations[agent], env.observation_space(agent))
        if MASK in spec:
            _check_mask(agent, observations[agent], infos[agent], env.action_space(agent))
        for key, promised in (("text", spec.texts), ("document", spec.shared_texts)):
            require(not promised or key in infos[agent], "infos", f"infos of {agent} lack {key!r}")
    for name in (field.name for field in spec.fields if field.shared):
        same = all(np.array_equal(observations[agent][name], observations[acting[0]][name]) for agent in acting)
        require(same, "shared", f"the spec says that all agents see one {name!r}, but what they see differs")
    if STATE in spec.capabilities:
        state, space = env.state(), env.state_space
        good = isinstance(state, np.ndarray) and state.dtype == space.dtype and space.contains(state)
        require(good, "state", f"state() is outside state_space {space}")


def _check_observation(agent: str, observation: Any, space: spaces.Dict) -> None:
    complete = isinstance(observation, dict) and set(observation) == set(space.spaces)
    require(complete, "observations", f"{agent} sees {sorted(observation)}, its space has {sorted(space.spaces)}")
    for key, part in space.spaces.items():
        value = observation[key]
        where = f"{key} of {agent}"
        require(isinstance(value, np.ndarray), "observations", f"{where} is a {type(value).__name__}, not an array")
        require(value.dtype == part.dtype, "observations", f"{where} has dtype {value.dtype}, its space {part.dtype}")
        require(value.shape == part.shape, "observations", f"{where} has shape {value.shape}, its space {part.shape}")
        bounds = f"values of {where} lie in [{value.min()}, {value.max()}]" if value.size else where
        require(part.contains(value), "observations", f"{bounds}, outside {part}")


def _check_mask(agent: str, observation: dict[str, Any], info: dict[str, Any], space: spaces.Discrete) -> None:
    mask = observation["action_mask"]
    require(mask.dtype == np.int8 and mask.shape == (space.n,), "masks", f"the mask of {agent} is no [{space.n}] int8")
    require(bool(mask.any()), "masks", f"the mask of {agent} leaves no action")
    require(bool(np.isin(mask, (0, 1)).all()), "masks", f"the mask of {agent} has other values than 0 and 1")
    require("action_mask" in info, "masks", f"infos of {agent} lack 'action_mask', the mask that observations show too")
    same = np.array_equal(info["action_mask"], mask)
    require(same, "masks", f"the masks of {agent} in observations and infos differ")


def check_texts(spec: EnvSpec, first: dict[str, Any], later: dict[str, Any]) -> None:
    """Check that texts that last for an episode have not changed since its beginning."""
    for text in spec.texts:
        for agent in later if text.lifetime == EPISODE else ():
            lasts = np.array_equal(first[agent][text.name], later[agent][text.name])
            require(lasts, "texts", f"{text.name!r} of {agent} changes in an episode, its spec says that it stays")


def check_flags(env: Any, acting: list[str], result: tuple[dict[str, Any], ...]) -> None:
    """Check rewards, flags, which agents act next, and the outcome where none does."""
    _, rewards, terminations, truncations, infos = result
    for agent in acting:
        reward = rewards[agent]
        good = isinstance(reward, float | np.floating) and bool(np.isfinite(reward))
        require(good, "rewards", f"the reward of {agent} is {reward!r}, not a finite float")
        for name, flags in (("terminations", terminations), ("truncations", truncations)):
            flag = flags[agent]
            require(isinstance(flag, bool | np.bool_), "flags", f"{name} of {agent} is {flag!r}, not a bool")
    living = [agent for agent in acting if not (terminations[agent] or truncations[agent])]
    require(list(env.agents) == living, "agents", f"agents are {env.agents}, but {living} have neither flag")
    if living:
        return
    for agent in acting:
        if env.spec.outcome == WON:
            won = infos[agent].get("won")
            require(isinstance(won, bool), "infos", f"'won' in infos of {agent} is {won!r} at the end, not a bool")
        if env.spec.outcome == SCORE or SCORES in env.spec.capabilities:
            score = infos[agent].get("score")
            good = isinstance(score, float | np.floating) and bool(np.isfinite(score))
            require(good, "infos", f"'score' in infos of {agent} is {score!r} at the end, not a finite float")


def check_illegal(acting: list[str], actions: dict[str, int], seen: dict[str, Any], infos: dict[str, Any]) -> None:
    """Check that infos flag masked actions, and no others."""
    for agent in acting:
        illegal, flagged = not seen[agent][MASK][actions[agent]], bool(infos[agent].get("illegal", False))
        played = f"{agent} played {actions[agent]}, its mask makes illegal {illegal}, its infos say {flagged}"
        require(flagged == illegal, "illegal", played)
