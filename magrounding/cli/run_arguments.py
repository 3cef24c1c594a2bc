"""Arguments of runs: `magrounding train --env ma_rtfm --agents 3 env.size=10`.

Nothing here imports torch, so that help is there at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magrounding.cli.game_arguments import DeviceArguments, QuietArguments
from magrounding.cli.job_arguments import JobsArguments
from magrounding.cli.options import Paths
from magrounding.schema import Positive


@dataclass(frozen=True, kw_only=True)
class RunArguments(QuietArguments, JobsArguments, DeviceArguments):
    """A run."""

    env: str | None = None
    """Environment id, e.g. ma_rtfm. (default: none: name one, unless --resume finds it in --out)"""
    agents: int | None = None
    """Number of agents. (default: the environment's)"""
    agent: str | None = None
    """Id of the network (docs/agents.md). (default: the preset's)"""
    preset: str | None = None
    """Algorithm, network and budget: demo, quick, quick_rl, paper, silg, and for single environments paper_rl,
    quick_qmix, paper_qmix, quick_lge, paper_lge, quick_gold and others (docs/reference/presets.md). general is for any
    environment. (default: the first of demo, quick and paper that the environment has, or else general)"""
    stages: str | None = None
    """Stages in order, separated by commas. (default: the environment's curriculum)"""
    seeds: str | None = None
    """Seeds separated by commas. (default: 0)"""
    budget: Positive | None = None
    """Factor for the preset's environment steps, e.g. 0.1 for a first look. Below 0.25 there are fewer evaluations,
    with fewer games. (default: 1)"""
    tracker: str | None = None
    """Services that show curves: none, or some of tensorboard, wandb, mlflow and trackio, separated by commas
    (docs/trackers.md). (default: those that the run began with, or tensorboard)"""
    project: str | None = None
    """Project under which they show the run. (default: magrounding)"""
    paths: Paths = ()
    """Any other option of the run, after all flags: env.NAME of the environment, network.NAME of the networks,
    learner.NAME of every phase's learner that has it, and what else is in config.json, e.g. env.max_cycles=80
    network.width=64 learner.entropy=0.03 share_parameters=false evaluation.games=200 phases.s1.0.num_envs=128
    (docs/reference/commands.md)."""


@dataclass(frozen=True, kw_only=True)
class Arguments(RunArguments):
    """Train agents stage by stage, evaluate them, and write a report."""

    out: Path | None = None
    """Run folder. (default: runs/<env>-<agent>[-<agents>]-<preset>)"""
    resume: bool = False
    """Continue the run in the folder, with the settings it was started with."""
    plan: bool = False
    """Print stages, phases, steps, gates, and the hours that they take at the speed measured here; train nothing."""
    yes: bool = False
    """Begin a run of days without being asked."""
    prepare: bool = False
    """Begin the run and train nothing: `magrounding jobs` prints a command for each of its seeds."""
    only_seeds: str | None = None
    """Seeds to train of those of the run, separated by commas, without a report; with --resume. (default: all)"""
