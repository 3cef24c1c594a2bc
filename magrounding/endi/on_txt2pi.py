"""EnDi on txt2π, as for multi-agent RTFM; its authors released no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.matching import Matching
from magrounding.agents.modules import among, distance_map, embed_cells
from magrounding.agents.policy import Policy, PolicyOutput
from magrounding.agents.reasoning import ReasoningPolicy, Seen
from magrounding.agents.txt2pi import Txt2Pi, Txt2PiConfig, Txt2PiGrounding, Txt2PiReader, attention_to_text
from magrounding.agents.weights import fit_weights
from magrounding.endi.agent import Decision, EnDi, EnDiOptions, Survey
from magrounding.endi.division import cells, distances, shown_entities
from magrounding.schema import Sizes
from magrounding.spec import EnvSpec

_HEADS = "policy.", "value.", "modelling."


@dataclass(frozen=True)
class EnDiTxt2PiConfig(EnDiOptions, Txt2PiConfig):
    """Options of EnDi on txt2π: `EnDiOptions`, `Txt2PiConfig`, and one more.

    `Txt2PiConfig` but for its head and `positions`: here heads are linear, and positions are seen.

    Attributes:
        goal_channels: channels of the FiLM² layers of the network that divides the goals.
        normalize_goals: normalize the features of that network (Wu & He 2018, one group). Not in the paper. Without
            it the logits of the division grow until it is certain, within 50,000 steps of imitation, that every agent
            takes everything, and the hard choice of the Gumbel softmax leaves no gradient to undo it.
    """

    goal_channels: Sizes = (16, 4)
    normalize_goals: bool = False


class _Seen(NamedTuple):
    cells: Tensor  # V0 [N, D, H, W], before any cell is hidden
    summary: Tensor  # [N, D'], text and inventory, the same for every mask
    positions: Tensor  # X_pos [N, 2, H, W]
    matching: Matching | None


class EnDiTxt2Pi(ReasoningPolicy, EnDi):
    """Two networks of FiLM² layers on the same words and text encoders, one for the division, one for the policy.

    A hidden entity is a zero vector. Cells that show an agent are never hidden, nor are walls and empty cells.
    """

    loss_weights: ClassVar[Mapping[str, float]] = {**EnDi.loss_weights, **Txt2Pi.loss_weights}
    defaults = EnDiTxt2PiConfig()
    grounding_module = Txt2Pi

    def __init__(self, spec: EnvSpec, config: EnDiTxt2PiConfig) -> None:
        super().__init__(spec, config)
        self.width = spec.grid.words_per_occupant
        self.reader = Txt2PiReader(spec, config)
        text = self.reader.text_width, self.reader.query_width
        self.goal_grounding = Txt2PiGrounding(config.goal_channels, config.embedding, 1, *text, config)
        both = 2 * config.goal_channels[-1]
        self.goal_norm = nn.GroupNorm(1, both) if config.normalize_goals else nn.Identity()
        self.divider = nn.Conv2d(both, 2, 3, padding=1)
        self.grounding = Txt2PiGrounding(config.channels, config.embedding, 2, *text, config)
        top = config.channels[-1]
        self.policy, self.value = nn.Linear(top, spec.num_actions - self.reader.tells), nn.Linear(top, 1)
        self.tell = self.make_tell_head(top)
        self.learn_reasons(config, config.embedding)
        self.modelling = nn.ModuleList(nn.Linear(top, spec.num_actions) for _ in range(self.modelled))
        words = len(self.reader.words.weight)
        self.occupant = nn.Buffer(~among(spec.grid.scenery_ids, words), persistent=False)
        self.avatar = nn.Buffer(among(spec.grid.avatar_ids, words), persistent=False)

    def begin_with(self, policy: Policy, source: str) -> None:
        weights = policy.state_dict()
        if type(policy) is self.grounding_module:
            # Random heads on learnt features err less the less they see, so the agent would learn to take nothing.
            own = {name: 0 * each if name.startswith(_HEADS) else each for name, each in self.state_dict().items()}
            weights = {**own, **{name: each for name, each in weights.items() if not name.startswith("head.")}}
        fit_weights(self, weights, source)

    def survey(self, inputs: Inputs, memory: Tensor | None) -> Survey:
        observation = inputs.observation
        grid, position = observation["grid"], observation["position"]
        height, width = grid.shape[1:3]
        entity = shown_entities(grid, self.occupant, self.avatar, self.width)
        places = cells(entity, can_hide=entity)
        summary, matching = self.reader.hear(inputs)
        seen = _Seen(embed_cells(self.reader.words, grid), summary, distance_map(position, height, width), matching)
        goals = []
        for away in distances(places, position, observation["teammates"], height, width):
            away = away.view(-1, 1, height, width)
            goals.append(self.goal_grounding(seen.cells, away, summary, inputs, matching).maps[-1])
        logits = self.divider(self.goal_norm(torch.cat(goals, 1)))
        return Survey(places, logits.flatten(2).transpose(1, 2), seen)

    def decide(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Decision:
        found = self._look(inputs, seen, mask)
        features = found.tops[-1]
        logits = self.with_tells(self.policy(features), inputs, features)
        return Decision(logits, self.value(features).squeeze(1), attention_to_text(found.weights, inputs))

    def predict_others(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Tensor:
        features = self._look(inputs, seen, mask).tops[-1]
        return torch.stack([head(features) for head in self.modelling], 1)

    def layers(self, inputs: Inputs, output: PolicyOutput) -> Seen:
        """Return those over the whole map.

        On the map of what the agent takes, taking everything would be the easiest way to find the targets.
        """
        division, seen = output.seen
        return self._look(inputs, seen, torch.ones_like(division.own))

    def _look(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Seen:
        """`Txt2PiGrounding` where only the cells in mask [N, P] are shown."""
        left = seen.cells * mask.view(-1, 1, *seen.cells.shape[2:]).to(seen.cells.dtype)
        return self.grounding(left, seen.positions, seen.summary, inputs, seen.matching, mask)
