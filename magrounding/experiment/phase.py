"""Phase: one way of learning for a part of a stage, and when it is over; and how agents are evaluated meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.schema import Count, Natural, NonNegative, OneOf, Options, Share
from magrounding.training.algorithm import AlgorithmConfig, AtLeastOne

_FEWEST_WITHIN, _FEWEST_AFTER = 100, 200
"""Games of an evaluation at the smallest budget: a win rate is known within 5 and 3.5 points, one standard error."""

CHOSEN_ON_VALID: Mapping[str, Any] = {
    "selection_set": "valid",
    "watched_sets": ("valid",),
    "stage_sets": ("test",),
    "final_sets": ("test",),
}
"""The sets of a world with `train`, `valid` and `test`: `test` chooses nothing."""
CHOSEN_ON_VAL: Mapping[str, Any] = {"selection_set": "val", "watched_sets": ("train", "val"), "stage_sets": None}
"""The sets of MESSENGER, where weights are chosen on the games of `val`."""


@dataclass(frozen=True)
class EvaluationConfig(Options):
    """Frequency, games and ways of evaluations.

    Attributes:
        every: environment steps between evaluations within a phase; None: at its end only.
        selection_games: games of an evaluation within a phase; those on `selection_set` choose its best weights.
        report_games: games of an evaluation after a phase, on each set.
        selection_set: evaluation set that chooses a phase's best weights; never one of the held-out ones.
        selection_play: how they are played there, "sampled" (actions are drawn) or "greedy" (the most likely ones).
        watched_sets: evaluation sets within a phase, and after one that another follows in the same stage.
        stage_sets: after a stage; None: every set of the environment.
        final_sets: after the last stage; None: every set of the environment.
        whole_games: `report_games` before a small budget made them fewer; None where it did not.
        read_always: wrong texts are tried after every phase, not only after the last of the run.
    """

    every: Count | None = None
    selection_games: Count = 500
    report_games: Count = 1000
    selection_set: str = "train"
    selection_play: Annotated[str, OneOf(("greedy", "sampled"))] = "sampled"
    watched_sets: tuple[str, ...] = ("train", "eval")
    stage_sets: tuple[str, ...] | None = ("train", "eval")
    final_sets: tuple[str, ...] | None = None
    whole_games: Count | None = None
    read_always: bool = True

    def with_budget(self, factor: float) -> EvaluationConfig:
        """The same for so many times the environment steps."""
        return self if self.every is None else replace(self, every=max(1, round(factor * self.every)))

    def sparing(self, part: float) -> EvaluationConfig:
        """Evaluations that take about this part of their time: fewer games, more seldom, of fewer sets.

        Wrong texts, and all sets where it was left open which, are for the end of the run.
        """
        within = min(self.selection_games, max(_FEWEST_WITHIN, round(part * self.selection_games)))
        after = min(self.report_games, max(_FEWEST_AFTER, round(part * self.report_games)))
        return replace(
            self,
            every=None if self.every is None else round(self.every / part),
            selection_games=within,
            report_games=after,
            whole_games=self.report_games if after < self.report_games else self.whole_games,
            stage_sets=self.watched_sets if self.stage_sets is None else self.stage_sets,
            read_always=False,
        )


@dataclass(frozen=True)
class Promotion(Options):
    """Conditions that end a phase of a stage. At least one of `steps`, `win_rate` and `reading` has to be given.

    A win rate and reading count only once the phase's ramps are over: nothing is promoted on a part of the manual.

    Attributes:
        steps: environment steps (one game, one step) spent in the phase.
        win_rate: training win rate, or where games have scores the mean score, over the last `window` games.
        window: games; the rate counts once there are so many.
        reading: share of the games of `EvaluationConfig.selection_set` that are won with their own manual and lost with
            a reassigned one, on balance: the difference of the two win rates in the last evaluation within the phase.
        rule: "any": the first of the conditions given ends the phase; "all": it takes all.
        minutes: of training (not of evaluation), end the phase under either rule; a run that needs them depends on the
            machine.
    """

    steps: Natural | None = None
    win_rate: float | None = None
    window: Natural = 1000
    rule: Annotated[str, OneOf(("any", "all"), "promotion rule")] = "any"
    minutes: NonNegative | None = None
    reading: Share | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is None and self.win_rate is None and self.reading is None:
            raise ConfigurationError("a promotion needs steps, a win rate or reading: the phase would never end")

    def reached(
        self,
        steps: int,
        games: int,
        win_rate: float,
        minutes: float,
        reading: float | None = None,
        *,
        ramping: bool = False,
    ) -> bool:
        """Return whether the phase is over, after so many steps and minutes, with `games` in the window so far.

        `reading` is None before it was measured; `ramping`: an option of the games is still to change.
        """
        if self.minutes is not None and minutes >= self.minutes:
            return True
        conditions = []
        if self.steps is not None:
            conditions.append(steps >= self.steps)
        if self.win_rate is not None:
            conditions.append(not ramping and games >= self.window and win_rate >= self.win_rate)
        if self.reading is not None:
            conditions.append(not ramping and reading is not None and reading >= self.reading)
        return any(conditions) if self.rule == "any" else all(conditions)


@dataclass(frozen=True)
class Ramp(Options):
    """Course of an option of the environment within a phase: `first`, then linear to `last`, then `last`.

    Attributes:
        first, last: values of the option.
        hold: environment steps of the phase before it begins to change.
        over: environment steps of the change.
    """

    first: float
    last: float
    over: AtLeastOne
    hold: NonNegative = 0.0

    def at(self, steps: float) -> float:
        """Return the option's value after so many environment steps of the phase."""
        return self.first + (self.last - self.first) * min(1.0, max(0.0, (steps - self.hold) / self.over))

    @property
    def end(self) -> float:
        """Environment steps of the phase from which on the option stays as it is."""
        return self.hold + self.over

    def with_budget(self, factor: float) -> Ramp:
        """Return the same course in so many times the environment steps."""
        return replace(self, over=max(1.0, factor * self.over), hold=factor * self.hold)


class NotLearnt(MagroundingError):
    """Weights after a phase are below its gate, where the run ends. Everything is saved."""

    code = 3


@dataclass(frozen=True)
class Gate(Options):
    """What the weights after a phase have to reach; with less, its stage is not learnt (`RunConfig.unlearnt`).

    A gate ends no phase: learning rates that fall need all of its steps. It is judged on report games of
    `EvaluationConfig.selection_set`, played as `selection_play` says.

    Attributes:
        win_rate: share of the games won.
        reading: share of the games won, less that with reassigned manuals.
    """

    win_rate: Share = 0.0
    reading: Share = 0.0


OLD_NAMES = {"games": "env_options"}


@dataclass(frozen=True)
class Phase(Options):
    """One way of learning, for a part of a stage or all of it.

    Attributes:
        learner: of every agent.
        until: when the phase is over.
        num_envs: B, games of a rollout.
        env_options: of the games that are learnt from, such as another split of training games.
        frozen: modules and parameters that do not learn in this phase, by the beginnings of their names; of a preset,
            those of its own agent.
        ramps: course of options that may change while a batch is played (`WorldOptions.adjustable`), by name: a
            curriculum within the phase. Evaluations have the environment's own value of them.
        gate: what has to be learnt when the phase is over; by default nothing.
    """

    renamed: ClassVar[Mapping[str, str]] = OLD_NAMES

    learner: AlgorithmConfig
    until: Promotion
    num_envs: Count
    env_options: Mapping[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    ramps: Mapping[str, Ramp] = field(default_factory=dict)
    gate: Gate = field(default_factory=Gate)

    @property
    def name(self) -> str:
        """IMITATE or REINFORCE: no report mixes the two."""
        return self.learner.kind

    def with_budget(self, factor: float) -> Phase:
        """This phase with so many times its environment steps; the counts of its schedules are scaled with them."""
        until = self.until
        if until.steps is not None:
            until = replace(until, steps=max(1, round(factor * until.steps)))
        ramps = {name: ramp.with_budget(factor) for name, ramp in self.ramps.items()}
        return replace(self, learner=self.learner.with_budget(factor), until=until, ramps=ramps)

    def ramped(self, steps: float) -> dict[str, float]:
        """Return the options of the environment that `ramps` decide, after so many environment steps of the phase."""
        return {name: ramp.at(steps) for name, ramp in self.ramps.items()}


def for_steps(learner: AlgorithmConfig, steps: int, num_envs: int, **more: Any) -> Phase:
    """A phase that ends after so many environment steps; `more` are its other fields."""
    return Phase(learner, Promotion(steps=steps), num_envs, **more)
