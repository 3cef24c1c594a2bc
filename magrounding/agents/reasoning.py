"""Reasoning: heads that a network learns an expert's reasons with (`capabilities.Reasons`), a hop of reading each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import attention, spatial_max
from magrounding.agents.policy import STATEMENTS, SUBGOALS, TARGETS
from magrounding.errors import ConfigurationError

_MARKS, _NAMES, _ASKS = 0, 1, 2
"""Layers of the hops: the first marks the targets, the second names them, the third asks the document about them."""


class Reasoning(nn.Module):
    """Heads beside FiLM² layers, and their losses: divergences from an even distribution over what is right.

    From the goal to the item there are several hops. Imitation alone rewards all of them or none; here each has a layer
    and a loss:

    * "target": the map of the first layer marks the cells of the targets;
    * "name": the summary of the second names, by the word table, what the manual is to be asked about: what stands
      there, or what the agent holds, where that beats a target;
    * "statement": the query of the third layer attends to the words of the statements that answer;
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
        self,
        maps: Sequence[Tensor],
        queries: Sequence[Tensor],
        words: nn.Embedding,
        inputs: Inputs,
        reasons: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """Return the losses [T, B] by name; 0 where nothing is right.

        Args:
            maps: [T · B, C, H, W] of each layer.
            queries: [T · B, D] of each layer to the document.
            words: the table that embeds the grid.
            inputs: what the network saw.
            reasons: [T, B, …] of the same observations, by the names of `agents.policy.REASONS`.
        """
        observation, text, document = inputs
        shape = reasons[TARGETS].shape[:2]
        targets, subgoals, statements = (reasons[name].flatten(0, 1) for name in (TARGETS, SUBGOALS, STATEMENTS))
        grid = observation["grid"].long()
        armed = (targets & subgoals).flatten(1).any(1, keepdim=True)
        asking = (grid * targets.unsqueeze(-1)).flatten(1) * ~armed, observation["inventory"].long() * armed
        named = torch.zeros(len(grid), words.num_embeddings, device=grid.device)
        named.scatter_(1, torch.cat(asking, 1), 1.0)[:, 0] = 0.0  # id 0: no word
        states, mask = (text[name].index_select(0, document) for name in ("states", "mask"))
        asked = attention(states, mask, queries[_ASKS].unsqueeze(1)).squeeze(1).float()
        stated = torch.bmm(text["from"].index_select(0, document).float(), statements.float().unsqueeze(2))
        losses = {
            "target": _error(self.target(maps[_MARKS]).flatten(1).float().log_softmax(1), targets.flatten(1)),
            "name": _error((self.name(spatial_max(maps[_NAMES])) @ words.weight.T).float().log_softmax(1), named),
            "statement": _error(asked.clamp(min=1e-6).log(), stated.squeeze(2)),
            "subgoal": _error(self.subgoal(maps[-1]).flatten(1).float().log_softmax(1), subgoals.flatten(1)),
        }
        return {name: loss.unflatten(0, shape) for name, loss in losses.items()}


def _error(log_pi: Tensor, right: Tensor) -> Tensor:
    """Kullback-Leibler divergence [N] of log-probabilities [N, K] from an even choice of the right entries [N, K]."""
    right = right.float()
    count = right.sum(1).clamp(min=1)
    return -(right * log_pi).sum(1) / count - count.log()
