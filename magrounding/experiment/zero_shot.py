"""Zero-shot evaluation of finished runs: games whose rules, words, sentences or maps their agents have never met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from magrounding.brief import brief
from magrounding.envs.make import Game
from magrounding.envs.published import PublishedResult
from magrounding.errors import ConfigurationError, Unplayable, check_choice
from magrounding.experiment.config import RunConfig, read_config
from magrounding.experiment.evaluate import Line, play_baselines, why
from magrounding.experiment.plan import Plan
from magrounding.experiment.results import published_tables
from magrounding.experiment.tables import Row, Summary, data_frame, tidy
from magrounding.progress import Display
from magrounding.run_folder import RunFolder
from magrounding.teams.evaluate import GREEDY, LINES, PLAYS, REPORT_SEED, TRUE_MANUAL, evaluate
from magrounding.teams.lineup import Lineup
from magrounding.teams.loading import load_team
from magrounding.teams.team import Team


@dataclass(frozen=True)
class EvaluatedRun:
    """A run whose teams are evaluated.

    Attributes:
        name: of tables.
        folder, settings: of the run.
        stage: of the weights and the games.
        teams: seed → team.
        games: options of the environment, the same for all runs.
        display: shows how far games are.
        unplayed: evaluation set → why a team of it could not play there, see `why`.
    """

    __repr__ = brief

    name: str
    folder: Path
    settings: RunConfig
    stage: str
    teams: Mapping[int, Team]
    games: Mapping[str, Any]
    display: Display = field(default_factory=lambda: Display(quiet=True), compare=False)
    unplayed: dict[str, dict[str, str]] = field(default_factory=dict, init=False, compare=False)
    _played: dict[Any, Line] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def title(self) -> str:
        """The environment, and its stage where it has any."""
        return f"{self.settings.env} {self.stage}".strip()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of the run's `config.json`."""
        return RunFolder(self.folder).config()

    @cached_property
    def plan(self) -> Plan:
        """That of such a run in these games."""
        return replace(self.settings, env_options=self.games).resolve()

    def game(self, evaluation_set: str | None = None) -> Game:
        """The games of the stage, or of an evaluation set, with what this run's networks need to be shown."""
        stage = self.plan.stages[self.stage]
        return stage.games if evaluation_set is None else stage.sets[evaluation_set]

    def reading(self, game: Game, games: str) -> EvaluatedRun:
        """The run with teams that read the words of games; ConfigurationError, with `games`, where they cannot."""
        teams = {seed: team.for_games(game) for seed, team in self.teams.items()}
        if not all(team.spec.reads_alike(game.spec) for team in teams.values()):
            raise ConfigurationError(f"{self.name} was trained to read and see other things than {games}")
        return replace(self, teams=teams)

    def play(self, team: Team, evaluation_set: str, play: str, episodes: int, manual: str = TRUE_MANUAL) -> Line | None:
        """The summary of a team, this run's or a mixed one, in the games of a set or its alias; None if `unplayed`."""
        plan = self.plan.entry.evaluation
        key = plan.played_as(evaluation_set, depends_on_names=team.depends_on_names), team, play, episodes, manual
        if key not in self._played and evaluation_set not in self.unplayed:
            games = self.game(evaluation_set)
            with self.display.games(f"{self.name}: {evaluation_set}, {play}, {manual}", episodes) as advance:
                how = {"greedy": play == GREEDY, "manual": manual, "workers": self.settings.workers}
                try:
                    result = evaluate(team, games, {}, episodes, REPORT_SEED, diagnose=True, on_progress=advance, **how)
                    self._played[key] = result.summary()
                except Unplayable as error:
                    self.unplayed[evaluation_set] = why(error)
        return self._played.get(key)


PLACE = ("run", "set", "play", "seed", "members")
"""Entries of a result beside its summary: a run or a pair of runs (its members), or of their seeds."""
Result = Mapping[str, Any]


@dataclass(frozen=True)
class ZeroShot:
    """Results of an evaluation.

    Attributes:
        runs: in the order of the tables.
        episodes: games on each set, the same for all players.
        results: of every run, set, way of playing and seed.
        baselines: set → player → summary of the same games.
        published: set → the papers' numbers, the main result first.
        together: results of mixed teams, see `cross_play`; their "run" is `together_name` of both.
        text: source of the games' sentences, where the world says.
    """

    __repr__ = brief

    runs: Sequence[EvaluatedRun]
    episodes: int
    results: Sequence[Result]
    baselines: Mapping[str, Mapping[str, Mapping[str, Any]]]
    published: Mapping[str, Sequence[PublishedResult]]
    together: Sequence[Result] = ()
    text: str = ""

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(self.baselines)

    @property
    def measure(self) -> str:
        """The measure of the stage, see `plan.Stage`."""
        return self.runs[0].plan.stages[self.runs[0].stage].measure

    @property
    def rows(self) -> Any:
        """Every number, a row each (`tables.Row`): a pandas.DataFrame, or a dict of NumPy arrays."""
        return data_frame(self.measured)

    @cached_property
    def measured(self) -> list[Row]:
        """All rows, those of the other players last."""
        others = (
            {"run": player, "player": player, "set": name, **summary}
            for name, players in self.baselines.items()
            for player, summary in players.items()
        )
        lines = (*self.results, *self.together, *others)
        return list(tidy(lines, stage=self.runs[0].stage, manual=TRUE_MANUAL))

    @cached_property
    def over_seeds(self) -> Summary:
        """Statistics by run or player, way of playing ("" of players), set and metric."""
        return Summary(self.measured, ("run", "play", "set", "metric"))

    @property
    def players(self) -> list[tuple[str, str]]:
        """(run or player, way of playing) in the order of tables."""
        keys = dict.fromkeys((row.run, row.play) for row in self.measured)
        runs = [run for run, _ in keys]
        return sorted(keys, key=lambda key: runs.index(key[0]))


def open_runs(
    folders: Mapping[str, Path],
    stage: str | None = None,
    seeds: Sequence[str] | None = None,
    device: str | torch.device = "cpu",
) -> list[EvaluatedRun]:
    """Load the teams of several runs, to play the same games.

    The games have the first run's options (its limit of steps, say), even where the others were trained with others.
    By default the stage is the last one of the first run that all the runs have, and the seeds are all.

    Raises:
        ConfigurationError: runs of different environments or numbers of agents, no stage in common, a seed or stage
            that a run does not have, or agents who cannot read the first run's games.
        CheckpointError: no run there, or weights that are missing or damaged.
    """
    runs = {name: read_config(folder) for name, folder in folders.items()}
    check_same_world(runs)
    stage = _shared_stage(runs, stage)
    games = next(iter(runs.values())).chosen_env_options
    evaluated = []
    for name, settings in runs.items():
        known = [str(seed) for seed in settings.seeds]
        chosen = [int(check_choice(f"seed of {name}", seed, known)) for seed in (known if seeds is None else seeds)]
        teams = {seed: load_team(folders[name], seed, stage, device) for seed in chosen}
        run = EvaluatedRun(name, folders[name], settings, stage, teams, games)
        shown = f"the games of {next(iter(runs))} show ({settings.env_options}, not {dict(games)})"
        evaluated.append(run.reading(run.game(), f"{shown}: evaluate it by itself"))
    return evaluated


def zero_shot(
    evaluated: Sequence[EvaluatedRun],
    sets: Sequence[str] | None,
    episodes: int,
    plays: Sequence[str] = PLAYS,
    lineups: Sequence[Lineup] = (),
) -> ZeroShot:
    """Let all teams play evaluation sets, beside a random team, the oracle and line-ups in the very same games.

    Where the manual is split they also play with other LINES ("RUN, muted"), beside a silent oracle and one of games in
    which all read all.
    Of each set (by default all) so many episodes are played, the first of them those of the runs' own reports.

    Raises:
        ConfigurationError: a set that does not exist, or only such as no network can play; fewer than one game.
    """
    first = evaluated[0]
    sets_known = tuple(first.plan.stages[first.stage].sets)
    chosen = sets_known if sets is None else tuple(dict.fromkeys(sets))
    for name in chosen:
        check_choice(f"evaluation set of {first.settings.env}", name, sets_known)
    results = [
        {
            "run": run.name + f", {manual}" * (manual != TRUE_MANUAL),
            "set": name,
            "play": play,
            "seed": str(seed),
            **line,
        }
        for name in chosen
        for play in plays
        for run in evaluated
        for manual in (TRUE_MANUAL, *(LINES if run.game(name).whole else ()))
        for seed, team in run.teams.items()
        if (line := run.play(team, name, play, episodes, manual))
    ]
    if not results:
        raise ConfigurationError(first.unplayed[chosen[0]]["reason"])
    own, others, ablations = published_tables(first.plan)
    how = {"diagnose": True, "workers": first.settings.workers, "display": first.display, "lineups": lineups}
    baselines = {name: play_baselines(first.game(name), name, episodes, **how) for name in chosen}
    known = (own, *others, *ablations)
    return ZeroShot(
        evaluated,
        episodes,
        results,
        baselines,
        {name: [table[first.stage, name] for table in known if (first.stage, name) in table] for name in chosen},
        text=first.game(chosen[0]).spec.source,
    )


def check_same_world(runs: Mapping[str, RunConfig]) -> None:
    """Raise ConfigurationError for runs of several environments or numbers of agents."""
    if len({(run.env, run.agents) for run in runs.values()}) > 1:
        what = ", ".join(f"{name}: {run.agents} × {run.env}" for name, run in runs.items())
        raise ConfigurationError(f"only runs of one environment and number of agents play the same games, got {what}")


def _shared_stage(runs: Mapping[str, RunConfig], stage: str | None) -> str:
    if stage is not None:
        for name, run in runs.items():
            check_choice(f"stage of {name}", stage, run.stages)
        return stage
    shared = [s for s in next(iter(runs.values())).stages if all(s in run.stages for run in runs.values())]
    if not shared:
        what = ", ".join(f"{name}: {' '.join(run.stages)}" for name, run in runs.items())
        raise ConfigurationError(f"these runs have no stage in common: {what}")
    return shared[-1]
