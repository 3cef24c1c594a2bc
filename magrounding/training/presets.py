"""Presets: what a whole curriculum costs and how it is run, as data. A new one is one more entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from magrounding.errors import ConfigurationError, choose
from magrounding.training.algorithms import AlgorithmConfig
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig
from magrounding.training.ppo import PPOConfig
from magrounding.training.qmix import QmixConfig

EVERY_OTHER_STAGE = "*"
IMITATE, REINFORCE = "imitate", "reinforce"


@dataclass(frozen=True)
class Promotion:
    """When a phase of a stage is over. At least one of `steps` and `win_rate` has to be given.

    Attributes:
        steps: environment steps (one game, one step) spent in the phase.
        win_rate: training win rate over the last `window` games.
        window: games; the rate counts once there are so many.
        rule: "any": the first of the conditions given ends the phase; "all": it takes both.
        minutes: of training (not of evaluation), end the phase whatever the rule; a run that needs them depends on the
            machine.
    """

    steps: int | None = None
    win_rate: float | None = None
    window: int = 1000
    rule: str = "any"
    minutes: float | None = None

    def __post_init__(self) -> None:
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

    learner: AlgorithmConfig
    until: Promotion
    num_envs: int
    games: Mapping[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """With a teacher IMITATE, without REINFORCE: no report mixes the two."""
        return IMITATE if isinstance(self.learner, ImitationConfig) else REINFORCE

    def with_budget(self, factor: float) -> Phase:
        """This phase with so many times its environment steps; what its schedules count is scaled with them."""
        steps = {name: getattr(self.learner, name, None) for name in ("anneal_steps", "teacher_steps", "exploration")}
        scaled = {name: factor * count for name, count in steps.items() if count is not None}
        until = self.until
        if until.steps is not None:
            until = replace(until, steps=max(1, round(factor * until.steps)))
        return replace(self, learner=replace(self.learner, **scaled), until=until)


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
        carry_optimizer: a phase inherits the optimiser's statistics along with the weights, as RTFM's program does,
            where the phase before had the same algorithm.
        evaluate_every: environment steps between evaluations within a phase; None: at its end only.
        selection_games: games of an evaluation within a phase; those on `selection_set` choose its best weights.
        report_games: games of an evaluation after a phase, on each set.
        selection_set: evaluation set that chooses a phase's best weights; never one of the held-out ones.
        watched_sets: evaluation sets within a phase, and after one that another follows in the same stage.
        stage_sets: after a stage; None: every set of the environment.
        final_sets: after the last stage; None: every set of the environment.
        log_every: updates between two lines of metrics.
        save_every: seconds between checkpoints.
    """

    name: str
    about: str
    agent: str
    phases: Mapping[str, tuple[Phase, ...]]
    env_options: Mapping[str, Any] = field(default_factory=dict)
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    team_reward: float = 0.0
    carry_optimizer: bool = True
    evaluate_every: int | None = None
    selection_games: int = 500
    report_games: int = 1000
    selection_set: str = "train"
    watched_sets: tuple[str, ...] = ("train", "eval")
    stage_sets: tuple[str, ...] | None = ("train", "eval")
    final_sets: tuple[str, ...] | None = None
    log_every: int = 10
    save_every: float = 120.0

    def __post_init__(self) -> None:
        if not 0 <= self.team_reward <= 1:
            raise ConfigurationError(f"the team's part of a reward lies in [0, 1], got {self.team_reward}")
        for stage, phases in self.phases.items():
            names = [phase.name for phase in phases]
            if not names or len(set(names)) < len(names):
                raise ConfigurationError(f"a stage has one or two phases of different kinds, {stage} has {names}")

    def of_stage(self, stage: str) -> tuple[Phase, ...]:
        """The phases of a stage."""
        return self.phases.get(stage) or self.phases[EVERY_OTHER_STAGE]

    def with_budget(self, factor: float) -> Preset:
        """This preset with so many times the environment steps in every phase, schedules and evaluations with them."""
        if not 0 < factor < float("inf"):
            raise ConfigurationError(f"a budget is a positive part or multiple of the preset's, got {factor:g}")
        phases = {stage: tuple(each.with_budget(factor) for each in phases) for stage, phases in self.phases.items()}
        often = None if self.evaluate_every is None else max(1, round(factor * self.evaluate_every))
        about = f"{self.about} Here with {factor:g} times its budget."
        return replace(self, about=about, phases=phases, evaluate_every=often)

    def with_learners(self, change: Callable[[AlgorithmConfig], AlgorithmConfig]) -> Preset:
        """This preset with every phase's learner changed."""
        phases = {
            stage: tuple(replace(phase, learner=change(phase.learner)) for phase in of_stage)
            for stage, of_stage in self.phases.items()
        }
        return replace(self, phases=phases)


def _as_published(steps: int, num_envs: int) -> tuple[Phase, ...]:
    """V-trace for so many environment steps."""
    return (Phase(ImpalaConfig(), Promotion(steps=steps), num_envs),)


_PAPER_MA_RTFM = Preset(
    name="paper",
    about="EnDi's budgets (appendix B): 1.5e7 environment steps for S1, 5e7 for each later stage; 20 games at once.",
    agent="txt2pi",
    phases={"s1": _as_published(15_000_000, 20), EVERY_OTHER_STAGE: _as_published(50_000_000, 20)},
    env_options={"max_cycles": 1000, "occupants": 1},
    evaluate_every=2_500_000,
)

_PAPER_RTFM = replace(
    _PAPER_MA_RTFM,
    about="RTFM's budgets (table 2, appendix D): 1e8 environment steps for the first task, 5e7 for each later one.",
    phases={
        "simple_stationary": _as_published(100_000_000, 24),
        EVERY_OTHER_STAGE: _as_published(50_000_000, 24),
    },
    evaluate_every=5_000_000,
)

_PAPER_ROCK_PAPER_SCISSORS = replace(
    _PAPER_RTFM,
    about="The budget of RTFM's appendix on rock-paper-scissors: 5e7 environment steps; 24 games, unrolls of 80.",
    phases={EVERY_OTHER_STAGE: _as_published(50_000_000, 24)},
    env_options={"max_cycles": 1000},
)


_ENDI: dict[str, Any] = {"modelling": 0.03, "division": 0.01}
"""EnDi's λ_sup and λ_reg where advantages are normalised: beside the paper's, 1 and 0.1, rewards count for little."""


def _imitate(steps: int, teacher_steps: int = 20_000) -> Phase:
    """DAgger for so many environment steps: small minibatches and three passes, as what is slow is reading."""
    learner = ImitationConfig(anneal_steps=steps, teacher_steps=teacher_steps, **_ENDI)
    return Phase(learner, Promotion(steps=steps), num_envs=64)


def _reinforce(steps: int, **changes: Any) -> Phase:
    """PPO for so many environment steps."""
    learner = PPOConfig(anneal_steps=steps, **_ENDI, **changes)
    return Phase(learner, Promotion(steps=steps), num_envs=64)


_FINE: dict[str, Any] = {"learning_rate": 5e-4, "entropy": 0.004, "final_entropy": 0.0005}
"""PPO of a policy that knows its way already."""
_FINEST = {**_FINE, "learning_rate": 2e-4}
"""The same where there is little left to learn."""

_QUICK = Preset(
    name="quick",
    about=(
        "Imitation of the oracle, then PPO, in every stage: minutes on two CPU cores with the relational reader; "
        "episodes of at most 80 steps."
    ),
    agent="relread",
    phases={
        "s1": (_imitate(250_000, teacher_steps=60_000), _reinforce(50_000, **_FINEST)),
        "s2": (_imitate(200_000), _reinforce(50_000, **_FINEST)),
        "s3": (_imitate(200_000), _reinforce(250_000, **_FINE)),
        "s4": (_imitate(50_000), _reinforce(100_000, **_FINE)),
        "s5": (_imitate(150_000), _reinforce(300_000, **_FINE)),
    },
    env_options={"max_cycles": 80},
    team_reward=0.5,
    carry_optimizer=False,
    evaluate_every=100_000,
    stage_sets=None,
)

_QUICK_RTFM = replace(
    _QUICK,
    phases={
        "simple_stationary": (_imitate(250_000, teacher_steps=60_000), _reinforce(50_000, **_FINEST)),
        "nl": (_imitate(150_000), _reinforce(300_000, **_FINE)),
        EVERY_OTHER_STAGE: (_imitate(200_000), _reinforce(200_000, **_FINE)),
    },
)

_QUICK_RL = replace(
    _QUICK,
    name="quick_rl",
    about=(
        "PPO alone, no teacher: tens of minutes on two CPU cores with the relational reader; episodes of at most 80 "
        "steps."
    ),
    phases={
        "s1": (_reinforce(600_000),),
        "s2": (_reinforce(500_000),),
        "s3": (_reinforce(1_000_000, entropy=0.004, final_entropy=0.0005),),
        "s4": (_reinforce(200_000, **_FINE),),
        "s5": (_reinforce(1_000_000, entropy=0.004, final_entropy=0.0005),),
    },
    evaluate_every=200_000,
)

_QUICK_RL_RTFM = replace(
    _QUICK_RL,
    phases={
        "simple_stationary": (_reinforce(500_000),),
        EVERY_OTHER_STAGE: (_reinforce(1_000_000, entropy=0.004, final_entropy=0.0005),),
    },
)


_GROUNDING: dict[str, Any] = {"warm_up": 10_000, "contrast": 1.0, "weight_decay": 0.1}
"""The contrastive loss; weights decay, as shortcuts past the manual take large ones."""
_SHORT: dict[str, Any] = {"learning_rate": 1e-3, "unroll": 8, "gamma": 0.95}
"""For games of a few steps."""
_MANY_COMBINATIONS = {"split": "train_mc"}
"""Symbols that always come together (an eighth of the games has dog, fish and bird, another sword, ball and mage) no
board tells apart, only what becomes of touching them. Whoever learns what roles mean from such games learns shortcuts
past reading; who knows it from all the others first, grounds those six by it."""


def _ground(steps: int, num_envs: int = 128, **changes: Any) -> Phase:
    """PPO with the contrastive loss."""
    return Phase(
        PPOConfig(**{"anneal_steps": steps, **_ENDI, **_GROUNDING, **changes}), Promotion(steps=steps), num_envs
    )


def _imitate_and_ground(steps: int, games: Mapping[str, Any] | None = None, **changes: Any) -> Phase:
    """DAgger with the contrastive loss."""
    learner = ImitationConfig(**{"anneal_steps": steps, **_ENDI, **_GROUNDING, **changes})
    return Phase(learner, Promotion(steps=steps), 128, games or {})


_QUICK_RL_MESSENGER = replace(
    _QUICK_RL,
    about=(
        "PPO and a contrastive loss that grounds symbols, no teacher: minutes on two CPU cores with the relational "
        "reader; weights are chosen on the games of `val`."
    ),
    phases={
        "s1": (_ground(100_000, 256, **_SHORT),),
        "s2": (_ground(600_000),),
        "s3": (_ground(1_000_000),),
    },
    env_options={},
    policy_options={"kinship": 64, "meaning": 8},
    team_reward=0.0,
    evaluate_every=25_000,
    selection_set="val",
    watched_sets=("train", "val"),
)

_QUICK_RL_MA_MESSENGER = replace(
    _QUICK_RL_MESSENGER,
    phases={
        "s1": (_ground(300_000, **_SHORT, entropy=0.05),),
        "s2": (_ground(400_000),),
        EVERY_OTHER_STAGE: (_ground(600_000),),
    },
    team_reward=0.5,
)

_QUICK_MESSENGER = replace(
    _QUICK_RL_MESSENGER,
    name="quick",
    about=(
        "Imitation of the oracle, then PPO, in every stage, both with a contrastive loss that grounds symbols: minutes "
        "on two CPU cores with the relational reader; weights are chosen on the games of `val`."
    ),
    phases={
        "s1": (_imitate_and_ground(40_000, _MANY_COMBINATIONS, **_SHORT), _ground(80_000, **_SHORT)),
        "s2": (_imitate_and_ground(100_000), _ground(200_000)),
        "s3": (_imitate_and_ground(300_000), _ground(300_000, **_FINE)),
    },
)

_QUICK_MA_MESSENGER = replace(
    _QUICK_MESSENGER,
    phases={
        "s1": (
            _imitate_and_ground(60_000, _MANY_COMBINATIONS, **_SHORT),
            # Those six are grounded by what becomes of touching them: somebody has to try.
            _ground(150_000, **_SHORT, entropy=0.05),
        ),
        EVERY_OTHER_STAGE: (_imitate_and_ground(150_000), _ground(200_000, **_FINE)),
    },
    team_reward=0.5,
)


def _as_messenger(steps: int, gamma: float, frozen: tuple[str, ...] = ()) -> tuple[Phase, ...]:
    """PPO of MESSENGER's program: one game, buffers of 64 steps, four passes, no schedule."""
    learner = PPOConfig(
        unroll=64,
        epochs=4,
        minibatches=1,
        learning_rate=5e-5,
        warm_up=0,
        final_rate=1.0,
        epsilon=1e-8,
        gamma=gamma,
        clip=0.1,
        final_entropy=0.01,
        clip_gradient=0.0,
        normalised_returns=True,
    )
    return (Phase(learner, Promotion(steps=steps), 1, frozen=frozen),)


_GROUNDED = ("symbols", "key", "reader")
"""What EMMA finds sentences with, once it has learnt to: symbols, keys and, where it is trained, the words' table."""

_PAPER_MESSENGER = Preset(
    name="paper",
    about=(
        "EMMA's learner, with its discounts and what it freezes after S1, and EnDi's budgets, as EMMA's are hours: "
        "3e7 environment steps for S1, 5e7 for each later stage; one game at a time."
    ),
    agent="emma",
    phases={"s1": _as_messenger(30_000_000, 0.8), EVERY_OTHER_STAGE: _as_messenger(50_000_000, 0.99, _GROUNDED)},
    evaluate_every=500_000,
    selection_set="val",
    watched_sets=("train", "val"),
    stage_sets=None,
)

_PAPER_MA_MESSENGER = replace(
    _PAPER_MESSENGER,
    about=(
        "EMMA as EnDi trained it (appendix B): 3e7 environment steps for S1, 5e7 for each later stage; one game at a "
        "time."
    ),
    phases={"s1": _as_messenger(30_000_000, 0.99), EVERY_OTHER_STAGE: _as_messenger(50_000_000, 0.99, _GROUNDED)},
)

_SILG_RTFM = replace(
    _PAPER_RTFM,
    name="silg",
    about="SIR as SILG trained it (appendix H): V-trace, 1e8 environment steps a stage; episodes of at most 80 steps.",
    agent="sir",
    phases={
        EVERY_OTHER_STAGE: (
            Phase(ImpalaConfig(learning_rate=5e-4, entropy=0.05), Promotion(steps=100_000_000), num_envs=24),
        )
    },
    env_options={"max_cycles": 80, "occupants": 1},
)

_SILG_MESSENGER = replace(
    _SILG_RTFM,
    about=f"{_SILG_RTFM.about} SILG also had a step cost 0.02, as it does in RTFM.",
    env_options={"max_cycles": 80},
    selection_set="val",
    watched_sets=("train", "val"),
    stage_sets=None,
)


def _qmix(steps: int, num_envs: int, games: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """What QMIX changes of a preset: so many environment steps in every stage."""
    phase = Phase(QmixConfig(**changes), Promotion(steps=steps), num_envs, games or {})
    return {"agent": "qmix", "phases": {EVERY_OTHER_STAGE: (phase,)}, "policy_options": {}, "team_reward": 0.0}


_QMIX_SETS: dict[str, Any] = {"stage_sets": ("train", "eval"), "final_sets": ("train", "eval", "eval_new")}
"""Maps of another size are left out: the network is made for one."""
_SAME_FOR_ALL: dict[str, Any] = {"team": "mean"}
"""All agents of MESSENGER get the same reward."""
_SELDOM: dict[str, Any] = {"replay_steps": 100_000, "updates": 0.1, "state_maps": 16}
"""QMIX for two cores: many games at once, and an episode is learnt from three times, not 32."""

_PAPER_QMIX_MA_RTFM = replace(
    _PAPER_MA_RTFM,
    name="paper_qmix",
    about=(
        "QMIX without language, with its program's settings and EnDi's budget for S1, 1.5e7 environment steps; 8 games "
        "at once, of at most 200 steps while training."
    ),
    **_qmix(15_000_000, 8, {"max_cycles": 200}),
    **_QMIX_SETS,
)

_PAPER_QMIX_MA_MESSENGER = replace(
    _PAPER_MA_MESSENGER,
    name="paper_qmix",
    about="QMIX without language, with its program's settings and EnDi's budget for S1, 3e7 environment steps.",
    **_qmix(30_000_000, 8, exploration=50_000, **_SAME_FOR_ALL),
)

_QUICK_QMIX_MA_RTFM = replace(
    _QUICK_RL,
    name="quick_qmix",
    about="QMIX without language: tens of minutes a stage on two CPU cores; episodes of at most 80 steps.",
    **{**_qmix(1_000_000, 64, **_SELDOM), "policy_options": {"maps": 16}},
    **_QMIX_SETS,
)

_QUICK_QMIX_MA_MESSENGER = replace(
    _QUICK_RL_MA_MESSENGER,
    name="quick_qmix",
    about="QMIX without language: minutes a stage on two CPU cores; weights are chosen on the games of `val`.",
    **{**_qmix(200_000, 64, exploration=50_000, **_SELDOM, **_SAME_FOR_ALL), "policy_options": {"maps": 16}},
)

_DEMO = replace(
    _QUICK,
    name="demo",
    about=(
        "A demonstration for two CPU cores and about eight minutes: the beginning of quick, imitation of the oracle "
        "and then PPO. It shows the whole road and stops before its end."
    ),
    phases={
        "s1": (_imitate(150_000, teacher_steps=60_000), _reinforce(30_000, **_FINEST)),
        "s2": (_imitate(80_000), _reinforce(20_000, **_FINEST)),
        "s4": (_imitate(40_000), _reinforce(40_000, **_FINE)),
        EVERY_OTHER_STAGE: (_imitate(100_000), _reinforce(100_000, **_FINE)),
    },
    evaluate_every=None,
    selection_games=100,
    report_games=200,
    stage_sets=("train", "eval"),
    save_every=30.0,
)

PRESETS: dict[str, dict[str, Preset]] = {
    "paper": {
        "ma_rtfm": _PAPER_MA_RTFM,
        "rtfm": _PAPER_RTFM,
        "rock_paper_scissors": _PAPER_ROCK_PAPER_SCISSORS,
        "messenger": _PAPER_MESSENGER,
        "ma_messenger": _PAPER_MA_MESSENGER,
    },
    "silg": {"rtfm": _SILG_RTFM, "messenger": _SILG_MESSENGER},
    "quick": {
        "ma_rtfm": _QUICK,
        "rtfm": _QUICK_RTFM,
        "messenger": _QUICK_MESSENGER,
        "ma_messenger": _QUICK_MA_MESSENGER,
    },
    "quick_rl": {
        "ma_rtfm": _QUICK_RL,
        "rtfm": _QUICK_RL_RTFM,
        "messenger": _QUICK_RL_MESSENGER,
        "ma_messenger": _QUICK_RL_MA_MESSENGER,
    },
    "quick_qmix": {"ma_rtfm": _QUICK_QMIX_MA_RTFM, "ma_messenger": _QUICK_QMIX_MA_MESSENGER},
    "paper_qmix": {"ma_rtfm": _PAPER_QMIX_MA_RTFM, "ma_messenger": _PAPER_QMIX_MA_MESSENGER},
    "demo": {"ma_rtfm": _DEMO, "rtfm": _DEMO},
}
"""Name → environment id → preset."""


def find_preset(name: str, env: str) -> Preset:
    """A preset for an environment; ConfigurationError where there is none."""
    by_env = PRESETS[choose("preset", name, tuple(PRESETS))]
    if env not in by_env:
        raise ConfigurationError(f"preset {name!r} is not made for {env!r}; it serves: {', '.join(by_env)}")
    return by_env[env]


def default_preset(env: str) -> str:
    """The name of the preset with the smallest budget for an environment."""
    return "demo" if env in PRESETS["demo"] else "quick"
