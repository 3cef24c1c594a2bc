"""Building networks from an agent's id and an environment's description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from magrounding.agents.own_defaults import own_defaults
from magrounding.agents.policy import Policy
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.errors import ConfigurationError
from magrounding.registry import AgentEntry, agent_entry, load
from magrounding.schema import Options, known_name
from magrounding.spec import EnvSpec

MOST = 2**28
"""Numbers in the tensors of a network at most: 1 GiB in float32."""
_EACH = 2**14
"""Numbers that a tensor counts for at least: a million small layers are too many as well."""
_MAKERS = frozenset((torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn))
_NO_MEMORY = ("allocate", "overflow", "storage size", "invalid size", "too large")


class _Count(TorchFunctionMode):
    """Counter of the numbers in tensors that this thread makes; an empty tensor has no memory yet."""

    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _MAKERS:
            self._made += max(made.numel(), _EACH)
            if self._made > MOST:
                raise MemoryError
        return made


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Raise ConfigurationError where a network that is built within has more than MOST numbers.

    Args:
        what: what is built, for the error, such as "the network of agent 'txt2pi'".
    """
    try:
        with _Count():
            yield
    except (MemoryError, RuntimeError, TypeError) as error:
        if not isinstance(error, MemoryError) and not any(word in str(error).lower() for word in _NO_MEMORY):
            raise
        raise ConfigurationError(
            f"{what} would take more than {MOST:,} parameters with these options: choose smaller ones"
        ) from None


Config = TypeVar("Config", bound=Options)


def freeze(policy: Policy, names: Sequence[str]) -> None:
    """Freeze all parameters whose names begin with one of `names`.

    A part that is a frozen language model has no parameters, so there is nothing to freeze.

    Raises:
        ConfigurationError: a name that no parameter begins with, and that is no such part.
    """
    for name in names:
        found = [parameter for known, parameter in policy.named_parameters() if known.startswith(name)]
        if not found and not _is_language_model(policy, name):
            raise ConfigurationError(
                f"{type(policy).__name__.lower()} has no parameter whose name begins with {name!r}"
            )
        for parameter in found:
            parameter.requires_grad_(False)


def _is_language_model(policy: Policy, name: str) -> bool:
    part: object = policy
    for attribute in name.split("."):
        part = getattr(part, attribute, None)
    return isinstance(part, PretrainedStates)


def make_policy(id: str, spec: EnvSpec, **options: Any) -> Policy:
    """Build the untrained network of an agent.

    Args:
        id: agent id, e.g. "txt2pi".
        spec: description of the environment.
        options: options of the network, JSON values.

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


@own_defaults()
def _build(entry: AgentEntry, spec: EnvSpec, options: Mapping[str, Any]) -> Policy:
    """Network of an entry, whose `policy` is a class with `defaults` or anything that takes a spec and options."""
    make, options = load(entry.policy), {**entry.options, **options}
    defaults = getattr(make, "defaults", None)
    made = options if defaults is None else configure(entry.id, defaults, options)
    with bounded(f"the network of agent {entry.id!r}"):
        return make(spec, **made) if defaults is None else make(spec, made)


def configure(agent: str, defaults: Config, options: Mapping[str, Any]) -> Config:
    """Return the default options of a network with some changed; ConfigurationError for unknown ones."""
    return replace(defaults, **{known_name(type(defaults), name, agent): value for name, value in options.items()})
