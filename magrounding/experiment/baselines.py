"""The floor and the ceiling of a report: a random team and the expert, in the trained team's very games."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magrounding.experiment.settings import RunSettings
from magrounding.play.actor import find_expert, make_expert
from magrounding.play.evaluate import REPORT_SEED, evaluate
from magrounding.play.scripted import RandomTeam
from magrounding.play.team import seed_folder
from magrounding.registry import env_entry
from magrounding.spec import TextChoices
from magrounding.storage import read_json, write_json

Summary = dict[str, float]

BASELINES_FILE = "baselines.json"


def play_baselines(
    env: str, options: Mapping[str, Any], games: int, seed: int = REPORT_SEED, diagnose: bool = False, workers: int = 0
) -> dict[str, Summary]:
    """Summaries of "random" and, where the environment has an expert, "oracle".

    Args:
        env, options: environment id and options.
        games: how many.
        seed: of the first game.
        diagnose, workers: see `evaluate`.
    """
    choosing = isinstance(env_entry(env).describe(**options).actions, TextChoices)  # most rows hold no choice at all
    teams: dict[str, Any] = {"random": lambda vec: RandomTeam(vec.num_agents, vec.spec.num_actions, obey_mask=choosing)}
    if find_expert(env):
        teams["oracle"] = make_expert
    return {
        name: evaluate(team, env, options, games, seed, diagnose=diagnose, workers=workers).summary()
        for name, team in teams.items()
    }


def play_missing(settings: RunSettings, folder: Path) -> None:
    """Play the comparison games of a run that are not in its folder yet, for every set that it is evaluated on.

    Args:
        settings: of the run.
        folder: of the run; `BASELINES_FILE` in it grows, set by set.
    """
    known = read_baselines(folder)
    for stage, phase in settings.phases():
        for name in settings.evaluation_sets(stage, phase):
            if f"{stage}/{name}" not in known and _is_trained(settings, folder, stage):
                options = settings.stage_options(stage, name)
                games = settings.preset.report_games
                known[f"{stage}/{name}"] = play_baselines(settings.env, options, games, workers=settings.workers)
                write_json(folder / BASELINES_FILE, known)


def read_baselines(folder: Path) -> dict[str, dict[str, Summary]]:
    """What a run folder has: "stage/set" → "random" or "oracle" → summary."""
    path = folder / BASELINES_FILE
    return read_json(path) if path.exists() else {}


def _is_trained(settings: RunSettings, folder: Path, stage: str) -> bool:
    """Whether any seed has finished a phase of a stage."""
    return any((seed_folder(folder, seed, len(settings.seeds)) / stage).exists() for seed in settings.seeds)
