"""SIR's three action heads: a fixed set of actions, choices of text, directions in a panorama (SILG, sec. 3).

Each scores the A actions of N observations from H [N, width], V_last [N, C, H, W], the observation and encoded texts;
masking is up to the caller.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, join_statements
from magrounding.agents.modules import DocumentAttention
from magrounding.agents.policy import TextEncoding
from magrounding.spec import CHOICES, COLUMNS, Directions, EnvSpec, TextChoices

_STATES, _MASK = "choice_states", "choice_mask"


class FixedHead(nn.Module):
    """Y = W H + b: RTFM, MESSENGER, NetHack."""

    def __init__(self, width: int, num_actions: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, num_actions)

    def forward(self, hidden: Tensor, maps: Tensor, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        return self.score(hidden)


class ChoiceHead(nn.Module):
    """Y_j = w · attend(W G_j, H) + b, with G_j the BiLSTM states of choice j: ALFWorld."""

    def __init__(self, embedding: int, hidden: int, width: int) -> None:
        super().__init__()
        self.encoder = TextEncoder(embedding, hidden)
        self.project = nn.Linear(2 * hidden, width)
        self.score = nn.Linear(width, 1)

    def encode(self, ids: Tensor, words: nn.Embedding) -> TextEncoding:
        """Return states [U, L', width] and mask [U, L'] of choices [U, L]."""
        states, mask = self.encoder(words, join_statements(ids))
        return {_STATES: self.project(states), _MASK: mask}

    def forward(self, hidden: Tensor, maps: Tensor, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        mask = observation["action_mask"].bool()  # of thousands of rows most are empty
        offered = observation[CHOICES][mask]  # [P], which of the encoded choices each is
        ask = DocumentAttention(text[_STATES], text[_MASK], offered)
        scores = self.score(ask(hidden[mask.nonzero()[:, 0]])).squeeze(1)
        return scores.new_zeros(mask.shape).masked_scatter(mask, scores)


class PanoramaHead(nn.Module):
    """Y_j = v_j · W H, with v_j the maximum of V_last over the column in direction j: Touchdown.

    The paper has the column of U there; the released program has that of the last map, which has read the text. The
    action to stop, which the paper lacks, is w · H + b.
    """

    def __init__(self, width: int, channels: int, stop: bool) -> None:
        super().__init__()
        self.project = nn.Linear(width, channels)
        self.stop = nn.Linear(width, 1) if stop else None

    def forward(self, hidden: Tensor, maps: Tensor, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        columns = observation[COLUMNS].long().clamp(min=0)  # [N, A]; no direction may be −1, and is masked
        shown = maps.amax(2)  # [N, C, W]
        towards = shown.gather(2, columns.unsqueeze(1).expand(-1, shown.shape[1], -1))
        scores = torch.bmm(self.project(hidden).unsqueeze(1), towards).squeeze(1)
        return scores if self.stop is None else torch.cat((scores[:, :-1], self.stop(hidden)), 1)


def make_action_head(
    spec: EnvSpec, embedding: int, hidden: int, width: int, channels: int
) -> FixedHead | ChoiceHead | PanoramaHead:
    """Build the head for an environment's kind of actions; `channels` are V_last's, other sizes as of the heads."""
    if isinstance(spec.actions, TextChoices):
        return ChoiceHead(embedding, hidden, width)
    if isinstance(spec.actions, Directions):
        return PanoramaHead(width, channels, spec.actions.stop)
    return FixedHead(width, spec.num_actions)
