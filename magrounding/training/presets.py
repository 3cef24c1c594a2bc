"""Presets: what a whole curriculum costs and how it is run, as data. A new one is one more entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from magrounding.errors import ConfigurationError, choose
from magrounding.training.algorithms import AlgorithmConfig
from magrounding.training.impala import ImpalaConfig
from magrounding.training.ppo import PPOConfig

EVERY_OTHER_STAGE = "*"


@dataclass(frozen=True)
class Promotion:
    """When a stage is over. At least one of `steps` and `win_rate` has to be given.

    Attributes:
        steps: environment steps (one game, one step) spent in the stage.
        win_rate: training win rate over the last `window` games.
        window: games; the rate counts once there are so many.
        rule: "any": the first of the conditions given ends the stage; "all": it takes both.
        minutes: ends the stage whatever the rule; a run that needs it depends on the machine.
    """

    steps: int | None = None
    win_rate: float | None = None
    window: int = 1000
    rule: str = "any"
    minutes: float | None = None

    def __post_init__(self) -> None:
        choose("promotion rule", self.rule, ("any", "all"))
        if self.steps is None and self.win_rate is None:
            raise ConfigurationError("a promotion needs steps, a win rate, or both: the stage would never end")

    def reached(self, steps: int, games: int, win_rate: float, minutes: float) -> bool:
        """Whether the stage is over.

        Args:
            steps: environment steps spent in the stage.
            games: games in the window so far.
            win_rate: of those.
            minutes: spent in the stage.
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
class Preset:
    """One way to run a curriculum.

    Attributes:
        name: what --preset takes.
        about: the budget in a sentence, for reports.
        agent: id of the networks, unless another is asked for.
        num_envs: B, games of a rollout.
        learner: of every agent.
        promotions: stage → when it is over; "*" for every other stage.
        env_options: of the environment, beside stage and number of agents.
        policy_options: of that agent's network; another is as its authors made it.
        team_reward: part of each agent's reward that is the team's mean instead of its own.
        carry_optimizer: a stage inherits the optimiser's statistics along with the weights, as RTFM's program does.
        evaluate_every: environment steps between evaluations within a stage; None: at its end only.
        selection_games: games of an evaluation within a stage; those on `train` choose its best weights.
        report_games: games of an evaluation after a stage, on each set.
        stage_sets: evaluation sets within and after every stage.
        final_sets: and after the last; None: every set of the environment.
        log_every: updates between two lines of metrics.
        save_every: seconds between checkpoints.
    """

    name: str
    about: str
    agent: str
    num_envs: int
    learner: AlgorithmConfig
    promotions: Mapping[str, Promotion]
    env_options: Mapping[str, Any] = field(default_factory=dict)
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    team_reward: float = 0.0
    carry_optimizer: bool = True
    evaluate_every: int | None = None
    selection_games: int = 500
    report_games: int = 1000
    stage_sets: tuple[str, ...] = ("train", "eval")
    final_sets: tuple[str, ...] | None = None
    log_every: int = 10
    save_every: float = 120.0

    def promotion(self, stage: str) -> Promotion:
        return self.promotions.get(stage) or self.promotions[EVERY_OTHER_STAGE]


_PAPER_MA_RTFM = Preset(
    name="paper",
    about="EnDi's budgets (appendix B): 1.5e7 environment steps for S1, 5e7 for each later stage; 20 games at once.",
    agent="txt2pi",
    num_envs=20,
    learner=ImpalaConfig(),
    promotions={"s1": Promotion(steps=15_000_000), EVERY_OTHER_STAGE: Promotion(steps=50_000_000)},
    env_options={"max_cycles": 1000, "occupants": 1},
    evaluate_every=2_500_000,
)

_PAPER_RTFM = replace(
    _PAPER_MA_RTFM,
    about="RTFM's budgets (table 2, appendix D): 1e8 environment steps for the first task, 5e7 for each later one.",
    num_envs=24,
    promotions={"simple_stationary": Promotion(steps=100_000_000), EVERY_OTHER_STAGE: Promotion(steps=50_000_000)},
    evaluate_every=5_000_000,
)

_PAPER_ROCK_PAPER_SCISSORS = replace(
    _PAPER_RTFM,
    about="The budget of RTFM's appendix on rock-paper-scissors: 5e7 environment steps; 24 games, unrolls of 80.",
    promotions={EVERY_OTHER_STAGE: Promotion(steps=50_000_000)},
    env_options={"max_cycles": 1000},
)

_QUICK_RL = Preset(
    name="quick_rl",
    about="PPO alone, no teacher: minutes on two CPU cores with the relational reader; episodes of at most 80 steps.",
    agent="relread",
    num_envs=64,
    learner=PPOConfig(anneal_steps=1_000_000),
    promotions={EVERY_OTHER_STAGE: Promotion(steps=1_000_000)},
    env_options={"max_cycles": 80},
    team_reward=0.5,
    carry_optimizer=False,
    evaluate_every=200_000,
)

_DEMO = replace(
    _QUICK_RL,
    name="demo",
    about=(
        "A demonstration for two CPU cores and at most eight minutes: the beginning of quick_rl, PPO alone and no "
        "teacher, less than a hundredth of the papers' steps. It shows the whole road and stops long before its end."
    ),
    learner=PPOConfig(anneal_steps=360_000),
    promotions={"s1": Promotion(steps=360_000, minutes=3.2), EVERY_OTHER_STAGE: Promotion(steps=80_000, minutes=0.7)},
    evaluate_every=None,
    selection_games=100,
    report_games=200,
    save_every=30.0,
)

PRESETS: dict[str, dict[str, Preset]] = {
    "paper": {"ma_rtfm": _PAPER_MA_RTFM, "rtfm": _PAPER_RTFM, "rock_paper_scissors": _PAPER_ROCK_PAPER_SCISSORS},
    "quick_rl": {"ma_rtfm": _QUICK_RL, "rtfm": _QUICK_RL},
    "demo": {"ma_rtfm": _DEMO, "rtfm": _DEMO},
}
"""Name → environment id → preset."""


def find_preset(name: str, env: str) -> Preset:
    """A preset for an environment; ConfigurationError where there is none."""
    by_env = PRESETS[choose("preset", name, tuple(PRESETS))]
    if env not in by_env:
        raise ConfigurationError(f"preset {name!r} is not made for {env!r}; it serves: {', '.join(by_env)}")
    return by_env[env]
