"""Options on a command line, "name=value": of learners and networks, and of environments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from magrounding.cli.command import items
from magrounding.errors import ConfigurationError, choose
from magrounding.registry import EnvConfig, EnvEntry, describe, is_simulator
from magrounding.storage import json_text

if TYPE_CHECKING:
    from magrounding.agents.policy import Policy
    from magrounding.training.algorithm import AlgorithmConfig

ENV_FLAG = "--env-option"
WORKERS = 2
"""Processes that share the games of a simulator of one game, unless another number is asked for."""
_WEIGHTS = "weights"
_BETWEEN_OPTIONS = re.compile(r",(?=\s*[\w.]+=)")
"""A comma between two options; others belong to a value, such as a list."""


def parse_options(text: str, known: Mapping[str, Any], flag: str) -> dict[str, Any]:
    """The options in "name=value,…", values as in JSON; what is none is a string.

    Args:
        text: what stood on the command line.
        known: option → a value of its kind, such as its default.
        flag: where it stood, for errors.

    Raises:
        ConfigurationError: an option that is not known, or a value of another kind.
    """
    options: dict[str, Any] = {}
    for item in _BETWEEN_OPTIONS.split(text):
        name, value = _split(item, known, flag)
        default = known[name]
        told = default is not None and not _is_of_kind(value, default)  # of None the option itself says what it takes
        if told or (isinstance(value, int | float) and value < 0):
            raise ConfigurationError(f"{flag} takes values like {name}={json_text(default)}, got {item!r}")
        options[name] = value
    return options


def parse_env_options(texts: Sequence[str], entry: EnvEntry, reserved: Mapping[str, str]) -> dict[str, Any]:
    """The environment's options in "name=value" or "name=value,…", values as in JSON; what is none is a string.

    Args:
        texts: what stood behind each ENV_FLAG.
        entry: the environment.
        reserved: option → what chooses it instead.

    Raises:
        ConfigurationError: an option that does not exist, is reserved, or has a value of another kind than its default.
    """
    return read_options(texts, entry.options, f"{ENV_FLAG} of {entry.id}", reserved)


def read_options(
    texts: Sequence[str], known: Mapping[str, Any], flag: str, reserved: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """`parse_env_options` of options that are `known` with their defaults, asked for with `flag`."""
    options: dict[str, Any] = {}
    for item in (item for text in texts for item in _BETWEEN_OPTIONS.split(text)):
        name, value = _split(item, known, flag)
        if reserved and name in reserved:
            raise ConfigurationError(f"{ENV_FLAG} does not set {name}: {reserved[name]} does")
        default = known[name]
        if value is not None and default is not None and not _is_of_kind(value, default):
            raise ConfigurationError(f"{ENV_FLAG} takes values like {name}={json_text(default)}, got {item!r}")
        options[name] = value
    return options


def chosen_elsewhere(entry: EnvEntry, stage_flag: str) -> dict[str, str]:
    """Option → the flag that chooses it, of those that have one: stage and number of agents."""
    return {**dict.fromkeys(filter(None, [entry.stage_option]), stage_flag), "agents": "--agents"}


def configure(entry: EnvEntry, options: Mapping[str, Any]) -> EnvConfig:
    """The configuration with these options, described once; ConfigurationError where they make none."""
    try:
        config = entry.configure(**options)
        describe(config)
    except TypeError as error:  # a value of a kind that a default of None does not tell
        raise ConfigurationError(f"{entry.id} cannot be made of {dict(options)}: {error}") from None
    return config


def game_options(
    entry: EnvEntry, stage: str | None, agents: int | None, split: str | None, env_option: Sequence[str]
) -> dict[str, Any]:
    """Options of the games of an evaluation set, from what was typed.

    Args:
        entry: the environment.
        stage, agents, split: None for the environment's own; of the sets, the one that it keeps from training.
        env_option: what stood behind each --env-option.

    Raises:
        ConfigurationError: a name or a value that cannot be.
    """
    wanted: str = entry.options.get(entry.stage_option, "") if stage is None else stage
    sets = entry.evaluation.sets_of(wanted)
    chosen = sets[choose("split", split or entry.evaluation.held_out_set(wanted), tuple(sets))]
    options = {**entry.with_stage(choose(f"stage of {entry.id}", wanted, entry.stages)), **chosen}
    if entry.multi_agent:
        options["agents"] = entry.options["agents"] if agents is None else agents
    elif agents not in (None, 1):
        raise ConfigurationError(f"{entry.id} is played by one agent, got {agents}")
    reserved = {**chosen_elsewhere(entry, "--stage"), **dict.fromkeys(chosen, "--split")}
    return entry.with_limit() | options | parse_env_options(env_option, entry, reserved)


def choose_workers(asked: int | None, config: EnvConfig) -> int:
    """Processes to share a simulator's games; 0 for worlds that simulate batches.

    Raises:
        ConfigurationError: fewer than 0, or some for a world that has no use for them.
    """
    if asked is None:
        return WORKERS if is_simulator(config) else 0
    if asked < 0:
        raise ConfigurationError(f"--workers is a number of processes, 0 or more, got {asked}")
    if asked and not is_simulator(config):
        raise ConfigurationError("--workers is for simulators of one game: this world simulates batches, leave it out")
    return asked


def learner_options(learners: Iterable[AlgorithmConfig], network: Policy) -> dict[str, Any]:
    """Every option of some learners, as the first that has it sets it; `weights.<name>` is the weight of a loss."""
    from magrounding.agents.policy import CONTRAST

    options: dict[str, Any] = {}
    for learner in learners:
        own = {name: value for name, value in vars(learner).items() if name != _WEIGHTS}
        options = {**own, **{f"{_WEIGHTS}.{name}": weight for name, weight in learner.weights.items()}, **options}
    own_weights = {CONTRAST: 0.0, **network.loss_weights}
    return {**{f"{_WEIGHTS}.{name}": float(weight) for name, weight in own_weights.items()}, **options}


def change_learner(learner: AlgorithmConfig, options: Mapping[str, Any]) -> AlgorithmConfig:
    """A learner with those of the options of `learner_options` that it has."""
    beginning = f"{_WEIGHTS}."
    weights = {name.removeprefix(beginning): v for name, v in options.items() if name.startswith(beginning)}
    own = {name: value for name, value in options.items() if name in vars(learner)}
    return replace(learner, **own, weights={**learner.weights, **weights})


def names_of(flag: str, text: str | None) -> list[str] | None:
    """Names separated by commas; None where nothing was asked for, ConfigurationError where nothing was named."""
    if text is None:
        return None
    names = items(text)
    if not names:
        raise ConfigurationError(f"{flag} takes names separated by commas, got {text!r}")
    return names


def _split(item: str, known: Mapping[str, Any], flag: str) -> tuple[str, Any]:
    """Name and value of "name=value"; ConfigurationError for a name that is not known."""
    name, _, value = item.strip().partition("=")
    choose(f"option for {flag}", name, tuple(known))
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return name, value
    return name, tuple(parsed) if isinstance(parsed, list) else parsed


def _is_of_kind(value: Any, default: Any) -> bool:
    """Whether a value is of the kind of a default; whole numbers are also floating ones."""
    return type(value) is type(default) or (type(default) is float and type(value) is int)
