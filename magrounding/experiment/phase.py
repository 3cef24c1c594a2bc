"""Phase: one way of learning for a part of a stage, and when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Natural, NonNegative, OneOf, Options
from magrounding.training.algorithm import AlgorithmConfig


@dataclass(frozen=True)
class Promotion(Options):
    """When a phase of a stage is over. At least one of `steps` and `win_rate` has to be given.

    Attributes:
        steps: environment steps (one game, one step) spent in the phase.
        win_rate: training win rate over the last `window` games.
        window: games; the rate counts once there are so many.
        rule: "any": the first of the conditions given ends the phase; "all": it takes both.
        minutes: of training (not of evaluation), end the phase under either rule; a run that needs them depends on the
            machine.
    """

    steps: Natural | None = None
    win_rate: float | None = None
    window: Natural = 1000
    rule: Annotated[str, OneOf(("any", "all"), "promotion rule")] = "any"
    minutes: NonNegative | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is None and self.win_rate is None:
            raise ConfigurationError("a promotion needs steps, a win rate, or both: the phase would never end")

    def reached(self, steps: int, games: int, win_rate: float, minutes: float) -> bool:
        """Return whether the phase is over, after so many steps and minutes, with `games` in the window so far."""
        if self.minutes is not None and minutes >= self.minutes:
            return True
        conditions = []
        if self.steps is not None:
            conditions.append(steps >= self.steps)
        if self.win_rate is not None:
            conditions.append(games >= self.window and win_rate >= self.win_rate)
        return any(conditions) if self.rule == "any" else all(conditions)


OLD_NAMES = {"games": "env_options"}


@dataclass(frozen=True)
class Phase(Options):
    """One way of learning, for a part of a stage or all of it.

    Attributes:
        learner: of every agent.
        until: when the phase is over.
        num_envs: B, games of a rollout.
        env_options: of the games that are learnt from, such as another split of training games.
        frozen: modules and parameters of the preset's own agent that do not learn in this phase, by the beginnings of
            their names.
    """

    renamed: ClassVar[Mapping[str, str]] = OLD_NAMES

    learner: AlgorithmConfig
    until: Promotion
    num_envs: Count
    env_options: Mapping[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """IMITATE or REINFORCE: no report mixes the two."""
        return self.learner.kind

    def with_budget(self, factor: float) -> Phase:
        """This phase with so many times its environment steps; the counts of its schedules are scaled with them."""
        until = self.until
        if until.steps is not None:
            until = replace(until, steps=max(1, round(factor * until.steps)))
        return replace(self, learner=self.learner.with_budget(factor), until=until)
