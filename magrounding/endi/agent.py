"""EnDi: an agent that divides the entities between itself and the others (Ding, Zhang, Yue, Wang, Huang, Lu 2023).

From two views of the goal, as it lies to itself and to the others, it decides which entities it takes. It acts on those
that it takes, and foresees what the others do from those that it leaves them. Any grounding module can look at the
entities; each has a file here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.document_policy import DocumentPolicy
from magrounding.agents.policy import MARKS, OTHERS, Accepts, Auxiliary, Policy, PolicyOutput, TextEncoding, mask_logits
from magrounding.endi.diagnostics import diagnose
from magrounding.endi.division import Division, divide, draw_noise
from magrounding.endi.modelling import modelling_loss
from magrounding.endi.places import Places
from magrounding.endi.regularizers import REGULARIZERS, dis, num
from magrounding.errors import ConfigurationError, choose
from magrounding.registry import load
from magrounding.schema import OneOf, Options
from magrounding.spec import EnvSpec

GROUNDINGS = {
    "txt2pi": "magrounding.endi.on_txt2pi:make_endi_txt2pi",
    "emma": "magrounding.endi.on_emma:make_endi_emma",
    "relread": "magrounding.endi.on_relread:make_endi_relread",
}
"""Grounding module → what makes an EnDi of it."""


@dataclass(frozen=True)
class EnDiOptions(Options):
    """Options that EnDi has with every grounding module.

    Attributes:
        regularizer: of the division: "num", "dis" or "none" (EnDi-reg).
        modelling: foresee what others do; False is EnDi-sup.
        squared: `num` as the released program has it.
    """

    regularizer: Annotated[str, OneOf(REGULARIZERS)] = "dis"
    modelling: bool = True
    squared: bool = False


class Survey(NamedTuple):
    """What an EnDi sees before it divides.

    Attributes:
        places: what can be divided.
        logits: [N, P, 2], of self and of others.
        seen: whatever the two views of the divided entities start from.
        memory: [N, …] or None.
    """

    places: Places
    logits: Tensor
    seen: Any
    memory: Tensor | None = None


class Divided(NamedTuple):
    """What an EnDi's losses go on from: its division, and `Survey.seen`."""

    division: Division
    seen: Any


class EnDi(DocumentPolicy):
    """What is the same for all grounding modules.

    Args:
        spec: of the world.
        config: options, those of the grounding module included.

    Raises:
        ConfigurationError: an unknown regulariser, a world for one agent, or one that the network is not made for.
    """

    accepts = Accepts(fields=("manual", "position", "inventory", "action_mask", "teammates"), egocentric=False)
    loss_weights: ClassVar[Mapping[str, float]] = {"modelling": 1.0, "division": 0.1}
    diagnostics = staticmethod(diagnose)

    def __init__(self, spec: EnvSpec, config: EnDiOptions) -> None:
        choose("regularizer", config.regularizer, REGULARIZERS)
        if spec.num_agents < 2:
            raise ConfigurationError("EnDi divides entities between agents: it needs two of them or more")
        super().__init__(spec)
        self.config: Any = config
        self.needs = frozenset({OTHERS}) if config.modelling else frozenset()
        self.num_agents, self.num_others = spec.num_agents, spec.num_agents - 1
        self.map = spec.grid.height, spec.grid.width

    @abstractmethod
    def survey(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, memory: Tensor | None
    ) -> Survey:
        """Look at the goal from both sides; arguments as in `respond`."""

    @abstractmethod
    def decide(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, seen: Any, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits [N, A] and values [N], given what `mask` [N, P] leaves to be seen."""

    @abstractmethod
    def foresee(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, seen: Any, mask: Tensor
    ) -> Tensor:
        """Logits [N, n − 1, A] of what each of the others does, given what `mask` [N, P] leaves to be seen."""

    def aux_outputs(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, seen: Any, mask: Tensor
    ) -> dict[str, Callable[[], Tensor]]:
        """What the grounding module has to tell beside the division; arguments as in `decide`."""
        return {}

    def respond(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        memory: Tensor | None = None,
    ) -> PolicyOutput:
        """See `DocumentPolicy.respond`.

        `aux` has MARKS (see `Division.taken`), and "guesses" [N, n − 1] int64, the most likely action of each of the
        others.
        """
        places, scores, seen, memory = self.survey(observation, text, document, memory)
        division = divide(scores, places, self._noise_at(places, observation))
        logits, value = self.decide(observation, text, document, seen, division.own)
        aux = self.aux_outputs(observation, text, document, seen, division.own)
        aux[MARKS] = lambda: division.taken(*observation["grid"].shape[1:3])
        if self.config.modelling:
            aux["guesses"] = lambda: self.foresee(observation, text, document, seen, division.others).float().argmax(-1)
        return PolicyOutput(
            mask_logits(logits.float(), observation["action_mask"]),
            value.float(),
            memory,
            aux=aux,
            seen=Divided(division, seen),
        )

    def draw_record(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Noise [*shape, H, W], "noise": one number for each cell."""
        return {"noise": draw_noise((*shape, *self.map), generator)}

    def auxiliary(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        output: PolicyOutput,
        others: Tensor | None,
    ) -> Auxiliary:
        """Losses "modelling" (L_sup) and "division" (L_reg); nothing is detached between them and the division."""
        division, seen = output.seen
        losses, metrics = {}, {"division_entropy": _entropy(division)}
        if self.config.modelling and others is not None:
            logits = self.foresee(observation, text, document, seen, division.others).float()
            losses["modelling"], metrics["modelling_accuracy"] = modelling_loss(logits, others)
        if self.config.regularizer != "none":
            losses["division"] = self._regularize(division, observation)
        return Auxiliary(losses, metrics)

    def _regularize(self, division: Division, observation: dict[str, Tensor]) -> Tensor:
        if self.config.regularizer == "num":
            return num(division, self.num_agents, squared=self.config.squared)
        height, width = observation["grid"].shape[1:3]
        return dis(division, observation["position"], observation["teammates"], height, width)

    def _noise_at(self, places: Places, observation: dict[str, Tensor]) -> Tensor | None:
        """The noise [N, P] of the cell that each place lies in."""
        noise = observation.get("noise")
        if noise is None:
            return None
        return noise.flatten(1).gather(1, places.row * noise.shape[2] + places.column)


def _entropy(division: Division) -> Tensor:
    """[N] nats: mean entropy of the division of an entity, nan where none is seen."""
    log_probabilities = F.logsigmoid(torch.stack((division.difference, -division.difference)))
    entropy = -(log_probabilities.exp() * log_probabilities).sum(0)
    entity = division.places.is_entity
    return torch.where(entity, entropy, 0.0).sum(1) / entity.sum(1)


def make_endi(spec: EnvSpec, *, grounding: str = "txt2pi", regularizer: str = "dis", **options: Any) -> Policy:
    """Make an EnDi, or, for one agent, its grounding module alone: a division takes two.

    Args:
        spec: of the world.
        grounding: the module that looks at entities: "txt2pi" (the paper's for RTFM), "emma" (the paper's for
            MESSENGER) or "relread".
        regularizer, options: `EnDiOptions` and the options of that module.

    Raises:
        ConfigurationError: an unknown module or option, or a value that cannot be.
    """
    choose("regularizer", regularizer, REGULARIZERS)
    make = load(GROUNDINGS[choose("grounding", grounding, tuple(GROUNDINGS))])
    return make(spec, regularizer=regularizer, **options)
