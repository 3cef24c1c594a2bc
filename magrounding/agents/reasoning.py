"""Reasons: FiLM² layers that may learn, beside an expert's moves, why it makes them; and that score tells.

txt2π, its baselines, EnDi on it and SIR with such layers are made of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.matching import MATCHES, NAMES, Matching
from magrounding.agents.policy import REASONS, STATEMENTS, SUBGOALS, TARGETS, Auxiliary, PolicyOutput, TextEncoding
from magrounding.agents.telling import TellHead
from magrounding.errors import ConfigurationError
from magrounding.schema import OneOf, Options

_MARKS, _NAMES, _ASKS = 0, 1, 2
"""Layers of the hops: the first marks the targets, the second names them, the third asks the document about them."""


class Seen(NamedTuple):
    """What the FiLM² layers found on N maps.

    Attributes:
        maps: V [N, C, H, W] of every layer.
        tops: s [N, C], their maxima over cells.
        weights: [N, L] that each layer gave to the words of the document; none without visual attention.
        matching: of the option `match`.
    """

    maps: list[Tensor]
    tops: list[Tensor]
    weights: list[Tensor]
    matching: Matching | None


class Reasoning(nn.Module):
    """Heads beside FiLM² layers, and their losses: divergences from an even distribution over what is right.

    From the goal to the item there are several hops; imitation rewards all or none, here each has a layer and a loss:

    * "target": the map of the first layer marks the cells of the targets;
    * "name": the summary of the second names, by the word table, what the manual is to be asked about: what stands
      there, or what the agent holds, where that beats a target;
    * "statement": the query of the third layer attends to the words of the statements that answer, to their names
      where names are matched;
    * "asked", where names are matched: the goal's query attends to the names of what stands there;
    * "subgoal": the map of the last layer marks the cells of what is to be reached next.

    Args:
        channels: of the layers, four or more.
        embedding: width of a word.
    """

    def __init__(self, channels: Sequence[int], embedding: int) -> None:
        super().__init__()
        if len(channels) <= _ASKS + 1:
            raise ConfigurationError(f"reasons need four layers of channels or more, got {len(channels)}")
        self.target = nn.Conv2d(channels[_MARKS], 1, 1)
        self.name = nn.Linear(channels[_NAMES], embedding)
        self.subgoal = nn.Conv2d(channels[-1], 1, 1)

    def losses(
        self, seen: Seen, words: nn.Embedding, inputs: Inputs, reasons: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return the losses [N] by name; 0 where nothing is right.

        Args:
            seen: of N observations.
            words: the table that embeds the grid.
            inputs: what the network saw.
            reasons: [N, …] of the same observations, by the names of `agents.policy.REASONS`.
        """
        observation, text, document = inputs
        targets, subgoals, statements = (reasons[name] for name in (TARGETS, SUBGOALS, STATEMENTS))
        grid = observation["grid"].long()
        armed = (targets & subgoals).flatten(1).any(1, keepdim=True)
        asking = (grid * targets.unsqueeze(-1)).flatten(1) * ~armed, observation["inventory"].long() * armed
        named = torch.zeros(len(grid), words.num_embeddings, device=grid.device)
        named.scatter_(1, torch.cat(asking, 1), 1.0)[:, 0] = 0.0  # id 0: no word
        stated = torch.bmm(text["from"].index_select(0, document).float(), statements.float().unsqueeze(2)).squeeze(2)
        if seen.matching is not None:
            named[:, seen.matching.ranks > 0] = 0.0  # a map tells names apart
            stated = stated * (seen.matching.names > 0)
        losses = {
            "target": _error(self.target(seen.maps[_MARKS]).flatten(1).float().log_softmax(1), targets.flatten(1)),
            "name": _error((self.name(seen.tops[_NAMES]) @ words.weight.T).float().log_softmax(1), named),
            "statement": _error(seen.weights[_ASKS].float().clamp(min=1e-6).log(), stated),
            "subgoal": _error(self.subgoal(seen.maps[-1]).flatten(1).float().log_softmax(1), subgoals.flatten(1)),
        }
        if seen.matching is not None:
            goals = text["asked"].index_select(0, document).float()
            losses["asked"] = _error(goals.clamp(min=1e-6).log(), seen.matching.named_in(targets))
        return losses


def _error(log_pi: Tensor, right: Tensor) -> Tensor:
    """Kullback-Leibler divergence [N] of log-probabilities [N, K] from an even choice of the right entries [N, K]."""
    right = right.float()
    count = right.sum(1).clamp(min=1)
    return -(right * log_pi).sum(1) / count - count.log()


@dataclass(frozen=True)
class ReasoningOptions(Options):
    """Options of a policy of FiLM² layers; none is of the papers.

    Attributes:
        reasons: learn an expert's reasons beside its moves (`Reasoning`), where an expert teaches that has some.
        names: "vectors": each name (`EnvSpec.names`) has one of its own (paper). "shared": all have the same, so that a
            name is known only by where else it stands, and words never seen read as well as others, given `match`.
            "dealt": vectors are random and fixed, and in training each manual's names come from a pool of hundreds.
        match: one more map beside each layer's input and one for the goal, and a number for what is held: how well the
            words attended to fit ("none", paper: no maps). Names fit that are "equal", or words by a "learnt" product.
    """

    reasons: bool = False
    names: Annotated[str, OneOf(NAMES)] = "vectors"
    match: Annotated[str, OneOf(MATCHES)] = "none"


class ReasoningPolicy(DocumentPolicy):
    """A policy whose FiLM² layers may learn an expert's reasons.

    Attributes:
        reader: whose table `words` embeds the grid.
    """

    loss_weights = MappingProxyType({"target": 0.5, "name": 0.5, "statement": 0.2, "asked": 0.2, "subgoal": 0.5})
    reader: Any
    reasoning: Reasoning | None
    tell: TellHead | None

    def learn_reasons(self, config: Any, embedding: int) -> None:
        """Set what `ReasoningOptions` decide; `embedding` as of `Reasoning`."""
        self.depends_on_names, self.dealer = config.names != "shared", self.reader.dealer
        self.reasoning = Reasoning(config.channels, embedding) if config.reasons else None
        if config.reasons:
            self.needs |= REASONS

    def make_tell_head(self, top: int) -> TellHead | None:
        """Build what scores tells by `top` features of a map, where there are some."""
        return TellHead(self.reader.query_width + 1, top) if self.reader.tells else None

    def with_tells(self, logits: Tensor, inputs: Inputs, top: Tensor) -> Tensor:
        """Return logits [N, A] of moves and tells, of those of moves and features [N, C] of the map."""
        if self.tell is None:
            return logits
        return torch.cat((logits, self.tell(self.reader.statements(inputs), top)), 1)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        return self.reader(manual, goal)

    def layers(self, inputs: Inputs, output: PolicyOutput) -> Seen:
        """Return the layers that learn reasons."""
        return output.seen

    def auxiliary(self, inputs: Inputs, output: PolicyOutput, extras: Mapping[str, Tensor]) -> Auxiliary:
        learnt = super().auxiliary(inputs, output, extras)
        if self.reasoning is None or not extras.keys() >= REASONS:
            return learnt
        reasons = self.reasoning.losses(self.layers(inputs, output), self.reader.words, inputs, extras)
        return learnt._replace(losses={**learnt.losses, **reasons})
