"""Zero-shot evaluation of a finished run: games whose rules, words, sentences or maps its agents have never met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magrounding.agents.team import load_team
from magrounding.errors import choose
from magrounding.evaluation.baselines import Summary, play_baselines
from magrounding.evaluation.evaluate import GREEDY, PLAYS, REPORT_SEED, evaluate
from magrounding.evaluation.statistics import Statistics, summarise
from magrounding.training.settings import RunSettings


@dataclass(frozen=True)
class ZeroShot:
    """How a run's teams fare on one evaluation set.

    Attributes:
        evaluation_set: its name.
        seeds: way of playing ("greedy", "sampled") → one summary for each of the run's seeds.
        win_rate: way of playing → statistics over the seeds.
        baselines: "random" and "oracle" on the same games.
    """

    evaluation_set: str
    seeds: dict[str, list[Summary]]
    win_rate: dict[str, Statistics]
    baselines: dict[str, Summary]

    def to_dict(self) -> dict[str, Any]:
        return {
            "set": self.evaluation_set,
            "win_rate": {play: statistics.to_dict() for play, statistics in self.win_rate.items()},
            "seeds": self.seeds,
            "baselines": self.baselines,
        }


def zero_shot(
    folder: Path,
    settings: RunSettings,
    sets: Sequence[str],
    episodes: int,
    stage: str | None = None,
    device: str = "cpu",
) -> list[ZeroShot]:
    """Let the teams of a run play evaluation sets.

    Args:
        folder: of the run.
        settings: of the run.
        sets: names of evaluation sets.
        episodes: games on each; the first are those of the run's own report.
        stage: whose weights and whose games; the run's last by default.
        device: where the networks go.

    Raises:
        ConfigurationError: a set or stage that does not exist.
        CheckpointError: weights that are missing or damaged.
    """
    stage = choose("stage of this run", stage or settings.stages[-1], settings.stages)
    for name in sets:
        choose(f"evaluation set of {settings.env}", name, tuple(settings.entry.evaluation_sets))
    teams = [load_team(folder, seed, stage, device) for seed in settings.seeds]
    results = []
    for name in sets:
        options = settings.stage_options(stage, name)
        seeds = {
            play: [
                evaluate(team, settings.env, options, episodes, REPORT_SEED, greedy=play == GREEDY).summary()
                for team in teams
            ]
            for play in PLAYS
        }
        rates = {play: summarise([summary["win_rate"] for summary in seeds[play]]) for play in PLAYS}
        results.append(ZeroShot(name, seeds, rates, play_baselines(settings.env, options, episodes)))
    return results
