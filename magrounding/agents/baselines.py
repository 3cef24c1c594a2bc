"""Baselines of RTFM (Zhong et al. 2020, app. C.2, C.3): a convolutional network and a FiLM network.

Goal, document and inventory are encoded independently of one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.language import RECURRENT, TextEncoder, Words, distinct_rows, join_statements
from magrounding.agents.modules import (
    HEADS,
    ActorCritic,
    FiLM2,
    SelfAttention,
    distance_map,
    embed_cells,
    layer_widths,
    skips,
    spatial_max,
)
from magrounding.agents.policy import Accepts, PolicyOutput, TextEncoding
from magrounding.schema import Count, OneOf, Options, Sizes
from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class BaselineConfig(Options):
    """Options of the baselines.

    The paper names LSTMs without sizes, the released program has GRUs: the default is LSTMs of the program's sizes.

    Attributes:
        channels: of the layers; the skip connection is that of txt2π.
        embedding: width of a word.
        goal_hidden, inventory_hidden, document_hidden: units in each direction of the encoders.
        encoder: "lstm" or "gru".
        head: "paper" or "code", as in txt2π.
        head_width: units of the head.
    """

    channels: Sizes = (16, 32, 64, 64, 64)
    embedding: Count = 30
    goal_hidden: Count = 100
    inventory_hidden: Count = 100
    document_hidden: Count = 100
    encoder: Annotated[str, OneOf(RECURRENT)] = "lstm"
    head: Annotated[str, OneOf(HEADS)] = "paper"
    head_width: Count = 400


class _Summary(nn.Module):
    """Self-attention over the states of an encoder: one vector a text."""

    def __init__(self, width: int, hidden: int, kind: str) -> None:
        super().__init__()
        self.encoder = TextEncoder(width, hidden, kind)
        self.attention = SelfAttention(self.encoder.width)

    def forward(self, table: nn.Embedding, words: Words) -> Tensor:
        return self.attention(*self.encoder(table, words))


class Baseline(DocumentPolicy):
    """Layers over [map; positions], with the text as FiLM's γ and β of every layer or as channels of the first."""

    modulate: ClassVar[bool]
    accepts = Accepts(fields=("manual", "position", "inventory", "action_mask"), egocentric=False)

    def __init__(self, spec: EnvSpec, config: BaselineConfig) -> None:
        super().__init__(spec)
        self.config = config
        self.words = nn.Embedding(spec.vocabulary_size, config.embedding, padding_idx=0)
        self.goal = _Summary(config.embedding, config.goal_hidden, config.encoder)
        self.document = _Summary(config.embedding, config.document_hidden, config.encoder)
        self.inventory = _Summary(config.embedding, config.inventory_hidden, config.encoder)
        self.text_width = 2 * (config.goal_hidden + config.document_hidden + config.inventory_hidden)
        self.skip = skips(config.channels)
        cells = config.embedding + (0 if self.modulate else self.text_width)
        self.layers = nn.ModuleList(
            FiLM2(self.text_width, below, width, text_modulation=False)
            if self.modulate
            else nn.Conv2d(below, width, 3, padding=1)
            for below, width in layer_widths(config.channels, cells, 2)
        )
        self.head = ActorCritic(config.channels[-1], config.head_width, spec.num_actions, config.head)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Return `summary` [U, D]: goal and document of manual [U, S, L] and goal [U, G]."""
        goals = self.goal(self.words, join_statements(goal))
        return {"summary": torch.cat((goals, self.document(self.words, join_statements(manual))), 1)}

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        observation, text, document = inputs
        grid = observation["grid"]
        held, which = distinct_rows(observation["inventory"])
        inventory = self.inventory(self.words, join_statements(held)).index_select(0, which)
        words = torch.cat((text["summary"].index_select(0, document), inventory), 1)
        positions = distance_map(observation["position"], grid.shape[1], grid.shape[2])
        below = maps = embed_cells(self.words, grid)
        for i, layer in enumerate(self.layers):
            entering = maps + below if self.skip and i == len(self.layers) - 1 else maps
            features = torch.cat((entering, positions.to(entering.dtype)), 1)
            below = maps
            if self.modulate:
                maps = layer(features, words)
            elif i == 0:
                maps = F.relu(convolve_with_constants(cast(nn.Conv2d, layer), features, words))
            else:
                maps = F.relu(layer(features))
        logits, value = self.head(spatial_max(maps))
        return PolicyOutput.masked(logits, value, observation)


class Film(Baseline):
    """The FiLM baseline."""

    modulate = True
    defaults = BaselineConfig(goal_hidden=10, inventory_hidden=10)


class Conv(Baseline):
    """The convolutional baseline."""

    modulate = False
    defaults = BaselineConfig()


def convolve_with_constants(conv: nn.Conv2d, features: Tensor, constants: Tensor) -> Tensor:
    """3×3 convolution of [features; constants in every cell], [N, C, H, W] and [N, D], without copies of the constants.

    A constant channel reaches a cell through the taps of the kernel that lie on the map: a matrix product for each tap,
    and then a sum over the taps that a cell sees.
    """
    n, channels, height, width = features.shape
    maps = F.conv2d(features, conv.weight[:, :channels], conv.bias, padding=1)
    kernel = conv.weight[:, channels:].flatten(2)  # [out, D, taps]
    taps = F.linear(constants, kernel.permute(0, 2, 1).flatten(0, 1)).view(n, -1, kernel.shape[2])  # [N, out, taps]
    seen = F.unfold(features.new_ones(1, 1, height, width), 3, padding=1)[0].to(taps.dtype)  # [taps, H·W]
    return maps + (taps @ seen).view_as(maps)
