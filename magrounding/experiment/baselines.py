"""The floor and the ceiling of a report: a random team and the expert, in the trained team's very games."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from magrounding.experiment.config import RunConfig
from magrounding.experiment.evaluations import PLAYED_AS
from magrounding.experiment.progress import Display
from magrounding.play.actor import Actor, has_expert, make_expert
from magrounding.play.evaluate import REPORT_SEED, Evaluation, evaluate
from magrounding.play.lineup import ORACLE, OVERLAP, RANDOM
from magrounding.play.loading import seed_folder
from magrounding.play.overlap import OverlapTeam
from magrounding.play.scripted import random_team
from magrounding.registry import env_entry
from magrounding.spec import EnvSpec, TextChoices
from magrounding.storage import read_json, write_json
from magrounding.vector import VectorEnv

Summary = dict[str, Any]

BASELINES_FILE = "baselines.json"
PLAYERS = RANDOM, OVERLAP, ORACLE


def compared(env: str, spec: EnvSpec) -> tuple[str, ...]:
    """Who plays beside the trained teams of an environment: OVERLAP where a task is read and texts are chosen."""
    overlap = isinstance(spec.actions, TextChoices) and bool(spec.lasting_texts)
    return (RANDOM, *[OVERLAP] * overlap, *[ORACLE] * has_expert(env, spec))


_TEAMS: Mapping[str, Callable[[VectorEnv], Actor]] = {
    RANDOM: random_team,
    OVERLAP: lambda vec: OverlapTeam(vec.spec),
    ORACLE: lambda vec: make_expert(vec),
}


class Comparison:
    """Who plays beside trained teams in the games of one environment. Games that go the same way are played once.

    Args:
        env: environment id.
        games: how many on each set; of random those of `EvaluationPlan.baseline_games`.
        diagnose, workers: see `evaluate`.
        display: what the person sees.
    """

    def __init__(
        self, env: str, games: int, *, diagnose: bool = False, workers: int = 0, display: Display | None = None
    ) -> None:
        self._entry = env_entry(env)
        self._games, self._options = games, {"diagnose": diagnose, "workers": workers}
        self._display = display or Display(quiet=True)
        self._found: dict[str, dict[str, Evaluation]] = {}

    def play(self, evaluation_set: str, options: Mapping[str, Any]) -> dict[str, Summary]:
        """Summaries of those `compared`, by name, on a set that has these options."""
        players = compared(self._entry.id, self._entry.describe(**options))
        return {who: self._play(who, evaluation_set, options) for who in players}

    def alike(self, sets: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
        """Player → set that was played → the others among these whose games go the same way for that player."""
        plan = self._entry.evaluation
        return {
            who: {name: plan.alike(name, result.heeds, sets) for name, result in found.items()}
            for who, found in self._found.items()
        }

    def _play(self, who: str, evaluation_set: str, options: Mapping[str, Any]) -> Summary:
        found = self._found.setdefault(who, {})
        for other, result in found.items():
            if self._entry.evaluation.same_games(evaluation_set, other, result.heeds):
                return {**result.summary(), PLAYED_AS: other}
        games = self._entry.evaluation.baseline_games(self._games) if who == RANDOM else self._games
        with self._display.games(f"{who}: {evaluation_set}", games) as tell:
            result = evaluate(_TEAMS[who], self._entry.id, options, games, REPORT_SEED, tell=tell, **self._options)
        found[evaluation_set] = result
        return result.summary()


def play_missing(settings: RunConfig, folder: Path, display: Display | None = None) -> None:
    """Play the comparison games of a run that are not in its folder yet, for every set that it is evaluated on.

    Args:
        settings: of the run.
        folder: of the run; `BASELINES_FILE` in it grows, stage by stage.
        display: what the person sees.
    """
    known, games = read_baselines(folder), settings.evaluation.report_games
    for stage in settings.stages:
        phases = settings.of_stage(stage)
        sets = list(dict.fromkeys(name for phase in phases for name in settings.evaluation_sets(stage, phase)))
        if known.keys() >= {f"{stage}/{name}" for name in sets} or not _is_trained(settings, folder, stage):
            continue
        # All sets of a stage or none are written: which of them are played once is known while they are played.
        others = Comparison(settings.env, games, workers=settings.workers, display=display)
        known |= {f"{stage}/{name}": others.play(name, settings.stage_options(stage, name)) for name in sets}
        write_json(folder / BASELINES_FILE, known, sealed=True)


def read_baselines(folder: Path) -> dict[str, dict[str, Summary]]:
    """What a run folder has: "stage/set" → one of PLAYERS → summary."""
    path = folder / BASELINES_FILE
    return read_json(path) if path.exists() else {}


def _is_trained(settings: RunConfig, folder: Path, stage: str) -> bool:
    """Whether any seed has finished a phase of a stage."""
    return any((seed_folder(folder, seed, len(settings.seeds)) / stage).exists() for seed in settings.seeds)
