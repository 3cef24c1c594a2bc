"""Arguments that several commands take: which episodes to play, how to compute, and what to print.

A command's own arguments inherit from these; one whose help differs is defined anew there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tyro

from magrounding.cli.command import derived
from magrounding.cli.options import game_options
from magrounding.errors import choose
from magrounding.play.evaluate import GREEDY, PLAYS
from magrounding.registry import EnvEntry, env_entry


@dataclass(frozen=True, kw_only=True)
class EnvArguments:
    """Environment whose episodes are played."""

    env: str
    """Environment id, e.g. ma_rtfm."""
    stage: str | None = derived("the environment's")
    """Stage or task of the games."""
    agents: int | None = derived("the environment's")
    """Number of agents."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An option of the environment, name=value; may be repeated, or several separated by commas, e.g. size=10."""

    @property
    def entry(self) -> EnvEntry:
        """The environment; ConfigurationError for an unknown id."""
        return env_entry(self.env)


@dataclass(frozen=True, kw_only=True)
class EvaluationArguments(EnvArguments):
    """Episodes of an evaluation set."""

    split: str | None = derived("the one that the environment keeps from training")
    """Evaluation set the games are from."""

    def options(self) -> dict[str, Any]:
        """Options of the episodes; ConfigurationError for a name or a value that cannot be."""
        return game_options(self.entry, self.stage, self.agents, self.split, self.env_option)


@dataclass(frozen=True, kw_only=True)
class ActionArguments:
    """Choice of actions from policies."""

    play: str = GREEDY
    """greedy (the most likely action) or sampled (drawn)."""

    @property
    def greedy(self) -> bool:
        """Whether the most likely action is taken; ConfigurationError for no way to play."""
        return choose("way to --play", self.play, PLAYS) == GREEDY


@dataclass(frozen=True, kw_only=True)
class WorkerArguments:
    """Processes of simulators."""

    workers: int | None = derived("2")
    """Processes that share the games of a simulator of one game; 0 plays them in this one."""


@dataclass(frozen=True, kw_only=True)
class DeviceArguments(WorkerArguments):
    """Hardware that networks and simulators compute on."""

    device: str = "auto"
    """auto, cpu or cuda."""
    threads: int | None = derived("the cores that it may run on")
    """Cores to compute with, beside the processes of simulators."""


@dataclass(frozen=True, kw_only=True)
class QuietArguments:
    """Output of commands that write a report."""

    quiet: bool = False
    """Print nothing but where the report is, and errors."""
