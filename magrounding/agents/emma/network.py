"""EMMA: symbols that share no word with a manual attend to its sentences (Hanjie, Zhong, Narasimhan 2021).

Also its ablation Game-ID, which has the symbols of enemy, message and goal instead of a text.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy, Inputs, contrast_of
from magrounding.agents.language import WordStates, distinct_rows
from magrounding.agents.modules import SelfAttention, among, masked_softmax
from magrounding.agents.policy import ATTENTION, Accepts, PolicyOutput, TextEncoding, shares
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.agents.transfer import download
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options
from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class Occupied:
    """O occupied cells of F frames of N maps, and the D distinct things that they show."""

    words: Tensor  # [D, K] int64 ids of all that a cell shows
    document: Tensor  # [D] int64, which document its observation reads
    which: Tensor  # [O] int64, which of the D each cell shows
    place: Tensor  # [O] int64, index of the cell and its frame among [N, F, H, W]
    shape: tuple[int, int, int, int]  # (N, F, H, W)

    @classmethod
    def find(cls, frames: Tensor, occupant: Tensor, document: Tensor) -> Occupied:
        """Find the occupied cells of frames [N, F, H, W, K] of documents [N], those with `occupant` [V] bool ids."""
        n, history, height, width, per_cell = frames.shape
        cells = frames.reshape(-1, per_cell)
        occupied = occupant.index_select(0, cells.flatten().int()).view(cells.shape).any(1)
        place = occupied.nonzero().squeeze(1)
        shown = cells.index_select(0, place).long()
        read = document.index_select(0, place // (height * width * history))
        which, count = read, 0
        written = download({"": shown.any(0)})[""].tolist()
        for word, any_word in zip(shown.t(), [True, *written[1:]], strict=True):
            if any_word:  # several sorts of numbers take a tenth of the time of one sort of rows
                distinct, which = torch.unique(which * len(occupant) + word, return_inverse=True)
                count = len(distinct)
        # Of cells that show the same, any may lend its words: they are the same.
        first = which.new_zeros(count).index_copy_(0, which, torch.arange(len(which), device=which.device))
        shape = (n, history, height, width)
        return cls(shown.index_select(0, first), read.index_select(0, first), which, place, shape)

    def cells(self) -> Tensor:
        """Return [O], the index of each cell among [N, H, W], whatever its frame."""
        _, history, height, width = self.shape
        area = height * width
        return self.place // (history * area) * area + self.place % area

    def convolve(self, features: Tensor, conv: nn.Conv2d, bias: Tensor, factor: Tensor | None = None) -> Tensor:
        """Convolve maps (stride 1, no padding) that are 0 where no cell is occupied, to [N, H', W', M], channels last.

        The product of a thing's features with each tap of the kernel, for each frame, is one product of matrices; every
        cell that shows it adds that to the outputs around.

        Args:
            features: [D, C] of each distinct thing.
            conv: in_channels are those of F frames of at least C channels, of which the first C are these.
            bias: [N, M] or [1, M], in place of the convolution's own.
            factor: [O], of each occupied cell.
        """
        n, history, height, width = self.shape
        (tall, wide), maps = conv.kernel_size, conv.out_channels
        rows, columns, taps = height - tall + 1, width - wide + 1, tall * wide
        kernel = conv.weight.view(maps, history, -1, taps)[:, :, : features.shape[1]]  # [M, F, C, taps]
        given = (features @ kernel.permute(2, 1, 3, 0).flatten(1)).view(-1, maps)  # [D · F · taps, M]
        tap = torch.arange(taps, device=features.device)
        cell, frame = self.cells(), self.place // (height * width) % history
        row = (cell // width % height).unsqueeze(1) - tap // wide  # [O, taps], of the output
        column = (cell % width).unsqueeze(1) - tap % wide
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        target = ((cell // (height * width)).unsqueeze(1) * rows + row) * columns + column
        source = (self.which * history + frame).unsqueeze(1) * taps + tap
        out = bias.to(given.dtype)[:, None].expand(n, rows * columns, maps).flatten(0, 1)
        kept = inside.flatten().nonzero().squeeze(1)
        given = given.index_select(0, source.flatten().index_select(0, kept))
        if factor is not None:
            given = given * factor.index_select(0, kept // taps).unsqueeze(1).to(given.dtype)
        out = out.index_add(0, target.flatten().index_select(0, kept), given)
        return out.view(n, rows, columns, maps)


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
        self.occupant = nn.Buffer(~among(spec.grid.scenery_ids, rows), persistent=False)
        self.avatar = nn.Buffer(among(spec.grid.avatar_ids, rows), persistent=False)

    @property
    def tied_layer(self) -> nn.Linear | None:
        """Layer between hidden units, the actor's, that all heads have in common; None: each has its own."""
        return cast(nn.Linear, self.actor[2]) if self.config.tied_heads else None

    @abstractmethod
    def identify(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        """Return the representation [D, width] of entities, by queries [D, width] and their documents [D] of U."""

    def constants(self, text: TextEncoding) -> Tensor | None:
        """Return the vector [U, G] that all cells show, or None."""
        return None

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        observation, text, document = inputs
        seen, memory = self.find(observation, document, memory)
        logits, value = self.decide(F.leaky_relu(self._convolve(seen, text, document)).flatten(1))
        return PolicyOutput.masked(logits, value, observation, memory)

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
        shape = num_envs, self.config.history - 1, *self._shape
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

    def _convolve(self, seen: Occupied, text: TextEncoding, document: Tensor) -> Tensor:
        """Maps [N, H − 1, W − 1, M] of the trunk over what the cells show, computed from the occupied ones."""
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


class Emma(SymbolPolicy):
    """The EMMA policy: entities are represented by the sentences that their symbols attend to."""

    def __init__(self, spec: EnvSpec, config: EmmaConfig) -> None:
        super().__init__(spec, config)
        if config.language_model:
            reader = PretrainedStates(config.language_model, spec.words, config.tokens, config.cache)
        else:
            reader = WordStates(spec.vocabulary_size, config.embedding, config.tokens)
        self.key_attention, self.value_attention = SelfAttention(reader.width), SelfAttention(reader.width)
        self.key, self.value = nn.Linear(reader.width, config.width), nn.Linear(reader.width, config.width)
        initialize(self)
        self.reader = reader  # which knows best how its words begin

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Return `key`, `value` [U, S, width] of each sentence of manual [U, S, L], and `spoken` [U, S]: it has words.

        The goal is ignored: MESSENGER has none that changes.
        """
        states, mask = (part.flatten(0, 1) for part in self.reader(manual))  # [U · S, T, …]
        if not self.config.mask_pad:
            mask = torch.ones_like(mask)
        # The weights of a sentence's tokens add up to 1: a linear map of their sum is the sum of their linear maps.
        key, value = self.key(self.key_attention(states, mask)), self.value(self.value_attention(states, mask))
        sentences = manual.shape[:2]
        return {"key": key.unflatten(0, sentences), "value": value.unflatten(0, sentences), "spoken": manual.any(2)}

    def identify(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        """Return x = (1 / S) Σ_j a_j v_j; 0 where a query is 0."""
        value, spoken = (text[name].index_select(0, document) for name in ("value", "spoken"))
        weights = self._attend(queries, text, document)
        read = torch.bmm(weights.unsqueeze(1), value.to(weights.dtype)).squeeze(1)
        return read / spoken.sum(1, keepdim=True).clamp(min=1)

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        return super().respond(inputs, memory)._replace(aux={ATTENTION: lambda: self.attention(inputs)})

    def attention(self, inputs: Inputs) -> Tensor:
        """Return ATTENTION [N, S], the average over the entities in sight."""
        observation, text, document = inputs
        board, queries, which = self._asking(observation["grid"])
        weights = self._attend(queries.index_select(0, which), text, document.index_select(0, board))
        return shares(weights.new_zeros(len(document), weights.shape[1]).index_add(0, board, weights))

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        board, queries, which = self._asking(observation["grid"])
        fits = torch.matmul(text["key"], self._scaled(queries).t())  # [U, S, E]
        return contrast_of(fits, text["spoken"], board, which)

    def _asking(self, grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boards [E] of the entities of grid [N, H, W, K], distinct queries [D, width], and each entity's query [E]."""
        occupants = grid.flatten(1, 2).unflatten(2, (-1, self.width)).flatten(1, 2).long()  # [N, P, W]
        is_entity = self.occupant[occupants[:, :, 0]] & ~self.avatar[occupants[:, :, 0]]
        entities, which = distinct_rows(occupants[is_entity])
        queries = self.symbols(entities).sum(1) / (entities != 0).sum(1, keepdim=True)
        return is_entity.nonzero()[:, 0], queries, which

    def _attend(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        """Attention [D, S] to the sentences of documents [D]; zeros where a query is 0."""
        key, spoken = (text[name].index_select(0, document) for name in ("key", "spoken"))
        weights = masked_softmax(torch.bmm(key, self._scaled(queries).unsqueeze(2)).squeeze(2), spoken)
        return weights * queries.any(1, keepdim=True)

    def _scaled(self, queries: Tensor) -> Tensor:
        return queries / math.sqrt(self.config.width)


class GameId(SymbolPolicy):
    """The ablation Game-ID: embeddings of enemy, message and goal (an environment's `game_id`) instead of a text.

    Together they are projected to a vector that all cells of all frames show beside their symbols.
    """

    def __init__(self, spec: EnvSpec, config: EmmaConfig) -> None:
        super().__init__(spec, config, constants=config.width)
        lines, ids = spec["manual"].shape
        if lines != 1:
            raise ConfigurationError(f"Game-ID takes symbols, not {lines} sentences: set game_id of the environment")
        self.ids = nn.Embedding(self.symbols.num_embeddings, config.width, padding_idx=0)
        self.project = nn.Linear(ids * config.width, config.width)
        initialize(self)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Return `symbols` [U, G] of manual [U, 1, 3]."""
        return {"symbols": self.project(self.ids(manual[:, 0].int()).flatten(1))}

    def identify(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        return queries

    def constants(self, text: TextEncoding) -> Tensor:
        return text["symbols"]

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        """Return 0, as there is no text to ground."""
        return text["symbols"].new_zeros(())
