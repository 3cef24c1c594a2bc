"""EnDi on relread: it divides the things in sight themselves, not a map of cells, and learns at relread's pace.

Things are encoded once. The division is decided from their features and distances from oneself and from the nearest of
the others; a mask then hides some. Two things stay visible, so that nothing is encoded twice: that something is there,
as on txt2π, and its relations to others in sight.

Initially it takes four entities of five. With all of them, imitation never learns to leave any; with half of them,
reinforcement alone leaves everything to others, as that predicts them best, before the first win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import ATTENTION, Auxiliary, PolicyOutput
from magrounding.agents.relread.motion import Motion
from magrounding.agents.relread.network import Relread, RelreadConfig, Things, border_distances, look, with_presence
from magrounding.agents.remapping import within
from magrounding.endi.agent import Decision, EnDi, EnDiOnPolicy, EnDiOptions, Survey
from magrounding.endi.division import Places, distances
from magrounding.schema import Count
from magrounding.spec import EnvSpec

_TAKE = 1.5
"""Initial logit of taking an entity."""


@dataclass(frozen=True)
class EnDiRelreadConfig(EnDiOptions, RelreadConfig):
    """Options of EnDi on relread: `EnDiOptions`, `RelreadConfig`, and two more.

    Attributes:
        division_hidden: width of the network that divides.
        others_hidden: width of the two layers that predict the others' actions.
    """

    division_hidden: Count = 32
    others_hidden: Count = 64


class _Seen(NamedTuple):
    things: Things
    motion: Motion | None
    features: Tensor  # [N, M, C], nothing hidden


class EnDiRelread(EnDiOnPolicy):
    """EnDi on relread: it divides things; an entity that shares its cell with an agent can be hidden like any other."""

    defaults = EnDiRelreadConfig()
    grounding_module = Relread
    loss_weights: ClassVar[Mapping[str, float]] = {**EnDi.loss_weights, **Relread.loss_weights}

    def __init__(self, spec: EnvSpec, config: EnDiRelreadConfig) -> None:
        config = config.for_world(spec)
        super().__init__(spec, config)
        self.reader = Relread(spec, config)
        self.depends_on_names = self.reader.depends_on_names
        self.word_rows = within("reader", self.reader.word_rows)
        last = nn.Linear(config.division_hidden, 2)
        with torch.no_grad():
            last.bias.add_(torch.tensor([_TAKE, 0.0]))
        self.divider = nn.Sequential(nn.Linear(config.features + 2, config.division_hidden), nn.ReLU(), last)
        self.modelling = nn.ModuleList(_ActionPredictor(config, spec.num_actions) for _ in range(self.modelled))

    @property
    def module(self) -> Relread:
        return self.reader

    def survey(self, inputs: Inputs, memory: Tensor | None) -> Survey:
        observation, text, document = inputs
        things = self.reader.find(observation)
        motion, memory = self.reader.follow(things, observation, memory)
        features = self.reader.relate(things, text, document, motion)
        entity = things.exists & ~things.is_ally
        places = Places(things.row, things.column, entity, can_hide=entity)
        away = distances(places, observation["position"], observation["teammates"], *observation["grid"].shape[1:3])
        logits = self.divider(torch.cat((features, torch.stack(away, 2).to(features.dtype)), 2))
        return Survey(places, logits, _Seen(things, motion, features), memory)

    def auxiliary(self, inputs: Inputs, output: PolicyOutput, extras: Mapping[str, Tensor]) -> Auxiliary:
        """Return EnDi's losses and, with motion, that of relread."""
        learnt, seen = super().auxiliary(inputs, output, extras), output.seen.seen
        if seen.motion is None:
            return learnt
        motion = self.reader.motion_loss(seen.things, seen.motion, inputs.text, inputs.document)
        return learnt._replace(losses={**learnt.losses, "motion": motion})

    def decide(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Decision:
        attended = {ATTENTION: lambda: self.reader.attention(seen.things, inputs.text, inputs.document, seen.motion)}
        return Decision(*self.reader.decide(inputs, seen.things, _hide(seen, mask)), attended)

    def predict_others(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Tensor:
        observation = inputs.observation
        known, mates = with_presence(seen.things, _hide(seen, mask)), observation["teammates"]
        logits = []
        for j, model in enumerate(self.modelling):
            position = mates[:, j, :2].contiguous()
            walls = border_distances(position, observation["grid"].shape[1:3], self.config.reach)
            own = torch.cat((walls, (mates[:, j, 2:3] != 0).float()), 1)
            logits.append(model(known, self.reader.place(seen.things, position), own))
        return torch.stack(logits, 1)


class _ActionPredictor(nn.Module):
    """relread's map layer from another agent's place, in small."""

    def __init__(self, config: EnDiRelreadConfig, num_actions: int) -> None:
        super().__init__()
        cells, known, hidden = (2 * config.reach + 1) ** 2, config.features + 2, config.others_hidden
        self.what = nn.Linear(known, hidden, bias=False)
        self.where = nn.Embedding(cells + 1, hidden, padding_idx=cells)
        self.near = nn.Parameter(torch.zeros(5, known, hidden))
        self.feel = nn.Linear(4 * (config.reach + 1) + 1, hidden)
        self.think = nn.Linear(hidden, hidden)
        self.policy = nn.Linear(hidden, num_actions)

    def forward(self, known: Tensor, place: Tensor, own: Tensor) -> Tensor:
        """Return logits [N, A].

        Args:
            known: [N, M, C + 2] of things, see `with_presence`.
            place: [N, M, 2], their places around the other agent, see `Relread.place`.
            own: [N, D], features of that agent itself.
        """
        hidden = look(self.feel(own), known, self.what.weight.t().contiguous(), self.where.weight, self.near, place)
        return self.policy(F.relu(self.think(F.relu(hidden))))


def _hide(seen: _Seen, mask: Tensor) -> Tensor:
    """Features [N, M, C] of the things that a mask [N, M] leaves."""
    return seen.features * mask.unsqueeze(2).to(seen.features.dtype)
