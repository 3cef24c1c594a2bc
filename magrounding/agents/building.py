"""Building networks from an agent's id and an environment's description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import torch

from magrounding.agents.policy import Policy
from magrounding.errors import ConfigurationError, check_bool, choose
from magrounding.plain import make_plain
from magrounding.registry import AgentEntry, agent_entry, load
from magrounding.spec import EnvSpec

Config = TypeVar("Config")


def freeze(policy: Policy, names: Sequence[str]) -> None:
    """Freeze all parameters whose names begin with one of `names`; ConfigurationError where none does."""
    for name in names:
        found = [parameter for known, parameter in policy.named_parameters() if known.startswith(name)]
        if not found:
            raise ConfigurationError(
                f"{type(policy).__name__.lower()} has no parameter whose name begins with {name!r}"
            )
        for parameter in found:
            parameter.requires_grad_(False)


def make_policy(id: str, spec: EnvSpec, **options: Any) -> Policy:
    """Build the untrained network of an agent.

    Args:
        id: agent id, e.g. "txt2pi".
        spec: of the environment.
        options: options of its policy, JSON values.

    Raises:
        ConfigurationError: an unknown id or option, an option that the id fixes, an invalid value, or an environment
            that the network is not made for.
    """
    entry = agent_entry(id)
    if not isinstance(spec, EnvSpec):
        raise ConfigurationError(f"spec is an EnvSpec, as an environment describes itself, got {spec!r}")
    for name in options:
        if name in entry.options:
            raise ConfigurationError(f"agent {id!r} itself sets {name} to {entry.options[name]!r}: leave it out")
    return _build(entry, spec, options)


def build_policy(agent: str, spec: EnvSpec, options: Mapping[str, Any], seed: int) -> Policy:
    """Build the network of an agent id with weights drawn from `seed`; torch's own random state is left alone."""
    entry = agent_entry(agent)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build(entry, spec, options)


def _build(entry: AgentEntry, spec: EnvSpec, options: Mapping[str, Any]) -> Policy:
    """Network of an entry, whose `policy` is a class with `defaults` or anything that takes a spec and options."""
    make, options = load(entry.policy), {**entry.options, **options}
    defaults = getattr(make, "defaults", None)
    return make(spec, **options) if defaults is None else make(spec, configure(entry.id, defaults, options))


def configure(agent: str, defaults: Config, options: Mapping[str, Any]) -> Config:
    """Return the defaults (a frozen dataclass) with some options changed; lists become tuples, as JSON has none."""
    known = tuple(each.name for each in fields(defaults))  # type: ignore[arg-type]
    changes = {
        choose(f"option of {agent}", name, known): tuple(value) if isinstance(value, list) else value
        for name, value in options.items()
    }
    return replace(defaults, **changes)  # type: ignore[type-var]


def check_config(config: Any) -> None:
    """Raise a ConfigurationError unless flags are bools, names strings and sizes positive integers, or 0 by default."""
    make_plain(config)
    for each in fields(config):
        value = getattr(config, each.name)
        if isinstance(each.default, bool):
            check_bool(each.name, value)
        elif isinstance(each.default, str):
            if not isinstance(value, str):
                raise ConfigurationError(f"{each.name} is a string, not {value!r}")
        elif isinstance(each.default, int | tuple):
            many = isinstance(each.default, tuple)
            sizes = value if many else (value,)
            least = 0 if each.default == 0 else 1
            if not isinstance(sizes, tuple) or not sizes or any(type(n) is not int or n < least for n in sizes):
                what = "a list of positive integers" if many else "a positive integer" if least else "0 or positive"
                raise ConfigurationError(f"{each.name} is {what}, not {value!r}")
