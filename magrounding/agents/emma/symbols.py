"""SymbolPolicy, the base of EMMA and Game-ID: three frames of symbols and a trunk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.emma.occupied import Occupied
from magrounding.agents.policy import Accepts, PolicyOutput, TextEncoding, mask_logits
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options
from magrounding.spec import EnvSpec

SYMBOLS = 25
"""Rows of the paper's table of symbols; environments with larger ids have more."""

NO_FRAME = -1
"""Content of an empty memory."""


@dataclass(frozen=True)
class EmmaConfig(Options):
    """Options of EMMA; sizes and choices are those of the released program, `tied_heads` in preset `paper`.

    Attributes:
        width: of keys, values and symbols.
        history: frames that are looked at, the present one included.
        maps: of the 2 × 2 convolution.
        hidden: units of the layers between maps and heads.
        tied_heads: actor, critic and every further head of a network built on this one have one layer between hidden
            units in common, as the released programs build them from one tuple of layers. False: each has its own.
        tokens: positions of a sentence; the rest of a shorter one is padding.
        mask_pad: leave padding out where a sentence's tokens are summed up; the released program does not.
        embedding: width of a word, where words are learnt from scratch.
        language_model: folder of a pretrained language model, which reads in place of words learnt from scratch (the
            paper's is BERT, base, uncased); it is not trained.
        cache: folder of what that model has read; "": a folder of the user's.
        sparse: compute the convolution from occupied cells only. Either way it is the same function.
    """

    width: Count = 256
    history: Count = 3
    maps: Count = 64
    hidden: Count = 128
    tied_heads: bool = False
    tokens: Count = 36
    mask_pad: bool = False
    embedding: Count = 256
    language_model: str = ""
    cache: str = ""
    sparse: bool = True


class SymbolPolicy(DocumentPolicy):
    """Frames, a table of symbols, and a trunk over the cells.

    A cell shows its entities and the embeddings of its agents, added and divided by 1 + n (two halves for one agent).
    Frames are stacked as channels, the oldest first. An occupant of several words is as many symbols: the query of a
    cell is the mean over all of them. `constants` are the channels of a vector that is the same in all cells of an
    episode.
    """

    defaults = EmmaConfig()
    accepts = Accepts(fields=("manual", "action_mask"))

    def __init__(self, spec: EnvSpec, config: EmmaConfig, constants: int = 0) -> None:
        super().__init__(spec)
        self.config, self.num_agents, self.width = config, spec.num_agents, spec.grid.words_per_occupant
        self.grid_shape = self._shape = spec.grid.shape
        height, width, _ = self._shape
        if min(height, width) < 2:
            raise ConfigurationError(f"a 2 × 2 convolution needs a map of at least 2 × 2 cells, got {height} × {width}")
        rows = max(SYMBOLS, int(spec.grid.high) + 1)
        self.symbols = nn.Embedding(rows, config.width, padding_idx=0)
        self.trunk = nn.Conv2d(config.history * (config.width + constants), config.maps, 2)
        flat = config.maps * (height - 1) * (width - 1)
        self.actor = action_head(flat, config.hidden, spec.num_actions)
        self.critic = action_head(flat, config.hidden, 1, self.tied_layer)
        self.occupant: Tensor
        self.avatar: Tensor
        ids = torch.arange(rows)
        self.register_buffer("occupant", ~torch.isin(ids, torch.tensor(spec.grid.scenery_ids)), persistent=False)
        self.register_buffer("avatar", torch.isin(ids, torch.tensor(spec.grid.avatar_ids)), persistent=False)

    @property
    def tied_layer(self) -> nn.Linear | None:
        """Layer between hidden units, the actor's, that all heads have in common; None: each has its own."""
        return cast(nn.Linear, self.actor[2]) if self.config.tied_heads else None

    @abstractmethod
    def identify(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        """Return the representation [D, width] of entities, by queries [D, width] and their documents [D] of U."""

    def aux_outputs(self, inputs: Inputs) -> dict[str, Callable[[], Tensor]]:
        """Return `PolicyOutput.aux` of a step."""
        return {}

    def constants(self, text: TextEncoding) -> Tensor | None:
        """Return the vector [U, G] that all cells show, or None."""
        return None

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        observation, text, document = inputs
        seen, memory = self.find(observation, document, memory)
        if self.config.sparse:
            maps = self._convolve(seen, text, document)
        else:
            maps = self.trunk(self._ground(seen, text, document)).permute(0, 2, 3, 1)
        logits, value = self.decide(F.leaky_relu(maps).flatten(1))
        aux = self.aux_outputs(inputs)
        return PolicyOutput(mask_logits(logits.float(), observation["action_mask"]), value.float(), memory, aux=aux)

    def find(
        self, observation: dict[str, Tensor], document: Tensor, memory: Tensor | None = None
    ) -> tuple[Occupied, Tensor]:
        """Return the occupied cells of the present and remembered frames, and the memory after it."""
        grid = observation["grid"]
        before = self.initial_memory(len(grid)) if memory is None else memory
        frames = self.add_frame(before, grid)
        return Occupied.find(frames, self.occupant, document), frames[:, 1:]

    def show(self, seen: Occupied, text: TextEncoding) -> tuple[Tensor, Tensor]:
        """Return the shares of entities and agents of each distinct thing in a cell, both [D, width]."""
        is_avatar = self.avatar[seen.words[:, :: self.width]].repeat_interleave(self.width, 1)  # by its first word
        agents = self.symbols(seen.words.where(is_avatar, 0)).sum(1)
        words = seen.words.where(~is_avatar & self.occupant[seen.words], 0)
        queries = self.symbols(words).sum(1) / (words != 0).sum(1, keepdim=True).clamp(min=1)
        share = 1 + self.num_agents
        return self.identify(queries, text, seen.document) / share, agents / share

    def initial_memory(self, num_envs: int) -> Tensor:
        """Return [N, F − 1, H, W, K] int16, empty frames."""
        height, width, per_cell = self._shape
        shape = num_envs, self.config.history - 1, height, width, per_cell
        return torch.full(shape, NO_FRAME, dtype=torch.int16, device=self.symbols.weight.device)

    def memories(self, memory: Tensor, observation: dict[str, Tensor], restarts: Tensor) -> Tensor:
        before = []
        for grid, restart in zip(observation["grid"], restarts, strict=True):
            memory = torch.where(restart.view(-1, 1, 1, 1, 1), NO_FRAME, memory)
            before.append(memory)
            memory = self.add_frame(memory, grid)[:, 1:]
        return torch.stack(before)

    def add_frame(self, memory: Tensor, grid: Tensor) -> Tensor:
        """Return the frames [N, F, H, W, K] so far, the oldest first; at the start of an episode all are its first."""
        frame = grid.unsqueeze(1)
        return torch.cat((torch.where(memory == NO_FRAME, frame, memory), frame), 1)

    def _ground(self, seen: Occupied, text: TextEncoding, document: Tensor) -> Tensor:
        """Maps [N, C, H, W] of the cells of each frame, in grid coordinates."""
        entities, agents = (part.index_select(0, seen.which) for part in self.show(seen, text))
        cells = seen.spread(entities + agents)
        constants = self.constants(text)
        if constants is None:
            return cells
        height, width = cells.shape[2:]
        same = constants.index_select(0, document)[:, None, :, None, None].expand(
            -1, self.config.history, -1, height, width
        )
        return torch.cat((cells.unflatten(1, (self.config.history, -1)), same), 2).flatten(1, 2)

    def _convolve(self, seen: Occupied, text: TextEncoding, document: Tensor) -> Tensor:
        """Maps [N, H − 1, W − 1, M] of the trunk over those of `_ground`."""
        constants, bias = self.constants(text), cast(Tensor, self.trunk.bias).unsqueeze(0)
        if constants is not None:
            # What is the same in all cells and frames, every tap of every frame adds to every output.
            kernel = self.trunk.weight.sum((2, 3)).unflatten(1, (self.config.history, -1)).sum(1)  # [M, width + G]
            bias = F.linear(constants, kernel[:, -constants.shape[1] :], bias[0]).index_select(0, document)
        entities, agents = self.show(seen, text)
        return seen.convolve(entities + agents, self.trunk, bias)

    def decide(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [N, A] and value [N]; the two wide layers on the same features are one product."""
        wide = cast(nn.Linear, self.actor[0]), cast(nn.Linear, self.critic[0])
        weight, bias = torch.cat([layer.weight for layer in wide]), torch.cat([layer.bias for layer in wide])
        act, judge = F.linear(features, weight, bias).chunk(2, 1)
        return self.actor[1:](act), self.critic[1:](judge).squeeze(-1)


def initialize(network: nn.Module) -> None:
    """Initialise weights Xavier-uniform (Glorot and Bengio 2010), rows of padding with 0."""
    for parameter in network.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    for module in network.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx].data)


class TiedLayer(nn.Module):
    """A layer of another head: it is counted, drawn and saved there alone."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self._layer = (layer,)  # in a tuple, which registers nothing

    def forward(self, features: Tensor) -> Tensor:
        return self._layer[0](features)


def action_head(width: int, hidden: int, out: int, tied: nn.Linear | None = None) -> nn.Sequential:
    """Build EMMA's layers between flat maps and `out` numbers; `tied`: another head's layer between hidden units."""
    first = nn.Linear(width, hidden)
    between = nn.Linear(hidden, hidden) if tied is None else TiedLayer(tied)
    return nn.Sequential(first, nn.LeakyReLU(), between, nn.LeakyReLU(), nn.Linear(hidden, out))
