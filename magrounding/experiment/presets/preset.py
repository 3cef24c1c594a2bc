"""Preset: what a whole curriculum costs and how it is run, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, choose
from magrounding.plain import make_plain
from magrounding.training.algorithm import IMITATE, REINFORCE, AlgorithmConfig

__all__ = ["GENERAL", "IMITATE", "REINFORCE", "REMAINING_STAGES", "Phase", "Preset", "Promotion"]

REMAINING_STAGES = "*"
GENERAL = "general"
"""The name of the preset for every environment (`general.py`)."""
_SMALL = 0.25
"""Part of a preset's budget below which evaluations spare time; the tables that we publish have this much or more."""
_FEWEST_WITHIN, _FEWEST_AFTER = 100, 200
"""Games of an evaluation at the smallest budget: a win rate is known within 5 and 3.5 points, one standard error."""

CHOSEN_ON_VALID: Mapping[str, Any] = {
    "selection_set": "valid",
    "watched_sets": ("valid",),
    "stage_sets": ("test",),
    "final_sets": ("test",),
}
"""The sets of a `Preset` for a world with `train`, `valid` and `test`: `test` chooses nothing."""


@dataclass(frozen=True)
class Promotion:
    """When a phase of a stage is over. At least one of `steps` and `win_rate` has to be given.

    Attributes:
        steps: environment steps (one game, one step) spent in the phase.
        win_rate: training win rate over the last `window` games.
        window: games; the rate counts once there are so many.
        rule: "any": the first of the conditions given ends the phase; "all": it takes both.
        minutes: of training (not of evaluation), end the phase under either rule; a run that needs them depends on the
            machine.
    """

    steps: int | None = None
    win_rate: float | None = None
    window: int = 1000
    rule: str = "any"
    minutes: float | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        choose("promotion rule", self.rule, ("any", "all"))
        if self.steps is None and self.win_rate is None:
            raise ConfigurationError("a promotion needs steps, a win rate, or both: the phase would never end")

    def reached(self, steps: int, games: int, win_rate: float, minutes: float) -> bool:
        """Whether the phase is over.

        Args:
            steps: environment steps spent in the phase.
            games: games in the window so far.
            win_rate: of those.
            minutes: of training in the phase.
        """
        if self.minutes is not None and minutes >= self.minutes:
            return True
        conditions = []
        if self.steps is not None:
            conditions.append(steps >= self.steps)
        if self.win_rate is not None:
            conditions.append(games >= self.window and win_rate >= self.win_rate)
        return any(conditions) if self.rule == "any" else all(conditions)


@dataclass(frozen=True)
class Phase:
    """One way of learning, for a part of a stage or all of it.

    Attributes:
        learner: of every agent.
        until: when the phase is over.
        num_envs: B, games of a rollout.
        games: options of the environment for the games that are learnt from, such as another split of training games.
        frozen: modules and parameters of the preset's own agent that do not learn in this phase, by the beginnings of
            their names.
    """

    __repr__ = brief

    learner: AlgorithmConfig
    until: Promotion
    num_envs: int
    games: Mapping[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """IMITATE or REINFORCE: no report mixes the two."""
        return self.learner.kind

    def with_budget(self, factor: float) -> Phase:
        """This phase with so many times its environment steps; what its schedules count is scaled with them."""
        until = self.until
        if until.steps is not None:
            until = replace(until, steps=max(1, round(factor * until.steps)))
        return replace(self, learner=self.learner.with_budget(factor), until=until)


@dataclass(frozen=True)
class Preset:
    """One way to run a curriculum.

    Attributes:
        name: what --preset takes.
        about: the budget in a sentence, for reports.
        agent: id of the networks, unless another is asked for.
        phases: stage → its phases in order, each kind at most once; "*" for every other stage.
        env_options: of the environment, beside stage and number of agents.
        policy_options: of that agent's network; another is as its authors made it.
        team_reward: part of each agent's reward that is the team's mean instead of its own.
        share_from: number of agents from which on one network of the preset's own kind plays for all of them and learns
            from all; None: each has its own, unless a run asks for it.
        carry_optimizer: a phase inherits the optimiser's statistics along with the weights, as RTFM's program does,
            where the phase before had the same algorithm.
        evaluate_every: environment steps between evaluations within a phase; None: at its end only.
        selection_games: games of an evaluation within a phase; those on `selection_set` choose its best weights.
        report_games: games of an evaluation after a phase, on each set.
        selection_set: evaluation set that chooses a phase's best weights; never one of the held-out ones.
        selection_play: how they are played there, "sampled" (actions are drawn) or "greedy" (the most likely ones).
        watched_sets: evaluation sets within a phase, and after one that another follows in the same stage.
        stage_sets: after a stage; None: every set of the environment.
        final_sets: after the last stage; None: every set of the environment.
        log_every: updates between two lines of metrics.
        save_every: seconds between checkpoints.
        budget: how many times the registered preset's environment steps these are.
        whole_games: what `report_games` were before a small budget made them fewer; None where it did not.
        read_always: wrong texts are tried after every phase, not only after the run's last.
    """

    __repr__ = brief

    name: str
    about: str
    agent: str
    phases: Mapping[str, tuple[Phase, ...]]
    env_options: Mapping[str, Any] = field(default_factory=dict)
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    team_reward: float = 0.0
    share_from: int | None = None
    carry_optimizer: bool = True
    evaluate_every: int | None = None
    selection_games: int = 500
    report_games: int = 1000
    selection_set: str = "train"
    selection_play: str = "sampled"
    watched_sets: tuple[str, ...] = ("train", "eval")
    stage_sets: tuple[str, ...] | None = ("train", "eval")
    final_sets: tuple[str, ...] | None = None
    log_every: int = 10
    save_every: float = 120.0
    budget: float = 1.0
    whole_games: int | None = None
    read_always: bool = True

    def __post_init__(self) -> None:
        make_plain(self)
        if not 0 <= self.team_reward <= 1:
            raise ConfigurationError(f"the team's part of a reward lies in [0, 1], got {self.team_reward}")
        choose("selection_play", self.selection_play, ("greedy", "sampled"))
        if (games := min(self.selection_games, self.report_games)) < 1:
            raise ConfigurationError(f"an evaluation takes at least one game, got {games}")
        if self.evaluate_every is not None and self.evaluate_every < 1:
            raise ConfigurationError(f"at least one step lies between two evaluations, got {self.evaluate_every}")
        if self.log_every < 1:
            raise ConfigurationError(f"at least one update lies between two lines of metrics, got {self.log_every}")
        for stage, phases in self.phases.items():
            names = [phase.name for phase in phases]
            if not names or len(set(names)) < len(names):
                raise ConfigurationError(f"a stage has one or two phases of different kinds, {stage} has {names}")

    def of_stage(self, stage: str) -> tuple[Phase, ...]:
        """The phases of a stage; ConfigurationError where there are none for it."""
        found = self.phases.get(stage) or self.phases.get(REMAINING_STAGES)
        if found is None:
            raise ConfigurationError(
                f"preset {self.name!r} has phases for {', '.join(self.phases) or 'no stage'}, and none for {stage!r}: "
                f"choose among its --stages, or give it phases for {REMAINING_STAGES!r}, all others"
            )
        return found

    def with_budget(self, factor: float) -> Preset:
        """This preset with so many times the environment steps in every phase, schedules and evaluations with them.

        A small budget would go into evaluations almost whole, so they are fewer there: see `_sparing`.
        """
        if not 0 < factor < float("inf"):
            raise ConfigurationError(f"a budget is a positive part or multiple of the preset's, got {factor:g}")
        phases = {stage: tuple(each.with_budget(factor) for each in phases) for stage, phases in self.phases.items()}
        often = None if self.evaluate_every is None else max(1, round(factor * self.evaluate_every))
        about = f"{self.about} Here with {factor:g} times its budget."
        changed = replace(self, about=about, phases=phases, evaluate_every=often, budget=factor * self.budget)
        return changed if factor >= _SMALL else changed._sparing(factor / _SMALL)

    def _sparing(self, part: float) -> Preset:
        """This preset with evaluations that take about so much of their time: fewer games, more seldom, of fewer sets.

        Wrong texts, and all sets where it was left open which, are for the end of the run.
        """
        within = min(self.selection_games, max(_FEWEST_WITHIN, round(part * self.selection_games)))
        after = min(self.report_games, max(_FEWEST_AFTER, round(part * self.report_games)))
        return replace(
            self,
            evaluate_every=None if self.evaluate_every is None else round(self.evaluate_every / part),
            selection_games=within,
            report_games=after,
            whole_games=self.report_games if after < self.report_games else self.whole_games,
            stage_sets=self.watched_sets if self.stage_sets is None else self.stage_sets,
            read_always=False,
        )

    def with_learners(self, change: Callable[[AlgorithmConfig], AlgorithmConfig]) -> Preset:
        """This preset with every phase's learner changed."""
        phases = {
            stage: tuple(replace(phase, learner=change(phase.learner)) for phase in of_stage)
            for stage, of_stage in self.phases.items()
        }
        return replace(self, phases=phases)
