"""Options on a command line, "name=value": of learners and networks, and of environments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from magrounding.cli.command import items
from magrounding.errors import ConfigurationError, check_choice
from magrounding.registry import EnvConfig, EnvEntry, describe, is_simulator
from magrounding.schema import assign, known_name
from magrounding.simulators.vectorize import check_workers

if TYPE_CHECKING:
    from magrounding.experiment.config import RunConfig

ENV_FLAG = "--env-option"
WORKERS = 2
"""Processes that share the games of a simulator of one game, unless another number is asked for."""
_SEEDS_APART = 2**20
_WEIGHTS = "weights."
_NOTHING = SimpleNamespace()
_BETWEEN_OPTIONS = re.compile(r",(?=\s*[\w.*]+=)")
"""A comma between two options; others belong to a value, such as a list."""


def assignments(texts: Iterable[str], flag: str) -> list[tuple[str, str]]:
    """Split texts of "name=value,…" into (name, value); ConfigurationError for one without a name or "="."""
    found = []
    for item in (item for text in texts for item in _BETWEEN_OPTIONS.split(text)):
        name, equals, value = item.strip().partition("=")
        if not name or not equals:
            raise ConfigurationError(f"{flag} takes name=value, several with commas between them, got {item!r}")
        found.append((name, value))
    return found


def parse_env_options(
    texts: Sequence[str], entry: EnvEntry, reserved: Mapping[str, str] | None = None, stage_flag: str = "--stage"
) -> dict[str, Any]:
    """Parse the environment's options behind each ENV_FLAG, "name=value,…"; values as in JSON, or else strings.

    Stage, number of agents and those in `reserved`, option → the flag that chooses it instead, are a
    ConfigurationError.
    """
    reserved = {entry.stage_option: stage_flag, "agents": "--agents", **(reserved or {})}
    options: dict[str, Any] = {}
    for name, value in assignments(texts, ENV_FLAG):
        name = known_name(entry.factory, name, entry.id)
        if name in reserved:
            raise ConfigurationError(f"{ENV_FLAG} does not set {name}: {reserved[name]} does")
        options[name] = entry.schema[name].parse(value)
    return options


def assign_network(config: RunConfig, name: str, value: str) -> RunConfig:
    """Set an option of the run's network; "similarity=32" becomes the path "network.similarity"."""
    changed, known = assign(config, f"network.{name}", value), network_options(config)
    return config if name in known and known[name] == changed.network[name] else changed


def network_options(config: RunConfig) -> Mapping[str, Any]:
    """Name → value of every option that the network of a run has, those of its own included."""
    return vars(getattr(config.make_network(), "config", _NOTHING))


def assign_learners(config: RunConfig, name: str, value: str) -> RunConfig:
    """Set an option in every phase whose learner has it; `weights.<name>` is the weight of a loss."""
    if name.startswith(_WEIGHTS):
        from magrounding.agents.policy import CONTRAST  # torch

        known = {CONTRAST, *config.make_network().loss_weights}
        known |= {loss for _, phase in config.walk() for loss in phase.learner.weights}
        check_choice("auxiliary loss", name.removeprefix(_WEIGHTS), sorted(known))
    return assign(config, f"phases.*.*.learner.{name}", value)


def configure(entry: EnvEntry, options: Mapping[str, Any]) -> EnvConfig:
    """Return the configuration with these options, described once; ConfigurationError where they make none."""
    try:
        config = entry.configure(**options)
        describe(config)
    except TypeError as error:  # a value of a kind that a default of None does not tell
        raise ConfigurationError(f"{entry.id} cannot be made of {dict(options)}: {error}") from None
    return config


def choose_workers(asked: int | str | None, config: EnvConfig) -> int | str:
    """Return the workers of a simulator's games as `make_vec` takes them; 0 for worlds that simulate batches."""
    if asked is None:
        return WORKERS if is_simulator(config) else 0
    check_workers(asked)
    if asked and not is_simulator(config):
        raise ConfigurationError("--workers is for simulators of one game: this world simulates batches, leave it out")
    return asked


def chosen_team(config: RunConfig, seed: int | None, stage: str | None) -> tuple[int, str]:
    """Return a run's seed and stage as asked for, or its first seed and last stage."""
    seeds = [str(k) for k in config.seeds]
    chosen = check_choice("seed of this run", seeds[0] if seed is None else str(seed), seeds)
    return int(chosen), check_choice("stage of this run", stage or config.stages[-1], config.stages)


def first_seed(least: int, seed: int) -> int:
    """Return the seed of the first row of games, `least` for --seed 0; each --seed has 2**20 rows to itself."""
    return least + _SEEDS_APART * seed


def named_trackers(text: str | None) -> tuple[str, ...] | None:
    """Return the ids behind --tracker, () for "none"; None for None."""
    names = names_of("--tracker", text)
    return None if names is None else () if names == ["none"] else tuple(dict.fromkeys(names))


def names_of(flag: str, text: str | None) -> list[str] | None:
    """Split names at commas; None for None, ConfigurationError where nothing was named."""
    names = None if text is None else items(text)
    if names == []:
        raise ConfigurationError(f"{flag} takes names separated by commas, got {text!r}")
    return names
