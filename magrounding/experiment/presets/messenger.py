"""Presets of MESSENGER for two CPU cores: they add a loss that grounds symbols by contrast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from magrounding.agents.policy import CONTRAST
from magrounding.envs.messenger.arrays import FIXED_ROLES
from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import CHOSEN_ON_VAL, Phase, Ramp, for_steps
from magrounding.experiment.presets.published import READS
from magrounding.experiment.presets.rtfm import ENDI, QUICK_RL_MA_RTFM
from magrounding.training.imitation import ImitationConfig
from magrounding.training.ppo import PPOConfig

_GROUNDING: dict[str, Any] = {"warm_up": 10_000, "weight_decay": 0.1}
"""Weight decay and warm-up: shortcuts past the manual take large weights."""
_CONTRAST: dict[str, float] = {CONTRAST: 1.0}
"""The loss that grounds symbols. EMMA does not ground them with less, and teams were not measured with less."""
_LIGHT_CONTRAST: dict[str, float] = {CONTRAST: 0.03}
"""The same for a single relread: symbols that often come together are alike to the loss, while their rewards differ."""
_ENDI_TAUGHT: dict[str, float] = {"modelling": 1.0, "division": 1.0}
"""EnDi's λ_sup and λ_reg beside a teacher."""
_SHORT: dict[str, Any] = {"learning_rate": 1e-3, "unroll": 8, "gamma": 0.95}
"""Options of PPO for games of a few steps."""
_FIXED_ROLES_LAST = {"fixed_roles": Ramp(0.0, FIXED_ROLES, hold=60_000, over=1_000)}
"""At first, training games without those in which six symbols come in the same two triples (an eighth of all games have
dog, fish and bird, another sword, ball and mage): boards do not distinguish them, only the result of touching them
does. A network that learns roles from such games learns shortcuts past reading; one that has learnt them from all other
games is told by the teacher's moves which of those six a sentence is about."""


def _ground(steps: int, num_envs: int = 128, weights: Mapping[str, float] = _CONTRAST, **changes: Any) -> Phase:
    """PPO with the losses that ground symbols."""
    learner = PPOConfig(**{"anneal_steps": steps, **_GROUNDING, **changes, "weights": {**ENDI, **weights}})
    return for_steps(learner, steps, num_envs)


def _imitate_and_ground(
    steps: int,
    frozen: tuple[str, ...] = (),
    weights: Mapping[str, float] = _CONTRAST,
    ramps: Mapping[str, Ramp] | None = None,
    **changes: Any,
) -> Phase:
    """DAgger with the losses that ground symbols."""
    learner = ImitationConfig(
        **{"anneal_steps": steps, **_GROUNDING, **changes, "weights": {**_ENDI_TAUGHT, **weights}}
    )
    return for_steps(learner, steps, 128, frozen=frozen, ramps=ramps or {})


QUICK_RL_MESSENGER = replace(
    QUICK_RL_MA_RTFM,
    about=(
        "PPO and a contrastive loss that grounds symbols, no teacher: minutes on two CPU cores with the relational "
        "reader; weights are chosen on the games of `val`."
    ),
    phases={
        "s1": (_ground(100_000, 256, weights=_LIGHT_CONTRAST, **_SHORT),),
        "s2": (_ground(600_000, weights=_LIGHT_CONTRAST),),
        "s3": (_ground(1_000_000, weights=_LIGHT_CONTRAST),),
    },
    env_options={},
    network={"similarity": 64, "meaning": 8},
    team_reward=0.0,
    evaluation=replace(QUICK_RL_MA_RTFM.evaluation, every=25_000, **CHOSEN_ON_VAL),
)

QUICK_RL_MA_MESSENGER = replace(
    QUICK_RL_MESSENGER,
    phases={
        "s1": (_ground(300_000, **_SHORT, entropy=0.05),),
        "s2": (_ground(400_000),),
        REMAINING_STAGES: (_ground(600_000),),
    },
    team_reward=0.5,
)

_NOTHING_MOVES: dict[str, float] = {**_LIGHT_CONTRAST, "motion": 0.0}
"""Losses where nothing moves: predicting motion would teach that things stand still under every manual."""
_MOTION_GROUNDS: dict[str, float] = {CONTRAST: 0.0, "motion": 1.0}
"""Losses where each kind has one statement and moves as that says: predicting motion grounds symbols better than a
contrast of boards with manuals, as messages that were taken are missing on boards."""
_DECOYS: dict[str, float] = {CONTRAST: 0.0, "motion": 0.0}
_DECOYS_FROZEN = ("reader.symbols", "reader.words", "reader.moves")
"""Frozen weights where statements are false and kinds have several: they do not show which statement is about whom."""

QUICK_MESSENGER = replace(
    QUICK_RL_MESSENGER,
    preset="quick",
    about=(
        "PPO in S1, imitation of the oracle and then PPO in S2, imitation in S3; symbols are grounded by a contrastive "
        "loss and by how they move: minutes on two CPU cores with the relational reader; weights are chosen on the "
        "games of `val`."
    ),
    phases={
        "s1": (_ground(100_000, 256, weights=_NOTHING_MOVES, **_SHORT),),
        "s2": (_imitate_and_ground(100_000, weights=_MOTION_GROUNDS), _ground(150_000, weights=_MOTION_GROUNDS)),
        "s3": (_imitate_and_ground(300_000, weights=_DECOYS, frozen=_DECOYS_FROZEN),),
    },
    network={"similarity": 64, "meaning": 8, "motion": 8},
)


def _for_emma(preset: RunConfig, frozen: tuple[str, ...] = ()) -> RunConfig:
    """A preset without options of relread, with the whole contrastive loss wherever it has some, and with gates.

    `frozen` are its parts that ground symbols, where a phase leaves those as they are.
    """

    def adapt(phase: Phase) -> Phase:
        weights = {**phase.learner.weights, **(_CONTRAST if phase.learner.weights[CONTRAST] else {})}
        return replace(
            phase, frozen=frozen if phase.frozen else (), gate=READS, learner=replace(phase.learner, weights=weights)
        )

    return replace(preset, network={}, unlearnt="stop").with_phases(adapt)


QUICK_RL_EMMA, QUICK_EMMA = map(_for_emma, (QUICK_RL_MESSENGER, QUICK_MESSENGER))

_GROUNDED = ("reader.symbols", "reader.words")
"""Weights that S1 has grounded. Trained further, one seed of three unlearnt a third of it: moves of longer games teach
little about sentences, and shortcuts of the games with fixed roles are back."""

QUICK_MA_MESSENGER = replace(
    QUICK_MESSENGER,
    about=(
        "Imitation of the oracle, and PPO after it in S1, both with a contrastive loss that grounds symbols; what S1 "
        "has grounded stays as it is: minutes on two CPU cores with the relational reader; weights are chosen on the "
        "games of `val`."
    ),
    network=QUICK_RL_MESSENGER.network,
    phases={
        "s1": (
            _imitate_and_ground(120_000, ramps=_FIXED_ROLES_LAST, **_SHORT),
            _ground(100_000, **_SHORT, entropy=0.05),
        ),
        REMAINING_STAGES: (_imitate_and_ground(150_000, frozen=_GROUNDED),),
    },
    team_reward=0.5,
)

_EMMA_GROUNDS = ("symbols", "key", "reader")

QUICK_MA_EMMA = replace(
    _for_emma(QUICK_MA_MESSENGER, _EMMA_GROUNDS),
    about=(
        "EMMA of a quarter of its widths, by imitation of the oracle, and PPO after it in S1, both with a loss of "
        "contrast that grounds symbols: minutes on two CPU cores; weights are chosen on the games of `val`."
    ),
    network={"width": 64, "embedding": 64, "maps": 32, "mask_pad": True},
)

QUICK_MA_ENDI_EMMA = replace(
    QUICK_MA_EMMA, phases=_for_emma(QUICK_MA_MESSENGER, tuple(f"emma.{part}" for part in _EMMA_GROUNDS)).phases
)
