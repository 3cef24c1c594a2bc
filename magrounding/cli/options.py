"""Options on a command line, "path=value" after all flags: of environments, networks, learners, and of any run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tyro

from magrounding.cli.command import items
from magrounding.errors import ConfigurationError, check_choice
from magrounding.registry import EnvEntry, is_simulator
from magrounding.schema import assign, known_name
from magrounding.simulators.vectorize import check_workers

if TYPE_CHECKING:
    from magrounding.agents.policy import Policy
    from magrounding.envs.make import Game
    from magrounding.experiment.config import RunConfig

Paths = tyro.conf.Suppress[tuple[str, ...]]
"""Words "path=value", which `CommandLine` finds."""
WORKERS = 2
"""Processes that share the games of a simulator of one game, unless another number is asked for."""
ENV, GAMES = "env_options.", "evaluation.report_games"
_ALIASES = {
    "env.": ENV,
    "learner.": "phases.*.*.learner.",
    "learning.": "phases.*.*.learner.",
    "evaluation.games": GAMES,
}
"""Beginning of a path as it is typed → as a run's config has it; sweeps of version 0.2 have "learning."."""
_SEEDS_APART = 2**20

Asked = Mapping[str, tuple[str, str]]
"""Path in a run's config → (word as it was typed, value)."""


def assignments(words: Iterable[str]) -> Asked:
    """Read words "path=value"; ConfigurationError for another word, or an option that is given twice."""
    found: dict[str, tuple[str, str]] = {}
    for word in words:
        path, equals, value = word.partition("=")
        begins = next(filter(path.startswith, _ALIASES), "")
        whole = _ALIASES.get(begins, "") + path[len(begins) :]
        if not path or not equals:
            raise ConfigurationError(f"an option is written path=value, e.g. env.max_cycles=80, got {word!r}")
        if whole in found:
            raise ConfigurationError(f"{word} gives an option for the second time, after {found[whole][0]}")
        found[whole] = word, value
    return found


def parse_env_options(asked: Asked, entry: EnvEntry, reserved: Mapping[str, str]) -> dict[str, Any]:
    """Name → value of an environment's options; values as in JSON, or else strings.

    Another option is a ConfigurationError, and so are stage, number of agents and those in `reserved`, option → what
    chooses it instead.
    """
    reserved = {entry.stage_option: "--stage", "agents": "--agents", **reserved}
    options: dict[str, Any] = {}
    for whole, (word, value) in asked.items():
        with refused_as(word):
            if not whole.startswith(ENV):
                raise ConfigurationError("this is no option of an environment, as env.max_cycles=80 is")
            name = known_name(entry.factory, whole.removeprefix(ENV), entry.id)
            if name in reserved or name in options:
                raise ConfigurationError(f"{reserved.get(name, 'another path')} chooses {name}")
            options[name] = entry.schema[name].parse(value)
    return options


def assign_paths(config: RunConfig, asked: Asked) -> RunConfig:
    """A run's config with other values of options; networks and losses are judged once all values are known."""
    changed = config
    for whole, (word, value) in asked.items():
        with refused_as(word):
            stage, phases = whole.removeprefix("phases.").partition(".")[0], changed.phases
            if stage in config.stages and stage not in phases and "*" in phases:  # one of the remaining stages
                changed = replace(changed, phases={**phases, stage: phases["*"]})
            changed = assign(changed, whole, value)
    judged = [word for whole, (word, _) in asked.items() if whole.startswith("network.") or ".weights" in whole]
    if judged:
        with refused_as(" ".join(judged)):
            known, losses = _weighted(config), loss_weights(changed.make_network())
            for name in _weighted(changed) - known:
                check_choice("auxiliary loss", name, sorted({*known, *losses}))
    return changed


@contextmanager
def refused_as(words: str) -> Iterator[None]:
    """Name the words of the command line that an error within is about."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{words}: {error}") from None


def loss_weights(network: Policy) -> dict[str, float]:
    """Name → weight of every auxiliary loss of a network, where a learner has no other."""
    from magrounding.agents.policy import CONTRAST  # torch

    return {CONTRAST: 0.0, **network.loss_weights}


def _weighted(config: RunConfig) -> set[str]:
    """Names of the losses that learners of a run have weights of."""
    return {name for _, phase in config.walk() for name in phase.learner.weights}


def choose_workers(asked: int | str | None, games: Game) -> int | str:
    """Return the workers of a simulator's games as `make_vec` takes them; 0 for worlds that simulate batches."""
    simulator = is_simulator(games.config)
    if asked is None:
        return WORKERS if simulator else 0
    check_workers(asked)
    if asked and not simulator:
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
