"""The floor and the ceiling of a report: a random team and the scripted oracle, in the trained team's very games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magrounding.agents.scripted import RandomTeam
from magrounding.evaluation.evaluate import REPORT_SEED, evaluate
from magrounding.registry import env_entry, load

Summary = dict[str, float]


def play_baselines(
    env: str, options: Mapping[str, Any], games: int, seed: int = REPORT_SEED, diagnose: bool = False
) -> dict[str, Summary]:
    """Summaries of "random" and, where the environment has one, "oracle".

    Args:
        env, options: environment id and options.
        games: how many.
        seed: of the first game.
        diagnose: see `evaluate`.
    """
    entry = env_entry(env)
    teams: dict[str, Any] = {"random": lambda vec: RandomTeam(vec.num_agents, vec.spec.num_actions)}
    if entry.oracle is not None:
        teams["oracle"] = load(entry.oracle)
    return {
        name: evaluate(team, env, options, games, seed, diagnose=diagnose).summary() for name, team in teams.items()
    }
