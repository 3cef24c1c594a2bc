"""Zero-shot evaluation of finished runs: games whose rules, words, sentences or maps their agents have never met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from magrounding.agents.weights import STATE_FILE
from magrounding.brief import brief
from magrounding.envs.make import make_vec
from magrounding.envs.published import PublishedResult
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.experiment.baselines import Comparison, Summary
from magrounding.experiment.config import RunConfig, read_config
from magrounding.experiment.evaluations import PLAYED_AS
from magrounding.experiment.progress import Display
from magrounding.experiment.results import comparable
from magrounding.experiment.statistics import Statistics, over_seeds
from magrounding.play.evaluate import GREEDY, PLAYS, REPORT_SEED, Evaluation, evaluate
from magrounding.play.loading import load_team, seed_folder
from magrounding.play.origin import DescribedEnv
from magrounding.play.team import Team
from magrounding.registry import load
from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class Contender:
    """A run whose teams are evaluated.

    Attributes:
        name: what tables call it.
        folder, settings: of the run.
        stage: whose weights and whose games.
        teams: seed → team.
        games: options of the environment, the same for all contenders.
        display: what the person sees.
    """

    __repr__ = brief

    name: str
    folder: Path
    settings: RunConfig
    stage: str
    teams: Mapping[int, Team]
    games: Mapping[str, Any]
    display: Display = field(default_factory=lambda: Display(quiet=True), compare=False)
    _found: dict[Any, dict[str, Evaluation]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def title(self) -> str:
        """The environment, and its stage where it has any."""
        return f"{self.settings.env} {self.stage}".strip()

    @property
    def played(self) -> RunConfig:
        """The settings of a run of this contender in these games."""
        return replace(self.settings, env_options=self.games)

    def options(self, evaluation_set: str | None = None) -> dict[str, Any]:
        """Options of the games of an evaluation set, and what this contender's networks need to be shown."""
        return self.played.stage_options(self.stage, evaluation_set)

    def reading(self, spec: EnvSpec) -> Contender:
        """The contender with teams that read the words of games; ConfigurationError where its networks cannot."""
        games = DescribedEnv(self.settings.env, self.options(), spec)
        return replace(self, teams={seed: team.for_games(games) for seed, team in self.teams.items()})

    def look_at(self, evaluation_set: str) -> None:
        """Let a team decide one step in a game of an evaluation set; ConfigurationError where its networks cannot."""
        vec, team = make_vec(self.settings.env, 1, **self.options(evaluation_set)), next(iter(self.teams.values()))
        try:
            observation, info = vec.reset(seed=0)
            team.act(observation, team.initial_memory(1), info)
        finally:
            vec.close()

    def play(self, team: Team, evaluation_set: str, play: str, episodes: int) -> Summary:
        """What a team, this contender's or a mixed one, reaches in the games of an evaluation set.

        Games that cannot but go as those of another set went are not played again.
        """
        env, options = self.settings.env, self.options(evaluation_set)
        workers, greedy = self.settings.workers, play == GREEDY
        found = self._found.setdefault((team, play, episodes), {})
        for other, result in found.items():
            if self.settings.entry.evaluation.same_games(evaluation_set, other, result.heeds):
                return {**result.summary(), PLAYED_AS: other}
        with self.display.games(f"{self.name}: {evaluation_set}, {play}", episodes) as tell:
            found[evaluation_set] = result = evaluate(
                team, env, options, episodes, REPORT_SEED, greedy=greedy, diagnose=True, workers=workers, tell=tell
            )
        return result.summary()

    def alike(self) -> dict[str, tuple[str, ...]]:
        """Set that was played → the others of the stage whose games go the same way for all the teams that played."""
        plan = self.settings.entry.evaluation
        played = [(name, result.heeds) for of_team in self._found.values() for name, result in of_team.items()]
        heeds = {name: frozenset().union(*(heeded for other, heeded in played if other == name)) for name, _ in played}
        return {name: plan.alike(name, heeds[name], plan.sets_of(self.stage)) for name in heeds}


@dataclass(frozen=True)
class Score:
    """How a contender fares on one evaluation set in one way of playing.

    Attributes:
        members: name of the contender, or of the two whose agents play together.
        evaluation_set, play: where and how.
        by_seed: seed, or pair of seeds → summary.
    """

    __repr__ = brief

    members: tuple[str, ...]
    evaluation_set: str
    play: str
    by_seed: Mapping[str, Summary]

    @property
    def who(self) -> str:
        """What tables call it."""
        return " with ".join(self.members)

    def over_seeds(self, measure: str) -> Statistics | None:
        """Statistics of an entry of the summaries over the seeds that have it; None where none has."""
        return over_seeds(self.by_seed.values(), measure)


@dataclass(frozen=True)
class ZeroShot:
    """What an evaluation found.

    Attributes:
        contenders: in the order of the tables.
        episodes: games on each set, the same for everybody.
        scores: of every contender, set and way of playing.
        baselines: set → "random" or "oracle" → summary of the same games.
        published: set → the papers' numbers, the main result first.
        together: scores of mixed teams, see `cross_play`.
        text: whose sentences the games are worded in, where the world says.
        alike: player → set → others of the stage whose games go the same way for that player.
    """

    __repr__ = brief

    contenders: Sequence[Contender]
    episodes: int
    scores: Sequence[Score]
    baselines: Mapping[str, Mapping[str, Summary]]
    published: Mapping[str, Sequence[PublishedResult]]
    together: Sequence[Score] = ()
    text: str = ""
    alike: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(self.baselines)

    @property
    def measure(self) -> str:
        """What the runs go by, see `RunConfig.measure`."""
        return self.contenders[0].settings.measure(self.contenders[0].stage)

    @property
    def plays(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.play for score in self.scores))

    def score(self, who: str, evaluation_set: str, play: str) -> Score:
        """The score of a contender, or of two together."""
        wanted = who, evaluation_set, play
        scores = (*self.scores, *self.together)
        return next(score for score in scores if (score.who, score.evaluation_set, score.play) == wanted)


def open_runs(
    folders: Mapping[str, Path],
    stage: str | None = None,
    seeds: Sequence[str] | None = None,
    device: str | torch.device = "cpu",
) -> list[Contender]:
    """Load the teams of several runs, to play the same games.

    The games have the first run's options (its limit of steps, say), even where the others were trained with others.

    Args:
        folders: name → run folder.
        stage: whose weights and games; by default the last stage of the first run that all the runs have.
        seeds: which of each run's seeds; all by default.
        device: where the networks go.

    Raises:
        ConfigurationError: runs of different environments or numbers of agents, no stage in common, a seed or stage
            that a run does not have, or agents who cannot read the first run's games.
        CheckpointError: no run there, or weights that are missing or damaged.
    """
    runs = {name: read_config(folder) for name, folder in folders.items()}
    _check_same_world(runs)
    stage = _shared_stage(runs, stage)
    games = next(iter(runs.values())).chosen_env_options
    contenders = []
    for name, settings in runs.items():
        known = [str(seed) for seed in settings.seeds]
        chosen = [int(choose(f"seed of {name}", seed, known)) for seed in (known if seeds is None else seeds)]
        teams = {seed: _load(folders[name], settings, seed, stage, device) for seed in chosen}
        contender = Contender(name, folders[name], settings, stage, teams, games)
        spec = settings.entry.describe(**contender.options())
        contender = contender.reading(spec)
        if not all(team.spec.reads_alike(spec) for team in contender.teams.values()):
            raise ConfigurationError(
                f"{name} was trained to read and see other things than the games of {next(iter(runs))} show "
                f"({settings.env_options}, not {dict(games)}): evaluate it by itself"
            )
        contenders.append(contender)
    return contenders


def zero_shot(
    contenders: Sequence[Contender], sets: Sequence[str] | None, episodes: int, plays: Sequence[str] = PLAYS
) -> ZeroShot:
    """Let all teams play evaluation sets, beside a random team and the oracle in the very same games.

    Args:
        contenders: of `open_runs`.
        sets: names of evaluation sets; all by default.
        episodes: games on each; the first are those of the runs' own reports.
        plays: ways of playing.

    Raises:
        ConfigurationError: a set that does not exist, or whose maps a network cannot look at; fewer than one game.
    """
    first = contenders[0]
    entry, workers = first.settings.entry, first.settings.workers
    plan = entry.evaluation
    known = tuple(plan.sets_of(first.stage))
    chosen = known if sets is None else tuple(dict.fromkeys(sets))
    for name in chosen:
        choose(f"evaluation set of {entry.id}", name, known)
    for name in chosen:  # before hours of play
        for who in contenders:
            who.look_at(name)
    scores = [
        Score((who.name,), name, play, {str(k): who.play(team, name, play, episodes) for k, team in who.teams.items()})
        for name in chosen
        for play in plays
        for who in contenders
    ]
    others = Comparison(entry.id, episodes, diagnose=True, workers=workers, display=first.display)
    tables = [load(source) for source in (plan.published,) if source]
    tables += load(plan.published_others) if plan.published_others else ()
    tables += load(plan.published_ablations) if plan.published_ablations else ()
    tables = [comparable(first.played, table) for table in tables]
    baselines = {name: others.play(name, first.options(name)) for name in chosen}
    return ZeroShot(
        contenders,
        episodes,
        scores,
        baselines,
        {name: [table[first.stage, name] for table in tables if (first.stage, name) in table] for name in chosen},
        text=entry.describe(**first.options(chosen[0])).source,
        alike={**{who.name: who.alike() for who in contenders}, **others.alike(known)},
    )


def _check_same_world(runs: Mapping[str, RunConfig]) -> None:
    if len({(run.env, run.agents) for run in runs.values()}) > 1:
        what = ", ".join(f"{name}: {run.agents} × {run.env}" for name, run in runs.items())
        raise ConfigurationError(f"only runs of one environment and number of agents play the same games, got {what}")


def _shared_stage(runs: Mapping[str, RunConfig], stage: str | None) -> str:
    if stage is not None:
        for name, run in runs.items():
            choose(f"stage of {name}", stage, run.stages)
        return stage
    shared = [s for s in next(iter(runs.values())).stages if all(s in run.stages for run in runs.values())]
    if not shared:
        what = ", ".join(f"{name}: {' '.join(run.stages)}" for name, run in runs.items())
        raise ConfigurationError(f"these runs have no stage in common: {what}")
    return shared[-1]


def _load(folder: Path, settings: RunConfig, seed: int, stage: str, device: str | torch.device) -> Team:
    if not (seed_folder(folder, seed, len(settings.seeds)) / stage / STATE_FILE).exists():
        raise CheckpointError(
            f"seed {seed} of {folder} has no weights of {stage}: let the run go on with --resume, or choose other "
            "--seeds or another --stage"
        )
    return load_team(folder, seed, stage, device)
