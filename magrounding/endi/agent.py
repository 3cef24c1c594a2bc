"""EnDi: an agent that divides the entities between itself and the others (Ding, Zhang, Yue, Wang, Huang, Lu 2023).

From two views of the goal, its own and the others', it decides which entities it takes. It acts on those, and predicts
the others' actions from the ones that it leaves them. Any grounding module can encode the entities; each has a file
here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.building import configure
from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.policy import MARKS, OTHERS, Accepts, Auxiliary, Policy, PolicyOutput, TextEncoding
from magrounding.agents.weights import fit_weights
from magrounding.endi.division import LEFT, NOTHING, REGULARIZERS, TAKEN, Division, Places, dis, divide, draw_noise, num
from magrounding.errors import check_choice
from magrounding.registry import load
from magrounding.schema import OneOf, Options
from magrounding.spec import EnvSpec

GROUNDINGS = {
    "txt2pi": "magrounding.endi.on_txt2pi:EnDiTxt2Pi",
    "emma": "magrounding.endi.on_emma:EnDiEmma",
    "relread": "magrounding.endi.on_relread:EnDiRelread",
}
"""Grounding module → EnDi on it."""


def diagnose(aux: Sequence[Mapping[str, np.ndarray]], actions: np.ndarray, acted: np.ndarray) -> dict[str, np.ndarray]:
    """Return metrics of a step of R episodes.

    Args:
        aux: for each agent, `marks` [R, H, W] (see `Division.taken`) and perhaps `guesses` [R, n − 1], see
            `EnDi.respond`.
        actions: [R, n].
        acted: [R, n] bool.

    Returns:
        Each [R, n], nan for an agent that did not act:

        mask_coverage: share of the entities an agent sees that it takes, nan where it sees none.
        mask_conflicts: share of them that it takes and another agent takes too, nan likewise.
        modelling_accuracy: share of the others who acted whose action was guessed, nan where none did; absent unless
            every agent guesses.
    """
    marks = np.where(acted[..., None, None], np.stack([each["marks"] for each in aux], 1), NOTHING)  # [R, n, H, W]
    own, seen = marks == TAKEN, (marks >= LEFT).sum((-2, -1))
    seen = np.where(seen > 0, seen, np.nan)
    contested = own & (own.sum(1, keepdims=True) > 1)
    metrics = {"mask_coverage": own.sum((-2, -1)) / seen, "mask_conflicts": contested.sum((-2, -1)) / seen}
    if all("guesses" in each for each in aux):
        metrics["modelling_accuracy"] = _accuracy(np.stack([each["guesses"] for each in aux], 1), actions, acted)
    return metrics


def _accuracy(guesses: np.ndarray, actions: np.ndarray, acted: np.ndarray) -> np.ndarray:
    """[R, n] of guesses [R, n, n − 1], each agent's of the others, in their order."""
    n = actions.shape[1]
    others = np.array([[j for j in range(n) if j != i] for i in range(n)])  # [n, n − 1]
    known = acted[:, others]
    right = ((guesses == actions[:, others]) & known).sum(2, dtype=np.float32)
    count = known.sum(2, dtype=np.float32)
    return np.where(acted & (count > 0), right / np.maximum(count, 1), np.float32(np.nan))


@dataclass(frozen=True)
class EnDiOptions(Options):
    """Options that EnDi has with every grounding module.

    Attributes:
        regularizer: of the division: "num", "dis" or "none" (EnDi-reg).
        modelling: predict the others' actions; False is EnDi-sup.
        squared: `num` as the released program has it.
    """

    regularizer: Annotated[str, OneOf(REGULARIZERS)] = "dis"
    modelling: bool = True
    squared: bool = False


class Survey(NamedTuple):
    """State of an EnDi before it divides."""

    places: Places  # to be divided
    logits: Tensor  # [N, P, 2], of self and of others
    seen: Any  # intermediate results for both views of the divided entities
    memory: Tensor | None = None  # [N, …] or None


class Decision(NamedTuple):
    """Logits of the actions and value, by the places that an agent takes."""

    logits: Tensor  # [N, A]
    value: Tensor  # [N]
    aux: Mapping[str, Callable[[], Tensor]] = MappingProxyType({})  # of the grounding module, for `PolicyOutput.aux`


class Divided(NamedTuple):
    """Division and `Survey.seen`, for losses."""

    division: Division
    seen: Any


class EnDi(DocumentPolicy):
    """Base of EnDi on any grounding module.

    Attributes:
        loss_weights: λ_sup and λ_reg where a learner sets none: 1 and, beside V-trace in RTFM, 0.1 (no program of that
            is released). Preset `paper` of `ma_messenger`, which learns by PPO, has 1 and 1, as released.

    Raises:
        ConfigurationError: an environment that it is not made for.
    """

    accepts = Accepts(fields=("manual", "position", "inventory", "action_mask", "teammates"), egocentric=False)
    loss_weights: ClassVar[Mapping[str, float]] = {"modelling": 1.0, "division": 0.1}
    diagnostics = staticmethod(diagnose)

    def __init__(self, spec: EnvSpec, config: EnDiOptions) -> None:
        super().__init__(spec)
        self.config: Any = config
        self.needs = frozenset({OTHERS}) if config.modelling else frozenset()
        self.num_agents = spec.num_agents
        self.modelled = spec.num_agents - 1 if config.modelling else 0  # others whose actions are predicted
        self.map = spec.grid.height, spec.grid.width

    @abstractmethod
    def survey(self, inputs: Inputs, memory: Tensor | None) -> Survey:
        """Score every place for oneself and for the others."""

    @abstractmethod
    def decide(self, inputs: Inputs, seen: Any, mask: Tensor) -> Decision:
        """Act, given which places are visible, `mask` [N, P]."""

    @abstractmethod
    def predict_others(self, inputs: Inputs, seen: Any, mask: Tensor) -> Tensor:
        """Return logits [N, n − 1, A] of the others' actions, given which places are visible, `mask` [N, P]."""

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        """Divide, then act; `aux` has MARKS (`Division.taken`) and "guesses" [N, n − 1] int64, the others' actions."""
        observation = inputs.observation
        places, scores, seen, memory = self.survey(inputs, memory)
        noise = observation.get("noise")
        if noise is not None:  # of the cell of each place
            noise = noise.flatten(1).gather(1, places.row * noise.shape[2] + places.column)
        division = divide(scores, places, noise)
        logits, value, attended = self.decide(inputs, seen, division.own)
        aux = dict(attended)
        aux[MARKS] = lambda: division.taken(*observation["grid"].shape[1:3])
        if self.config.modelling:
            aux["guesses"] = lambda: self.predict_others(inputs, seen, division.others).float().argmax(-1)
        return PolicyOutput.masked(logits, value, observation, memory, aux=aux, seen=Divided(division, seen))

    def draw_record(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw noise [*shape, H, W], "noise": one number for each cell."""
        return {"noise": draw_noise((*shape, *self.map), generator)}

    def auxiliary(self, inputs: Inputs, output: PolicyOutput, extras: Mapping[str, Tensor]) -> Auxiliary:
        """Return the losses "modelling" (L_sup) and "division" (L_reg), whose gradients reach the division."""
        division, seen = output.seen
        losses, metrics = {}, {"division_entropy": _entropy(division)}
        if self.config.modelling and OTHERS in extras:
            logits = self.predict_others(inputs, seen, division.others).float()
            losses["modelling"], metrics["modelling_accuracy"] = modelling_loss(logits, extras[OTHERS])
        if self.config.regularizer != "none":
            losses["division"] = self._regularize(division, inputs.observation)
        return Auxiliary(losses, metrics)

    def _regularize(self, division: Division, observation: dict[str, Tensor]) -> Tensor:
        if self.config.regularizer == "num":
            return num(division, self.num_agents, squared=self.config.squared)
        height, width = observation["grid"].shape[1:3]
        return dis(division, observation["position"], observation["teammates"], height, width)


class EnDiOnPolicy(EnDi):
    """EnDi on a grounding module that is a policy: it reads and remembers as that does."""

    @property
    @abstractmethod
    def module(self) -> DocumentPolicy:
        """The grounding module."""

    def begin_with(self, policy: Policy, source: str) -> None:
        fit_weights(self.module if type(policy) is self.grounding_module else self, policy.state_dict(), source)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        return self.module.encode_text(manual, goal)

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor | None:
        return self.module.relate_words(text, subjects, names)

    @property
    def contrasts(self) -> bool:
        return self.module.contrasts

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        return self.module.contrast(observation, text)

    def initial_memory(self, num_envs: int) -> Tensor | None:
        return self.module.initial_memory(num_envs)

    def memories(self, memory: Tensor, observation: dict[str, Tensor], restarts: Tensor) -> Tensor | None:
        return self.module.memories(memory, observation, restarts)


def modelling_loss(logits: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy L_sup (section 4.2), summed over the others [N], and accuracy [N], nan where none acted.

    `logits` [N, n − 1, A] and actions `others` [N, n − 1] are of the others, −1 for those that did not act.
    """
    action, acted = others.clamp(min=0), others >= 0
    nll = F.cross_entropy(logits.transpose(1, 2), action, reduction="none")
    right = ((logits.argmax(-1) == action) & acted).sum(1)
    return torch.where(acted, nll, 0.0).sum(1), right / acted.sum(1)


def _entropy(division: Division) -> Tensor:
    """Mean entropy [N] of the division of an entity in nats, nan where none is seen."""
    log_probabilities = F.logsigmoid(torch.stack((division.difference, -division.difference)))
    entropy = -(log_probabilities.exp() * log_probabilities).sum(0)
    entity = division.places.is_entity
    return torch.where(entity, entropy, 0.0).sum(1) / entity.sum(1)


def make_endi(spec: EnvSpec, *, grounding: str = "txt2pi", regularizer: str = "dis", **options: Any) -> Policy:
    """Build an EnDi on "txt2pi" (the paper's for RTFM), "emma" (the paper's for MESSENGER) or "relread".

    For one agent it is the grounding module alone: a division takes two. Options are `EnDiOptions` and those of the
    module.

    Raises:
        ConfigurationError: an unknown module or option, or an invalid value.
    """
    network = load(GROUNDINGS[check_choice("grounding", grounding, tuple(GROUNDINGS))])
    config = configure(f"endi on {grounding}", network.defaults, {"regularizer": regularizer, **options})
    return (network if spec.num_agents > 1 else network.grounding_module)(spec, config)
