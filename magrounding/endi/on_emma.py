"""EnDi on EMMA, as for multi-agent MESSENGER.

The division attends to the sentences anew, with queries that include an entity's offset from oneself and from the
nearest of the others. One mask serves all frames: what moves leaves its traces on cells that are empty now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.emma.network import Emma, EmmaConfig, Occupied, action_head, initialize
from magrounding.agents.policy import ATTENTION, TextEncoding
from magrounding.endi.agent import Decision, EnDiOnPolicy, EnDiOptions, Survey
from magrounding.endi.division import cells, shown_entities
from magrounding.schema import OneOf
from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class EnDiEmmaConfig(EnDiOptions, EmmaConfig):
    """Options of EnDi on EMMA: `EnDiOptions`, `EmmaConfig`, and one more.

    Attributes:
        offset_table: "separate" tables for symbols, rows and columns, or one that is "shared", as in the released
            program, where ids of all three collide.
    """

    offset_table: Annotated[str, OneOf(("separate", "shared"))] = "separate"


class OffsetQueries(nn.Module):
    """Queries of the division: the mean of an entity's symbols and of its offsets from an agent.

    Offsets are id − size, from 1 − size to size − 1, for a map of that size; `shared`: one table for all ids.
    """

    def __init__(self, symbols: int, size: int, width: int, *, shared: bool) -> None:
        super().__init__()
        offsets = 2 * size
        rows = [max(symbols + 2, offsets)] if shared else [symbols, offsets, offsets]
        self.tables = nn.ModuleList(nn.Embedding(row, width, padding_idx=0) for row in rows)

    def forward(self, words: Tensor, offsets: Tensor) -> Tensor:
        """Return [D, width] of words [D, K] ids, 0 for no entity, and offsets [D, 2] ids; zeros without any entity."""
        symbols, rows, columns = self.tables if len(self.tables) > 1 else [self.tables[0]] * 3
        asked = symbols(words).sum(1) + rows(offsets[:, 0]) + columns(offsets[:, 1])
        count = (words != 0).sum(1, keepdim=True)
        return asked * (count > 0) / (count + 2)


class _Seen(NamedTuple):
    frames: Occupied
    entities: Tensor  # [D, C], what the entities of each distinct thing add to a cell, nothing hidden
    agents: Tensor  # [D, C], likewise its agents


class EnDiEmma(EnDiOnPolicy):
    """EMMA with a division of its cells, and a second trunk that predicts the others.

    Empty cells add nothing to the maps of the division; offsets are those from where agents are now, in older frames
    too.
    """

    defaults = EnDiEmmaConfig()
    grounding_module = Emma

    def __init__(self, spec: EnvSpec, config: EnDiEmmaConfig) -> None:
        super().__init__(spec, config)
        self.emma = Emma(spec, config)
        self.grid_shape = self.emma.grid_shape
        symbols = self.emma.symbols.num_embeddings
        self.size = max(self.map)
        self.queries = OffsetQueries(symbols, self.size, config.width, shared=config.offset_table == "shared")
        # One convolution of both views would be the sum of these two.
        self.divide_self = nn.Conv2d(config.history * config.width, 2, 3)
        self.divide_others = nn.Conv2d(config.history * config.width, 2, 3, bias=False)
        self.modelling = nn.ModuleList()
        self.foresight: nn.Conv2d | None = None
        if config.modelling:
            self.foresight = nn.Conv2d(config.history * config.width, config.maps, 2)
            flat = config.maps * (self.map[0] - 1) * (self.map[1] - 1)
            head = flat, config.hidden, spec.num_actions, self.emma.tied_layer
            self.modelling.extend(action_head(*head) for _ in range(self.modelled))
        initialize(self)

    @property
    def module(self) -> Emma:
        return self.emma

    def survey(self, inputs: Inputs, memory: Tensor | None) -> Survey:
        observation, text, document = inputs
        emma, grid, position = self.emma, observation["grid"], observation["position"]
        if memory is None:
            memory = emma.initial_memory(len(grid)).to(grid.device)
        seen, after = emma.find(observation, document, memory)
        frames = emma.add_frame(memory, grid)
        nearest = _nearest(position, observation["teammates"])
        logits = self._view(frames, position, text, document, self.divide_self)
        logits = logits + self._view(frames, nearest, text, document, self.divide_others)
        is_entity = shown_entities(grid, emma.occupant, emma.avatar, emma.width)
        places = cells(is_entity, can_hide=torch.ones_like(is_entity))
        return Survey(places, logits.flatten(1, 2), _Seen(seen, *emma.show(seen, text)), after)

    def decide(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Decision:
        attended = {ATTENTION: lambda: self.emma.attention(inputs)}
        return Decision(*self.emma.decide(self._look(seen, mask, self.emma.trunk)), attended)

    def predict_others(self, inputs: Inputs, seen: _Seen, mask: Tensor) -> Tensor:
        assert self.foresight is not None
        features = self._look(seen, mask, self.foresight)
        return torch.stack([head(features) for head in self.modelling], 1)

    def _look(self, seen: _Seen, mask: Tensor, trunk: nn.Conv2d) -> Tensor:
        """Features [N, …] of the entities that a mask [N, P] leaves, and of all agents."""
        shown = mask.flatten().index_select(0, seen.frames.cells())
        bias = trunk.bias
        assert bias is not None
        maps = seen.frames.convolve(seen.agents, trunk, bias.unsqueeze(0))
        maps = maps + seen.frames.convolve(seen.entities, trunk, torch.zeros_like(bias).unsqueeze(0), shown)
        return F.leaky_relu(maps).flatten(1)

    def _view(self, frames: Tensor, agent: Tensor, text: TextEncoding, document: Tensor, conv: nn.Conv2d) -> Tensor:
        """Logits [N, H, W, 2] of a convolution over the sentences that entities attend to from an agent's place.

        Entities are those of frames [N, F, H, W, K]; `agent` [N, 2] is out of the map where there is none.
        """
        _, history, height, width, per_cell = frames.shape
        emma, symbols = self.emma, self.emma.symbols.num_embeddings
        rows = torch.arange(height, device=frames.device).view(-1, 1) - agent[:, 0].view(-1, 1, 1)
        columns = torch.arange(width, device=frames.device) - agent[:, 1].view(-1, 1, 1)
        offsets = torch.stack(torch.broadcast_tensors(rows, columns), 3) + self.size
        offsets = offsets.clamp(1, 2 * self.size - 1)[:, None].expand(-1, history, -1, -1, -1)
        # Offsets are more ids of a cell, from behind the symbols, so cells that ask the same are looked at once.
        asking = F.pad(torch.cat((frames, (offsets + symbols).to(frames.dtype)), 4), (0, 0, 1, 1, 1, 1))
        is_entity = F.pad(emma.occupant & ~emma.avatar, (0, 2 * self.size))
        seen = Occupied.find(asking, is_entity, document)
        words, offsets = seen.words[:, :per_cell], seen.words[:, per_cell:] - symbols
        queries = self.queries(words.where(is_entity[words], 0), offsets)
        bias = queries.new_zeros(1, 2) if conv.bias is None else conv.bias.unsqueeze(0)
        return seen.convolve(emma.identify(queries, text, seen.document), conv, bias)


def _nearest(position: Tensor, teammates: Tensor) -> Tensor:
    """Row and column [N, 2] of the nearest teammate alive, the first of equals; far out where none is."""
    mates = teammates[:, :, :2].long()
    far = 2**15 // 2
    distance = (mates - position.long().unsqueeze(1)).abs().sum(2)
    distance = torch.where(mates[:, :, 0] >= 0, distance, far)
    count = distance.shape[1]
    first = (distance * count + torch.arange(count, device=distance.device)).argmin(1)
    chosen = mates.gather(1, first.view(-1, 1, 1).expand(-1, 1, 2)).squeeze(1)
    return torch.where((distance < far).any(1, keepdim=True), chosen, -far)
