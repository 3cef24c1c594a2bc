"""Plan: everything that a run's configuration decides about its games and phases, computed and checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from magrounding.agents.building import build_policy
from magrounding.agents.remapping import reads_any_words
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.phase import Phase
from magrounding.registry import EnvEntry, agent_entry, algorithm_entry
from magrounding.spec import SCORE
from magrounding.teams.evaluate import LINES, OTHER_GAME, REASSIGNED
from magrounding.training.algorithm import IMITATE, Teaching

if TYPE_CHECKING:
    from magrounding.experiment.config import RunConfig


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage of a run.

    Attributes:
        name: as the environment calls it.
        label: for people: the environment's id where it has no stages.
        index: among the environment's stages; seeds derive from it.
        games: without what a phase changes.
        sets: evaluation set → its games.
    """

    name: str
    label: str
    index: int
    games: Game
    sets: Mapping[str, Game]

    @cached_property
    def measure(self) -> str:
        """The measure of promotion, selection and reports: an entry of `Evaluation.summary`."""
        return "score" if self.games.spec.outcome == SCORE else "win_rate"

    @property
    def windowed(self) -> str:
        """The log's name of the measure's mean over the last training games (see `Promotion.window`)."""
        return f"window_{self.measure}"


@dataclass(frozen=True, eq=False)
class Segment:
    """A phase of a stage, with everything that is decided about it.

    Attributes:
        config: of the run.
        stage: that it is a part of.
        number: which of the stage's phases; seeds derive from it.
        phase: how it learns.
        games: that it learns from.
        reported: evaluation sets after it.
        wrong_manuals: kinds of wrong rules that agents are given after it.
        ends_stage: it is the last of its stage.
        learnt_by: the learning that leads to the weights at its end, in words of a report.
    """

    config: RunConfig
    stage: Stage
    number: int
    phase: Phase
    games: Game
    reported: tuple[str, ...]
    wrong_manuals: tuple[str, ...]
    ends_stage: bool
    learnt_by: str

    @property
    def label(self) -> str:
        """Stage and phase for people; the phase where the stage has several."""
        return self.stage.label if self.ends_stage and not self.number else f"{self.stage.label} {self.phase.name}"


@dataclass(frozen=True, eq=False)
class Plan:
    """A run, resolved (`RunConfig.resolve`).

    Attributes:
        config: that decided it.
        entry: of its environment.
        games: those of the first stage.
        segments: in order.
        wrong_manuals: kinds of wrong rules that evaluations can give agents, to see whether they read; OTHER_GAME takes
            two games.
    """

    config: RunConfig
    entry: EnvEntry
    games: Game
    segments: tuple[Segment, ...]
    wrong_manuals: tuple[str, ...]

    @cached_property
    def stages(self) -> dict[str, Stage]:
        """Stages by name, in order."""
        return {each.stage.name: each.stage for each in self.segments}

    def of_stage(self, stage: str) -> list[Segment]:
        """The segments of a stage, in order."""
        return [each for each in self.segments if each.stage.name == stage]

    def find(self, stage: str, phase: str) -> Segment:
        """The segment of a phase of this name."""
        return next(each for each in self.of_stage(stage) if each.phase.name == phase)

    def taught(self) -> Iterator[tuple[Segment, Teaching]]:
        """Segments that learn from an expert or from demonstrations, and how, in order."""
        for each in self.segments:
            if (teaching := each.phase.learner.teaching) is not None:
                yield each, teaching

    @cached_property
    def origin(self) -> dict[str, Any]:
        """Arguments of `load_checkpoint` that a file has to match; no vocabulary for networks that read any words."""
        network = build_policy(self.config.agent, self.games.spec, self.config.network, seed=0)
        known = None if reads_any_words(network) else self.games.spec.vocabulary_hash
        return {"env": self.config.env, "vocabulary_hash": known, "num_agents": self.config.agents}


def make_plan(config: RunConfig) -> Plan:
    """Resolve a configuration; ConfigurationError for what cannot be. Nothing is started."""
    entry, plan = config.entry, config.entry.evaluation
    most = config.evaluation.report_games
    reassigned = (REASSIGNED,) if "manual" in entry.options else ()
    other = (OTHER_GAME,) if plan.rules_text and min(most, plan.max_envs or most) > 1 else ()
    first = Game.of(entry.id, {**config.env_options, **entry.with_stage(config.stages[0])})
    wrong = (*reassigned, *other, *(LINES if first.whole else ()))
    segments: list[Segment] = []
    for name in config.stages:
        games = Game.of(entry.id, {**config.env_options, **entry.with_stage(name)})
        sets = {each: games.but(**changed) for each, changed in plan.sets_of(name).items()}
        stage = Stage(name, name or entry.id, entry.stages.index(name), games, sets)
        phases = config.of_stage(name)
        for number, phase in enumerate(phases):
            ends_stage = number + 1 == len(phases)
            last = ends_stage and name == config.stages[-1]
            found = config.evaluation.final_sets if last else config.evaluation.stage_sets
            reported = tuple(sets) if found is None else found
            how = "imitation"
            if phase.name != IMITATE:
                before = IMITATE in (each.phase.name for each in segments)
                how = "reinforcement after imitation" if before else "reinforcement alone"
            segments.append(
                Segment(
                    config,
                    stage,
                    number,
                    phase,
                    games.but(**{**phase.env_options, **phase.ramped(0)}),
                    reported if ends_stage else config.evaluation.watched_sets,
                    wrong if config.evaluation.read_always or last else (),
                    ends_stage,
                    how
                    + f", from the weights of {config.initial}" * bool(config.initial)
                    + f", agent 0 alone, beside the others of {config.against}" * bool(config.against),
                )
            )
    for segment in segments:
        _check(config, segment, wrong)
    return Plan(config, entry, segments[0].stage.games, tuple(segments), wrong)


def _check(config: RunConfig, segment: Segment, wrong_manuals: tuple[str, ...]) -> None:
    """Raise a ConfigurationError for a segment that cannot work."""
    stage, phase, evaluation = segment.stage, segment.phase, config.evaluation
    for name, ramp in phase.ramps.items():
        check_choice(f"adjustable option of {config.env}", name, getattr(segment.games.config, "adjustable", ()))
        segment.games.but(**{name: ramp.last})  # its games are those at the ramps' beginnings
    reads = REASSIGNED in wrong_manuals
    watched = evaluation.every and evaluation.selection_set in evaluation.watched_sets
    if phase.until.reading is not None and not (reads and watched and stage.measure == "win_rate"):
        raise ConfigurationError(
            "a phase ends with how much is read where there are manuals to reassign, in evaluations within it: "
            f"give steps between them (`every`), and {evaluation.selection_set!r} among the sets that they "
            "play (`watched_sets`)"
        )
    if phase.gate.reading and not reads:
        raise ConfigurationError(f"{config.env} has no manuals to reassign: leave out reading of its gate")
    within = evaluation.watched_sets if evaluation.every else ()
    for name in (evaluation.selection_set, *within, *segment.reported):
        check_choice(f"evaluation set of {config.env}", name, tuple(stage.sets))
    own, algorithm = agent_entry(config.agent).algorithm, phase.learner.algorithm
    if (own or algorithm) != algorithm or (algorithm_entry(algorithm).own_agents and own != algorithm):
        raise ConfigurationError(
            f"agent {config.agent!r} cannot learn by {algorithm}, as preset {config.preset!r} has it: choose "
            "another agent or preset"
        )
