"""Arguments that several commands take: which episodes to play, how to compute, and what to print.

A command's own arguments inherit from these; one whose help differs is defined anew there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta

from magrounding.cli.options import Paths, assignments, parse_env_options
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, check_choice
from magrounding.registry import PLAYERS, EnvEntry, env_entry, load
from magrounding.schema import Count, Natural
from magrounding.teams.evaluate import GREEDY, PLAYS

_LLM = "llm"
"""Kind of the players that language models are."""


@dataclass(frozen=True, kw_only=True)
class EnvArguments:
    """Environment whose episodes are played."""

    env: str
    """Environment id, e.g. ma_rtfm."""
    stage: str | None = None
    """Stage or task of the games. (default: the environment's)"""
    agents: int | None = None
    """Number of agents. (default: the environment's)"""
    paths: Paths = ()
    """Options of the environment, after all flags, e.g. env.size=10."""

    @property
    def entry(self) -> EnvEntry:
        """The environment; ConfigurationError for an unknown id."""
        return env_entry(self.env)

    @property
    def named_stage(self) -> str:
        """The stage, by default the environment's own; it need not exist."""
        return self.entry.options.get(self.entry.stage_option, "") if self.stage is None else self.stage

    def stage_options(self) -> dict[str, Any]:
        """Return the options of stage and agents; ConfigurationError for what the environment does not have."""
        entry = self.entry
        options = entry.with_stage(check_choice(f"stage of {entry.id}", self.named_stage, entry.stages))
        if entry.multi_agent:
            options["agents"] = entry.options["agents"] if self.agents is None else self.agents
        elif self.agents not in (None, 1):
            raise ConfigurationError(f"{entry.id} is played by one agent, got {self.agents}")
        return options

    def split_options(self) -> Mapping[str, Any]:
        """Return the options that --split stands for; ConfigurationError for a split that is none."""
        return {}

    def chosen_games(self, others: Mapping[str, Any] = MappingProxyType({})) -> Game:
        """Return the games, with `others` of the options that nobody chose; ConfigurationError for what cannot be."""
        split = self.split_options()
        own = parse_env_options(assignments(self.paths), self.entry, dict.fromkeys(split, "--split"))
        return Game.of(self.env, {**others, **self.stage_options(), **split, **own})


@dataclass(frozen=True, kw_only=True)
class LearningArguments(EnvArguments):
    """Games to learn from."""

    games: Count = 1000
    """Games to play."""
    split: str = "train"
    """Split of the games, where the environment has some; the file names it, and a run learns only from
    its own."""
    seed: Natural = 0
    """Seed of the games."""

    def split_options(self) -> Mapping[str, Any]:
        return {"split": self.split} if "split" in self.entry.options else {}


@dataclass(frozen=True, kw_only=True)
class EvaluationArguments(EnvArguments):
    """Episodes of an evaluation set."""

    split: str | None = None
    """Evaluation set the games are from. (default: the one that the environment keeps from training)"""

    def split_options(self) -> Mapping[str, Any]:
        evaluation, stage = self.entry.evaluation, self.named_stage
        sets = evaluation.sets_of(stage)
        return sets[check_choice("split", self.split or evaluation.held_out_set(stage), tuple(sets))]


@dataclass(frozen=True, kw_only=True)
class ActionArguments:
    """Choice of actions from policies."""

    play: str = GREEDY
    """greedy (the most likely action) or sampled (drawn)."""

    @property
    def greedy(self) -> bool:
        """True for the most likely action, false for one that is drawn; ConfigurationError for another way to play."""
        return check_choice("way to --play", self.play, PLAYS) == GREEDY


@dataclass(frozen=True, kw_only=True)
class LanguageModelArguments:
    """Language models among the players."""

    llm: Path | None = None
    """File of language models (.toml) that players llm:NAME are of, see docs/language_models.md; llm:MODEL@URL needs
    none. (default: none)"""
    llm_parallel: Annotated[int, Meta(ge=1, le=4096)] = 16
    """Calls of language models under way at once, at most."""

    def language_models(self, *, ask_facts: bool = False) -> Any:
        """Return what players may name (`teams.lineup.AskedPlayers`), a context; ConfigurationError for a file of none.

        Without the extension that has them, it is an empty context.
        """
        if self.llm is None and _LLM not in PLAYERS:
            return nullcontext()
        return load(PLAYERS.find(_LLM).code).read(self.llm, self.llm_parallel, ask_facts)


@dataclass(frozen=True, kw_only=True)
class WorkerArguments:
    """Processes of simulators."""

    workers: int | str | None = None
    """Processes that share the games of a simulator of one game; 0 plays them in this one, ray:K in K actors of Ray.
    (default: 2)"""


@dataclass(frozen=True, kw_only=True)
class DeviceArguments(WorkerArguments):
    """Hardware that networks and simulators compute on."""

    device: str = "auto"
    """auto, cpu or cuda."""
    threads: Count | None = None
    """Cores to compute with, beside the processes of simulators. (default: the cores that it may run on)"""


@dataclass(frozen=True, kw_only=True)
class QuietArguments:
    """Output of commands that write files."""

    quiet: bool = False
    """Print nothing but where the output is, and errors."""
