"""The EnvSpec of an env: its own, or one derived from its spaces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces

from magrounding.errors import ConfigurationError
from magrounding.simulators.answers import refuse
from magrounding.simulators.env_adapters import EnvAdapter, adapt, attribute
from magrounding.spec import EXPERT, MASK, SCORES, STATE, EnvSpec, Field, FixedActions, Mask

ONLY_FIELD = "observation"
"""Name of the field of an observation that is no dict."""

UNKNOWN_LIMIT = 0
"""`max_cycles` of an env that does not say after how many steps it truncates."""


def spec_of(env: Any) -> EnvSpec:
    """Return the spec of an env: `env.spec` where that is an EnvSpec, else derived from its spaces.

    Derived: Box, Discrete, MultiDiscrete and MultiBinary become fields, `action_mask` a Mask, a Discrete action space
    FixedActions, named as `env.action_names` says or "0", "1", …. A mask is added where there is none. `max_cycles` is
    `env.max_cycles`, or Gymnasium's `max_episode_steps`, or UNKNOWN_LIMIT. A time-out is no loss. Capabilities are
    "expert" where the env has `best_actions`, "state" where it has `state` and an integer Box as `state_space`.

    Raises:
        ConfigurationError: no agents or unequal ones, a space of another kind, or a limit that is no number.
    """
    return _spec_of_adapter(adapt(env), None)


def common_spec(adapters: Iterable[EnvAdapter], given: EnvSpec | None) -> EnvSpec:
    """Return the one spec of all envs of a batch, which is `given` where the envs do not say what they show and take.

    Raises:
        ConfigurationError: envs with different specs, or as `spec_of`.
    """
    return equal_spec(_spec_of_adapter(adapter, given) for adapter in adapters)


def equal_spec(specs: Iterable[EnvSpec]) -> EnvSpec:
    """Return the one spec that all of them equal; ConfigurationError where they differ."""
    first, *others = specs
    if any(other != first for other in others):
        raise ConfigurationError("make_env makes envs with different spaces; all games of a batch must be alike")
    return first


def _spec_of_adapter(adapter: EnvAdapter, given: EnvSpec | None) -> EnvSpec:
    """`given`, or the spec of the env, less the capabilities that no vector env of simulators has.

    Raises:
        ConfigurationError: an env with other agents or actions than its spec, or without a spec and with spaces that
            no spec describes.
    """
    actions = _common("action", [adapter.action_space(agent) for agent in adapter.possible_agents])
    if not isinstance(actions, spaces.Discrete):
        refuse("the action space", actions, adapter.env, "Discrete")
    own = attribute(adapter.env, "spec")
    spec = given if given is not None else own if isinstance(own, EnvSpec) else _derive(adapter, int(actions.n))
    spec = spec.with_mask()
    found = len(adapter.possible_agents), actions.n
    if found != (spec.num_agents, spec.num_actions):
        what = f"{spec.num_agents} and {spec.num_actions}, as its spec says,"
        refuse("the number of agents and of actions", found, adapter.env, what)
    offered = {SCORES} & spec.capabilities
    if EXPERT in spec.capabilities and callable(attribute(adapter.env, "best_actions")):
        offered |= {EXPERT}
    if STATE in spec.capabilities and callable(attribute(adapter.env, "state")):
        offered |= {STATE}
    return replace(spec, capabilities=frozenset(offered), state_parts=spec.state_parts if STATE in offered else ())


def _derive(adapter: EnvAdapter, count: int) -> EnvSpec:
    agents = adapter.possible_agents
    observation = _common("observation", [adapter.observation_space(agent) for agent in agents])
    fields = [_field(name, part, count, adapter.env) for name, part in observed(observation).items()]
    names = attribute(adapter.env, "action_names")
    names = range(count) if names is None else names
    if len(names) != count:
        refuse("action_names", names, adapter.env, f"a name for each of {count} actions")
    state = attribute(adapter.env, "state_space") if callable(attribute(adapter.env, "state")) else None
    found = {EXPERT} if callable(attribute(adapter.env, "best_actions")) else set()
    return EnvSpec(
        tuple(fields),
        len(agents),
        FixedActions(tuple(str(name) for name in names)),
        words=(),
        max_cycles=_limit(adapter.env),
        time_limit_is_loss=False,
        capabilities=frozenset(found | {STATE} if _fits(state) else found),
        state_parts=(("state", (math.prod(state.shape),)),) if state is not None and _fits(state) else (),
    )


def _common(kind: str, found: Iterable[spaces.Space]) -> spaces.Space:
    first, *others = found
    for other in others:
        if other != first:
            raise ConfigurationError(
                f"all agents must have the same {kind} space, got {first} and {other}; pad them first"
            )
    return first


def _field(name: str, space: spaces.Space, num_actions: int, env: Any) -> Field:
    if name == MASK:
        if not isinstance(space, spaces.Box | spaces.MultiBinary) or space.shape != (num_actions,):
            refuse("the space of action_mask", space, env, f"a Box of shape ({num_actions},)")
        return Mask(name, (num_actions,))
    bounds = _bounds(space)
    if bounds is None:
        refuse(f"the space of {name!r}", space, env, "Box, Discrete, MultiDiscrete or MultiBinary")
    return Field(name, tuple(space.shape or ()), *_extent(*bounds), np.dtype(space.dtype).name)


def field_bounds(field: Field, space: spaces.Space | None) -> tuple[np.ndarray, np.ndarray]:
    """Return inclusive bounds of the numbers of a field, of each by itself where this space is what it derives from."""
    bounds = _bounds(space)
    derived = space is not None and space.shape == field.shape
    if derived and bounds is not None and _extent(*bounds) == (field.low, field.high):
        return bounds
    return np.asarray(field.low), np.asarray(field.high)


def observed(space: spaces.Space) -> Mapping[str, spaces.Space]:
    """Return the parts of an observation by name; one that is no dict is the ONLY_FIELD."""
    return space.spaces if isinstance(space, spaces.Dict) else {ONLY_FIELD: space}


def _bounds(space: spaces.Space | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Inclusive bounds of each number of a space; None for a space that is no array of numbers."""
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.Discrete):
        return np.asarray(space.start), np.asarray(space.start + space.n - 1)
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, spaces.MultiBinary):
        return np.asarray(0), np.asarray(1)
    return None


def _extent(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    return (low.min().item(), high.max().item()) if low.size else (0, 0)


def _limit(env: Any) -> int:
    limit = attribute(env, "max_cycles")
    if limit is None:
        limit = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    try:
        return UNKNOWN_LIMIT if limit is None else int(limit)
    except (TypeError, ValueError, OverflowError):
        refuse("max_cycles", limit, env, "a number of steps")


def _fits(space: Any) -> bool:
    """Tell whether a state space fits int16, which `state()` of a vector env returns."""
    bounds = np.iinfo(np.int16)
    return (
        isinstance(space, spaces.Box)
        and np.issubdtype(space.dtype, np.integer)
        and space.low.min() >= bounds.min
        and space.high.max() <= bounds.max
    )
