"""The learner of LGE: DRRN's, and how often the Guide is followed (Golchha et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from magrounding.agents.policy import Policy
from magrounding.errors import ConfigurationError
from magrounding.extensions.lge.agent import NO_GUIDE, Lge
from magrounding.extensions.lge.drrn_learner import DrrnLearner, DrrnLearnerConfig
from magrounding.schema import NonNegative, OneOf, Share
from magrounding.spec import EnvSpec
from magrounding.training.algorithm import falling

FIX, INC, RELEASED = GUIDANCE = ("fix", "inc", "released")


@dataclass(frozen=True)
class LgeLearnerConfig(DrrnLearnerConfig):
    """Options of the learner; the others are those of DRRN.

    Attributes:
        guidance: what ε is, the share of steps in which all valid actions are candidates. "fix": always `epsilon`;
            "inc": it rises to 1; "released", as in the published program whatever its flags:
            it rises likewise, and one draw decides for all games of a step.
        guidance_steps: environment steps over which ε rises, those of the whole run.
        epsilon: where ε begins. The paper lets "inc" begin at 0, the published program at .1.
    """

    algorithm: ClassVar[str] = "lge"
    scaled: ClassVar[tuple[str, ...]] = (*DrrnLearnerConfig.scaled, "guidance_steps")

    guidance: Annotated[str, OneOf(GUIDANCE)] = FIX
    guidance_steps: NonNegative = 800_000
    epsilon: Share = 0.1

    def epsilon_at(self, steps: int) -> float:
        """ε after so many environment steps."""
        return falling(self.epsilon, self.epsilon if self.guidance == FIX else 1.0, self.guidance_steps, steps)

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> LgeLearner:
        assert isinstance(policy, Lge)  # as the agent's entry says
        if not policy.config.guide:  # nothing was read so far, so nothing was missed
            raise ConfigurationError(NO_GUIDE)
        return LgeLearner(policy, self, spec, seed)


class LgeLearner(DrrnLearner):
    """DRRN's learner, which also sets ε; arguments as there."""

    network: Lge
    config: LgeLearnerConfig

    def __init__(self, policy: Lge, config: LgeLearnerConfig, spec: EnvSpec, seed: int) -> None:
        super().__init__(policy, config, spec, seed)
        self._set_epsilon(0)

    def explore(self, steps: int) -> None:
        super().explore(steps)
        self._set_epsilon(steps)
        self.network.guided = 0

    def metrics(self, steps: int) -> dict[str, float]:
        """Those of DRRN; ε, and the steps in which the Guide left something out."""
        own = {"epsilon": self.config.epsilon_at(steps), "guided": float(self.network.guided)}
        return super().metrics(steps) | own

    def _set_epsilon(self, steps: int) -> None:
        self.network.epsilon.fill_(self.config.epsilon_at(steps))
        self.network.together.fill_(self.config.guidance == RELEASED)
