"""viewread: a reader for egocentric views. Words of cells are matched with the words of the mission.

The sibling of `relread` for maps that turn with the agent. No environment is built in: words, planes of the map and
other fields are those of the `EnvSpec`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, distinct_ids, join_statements
from magrounding.agents.level import ShownLevel
from magrounding.agents.modules import mlp, unroll
from magrounding.agents.places import DISPLACEMENT, Places
from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, TextEncoding
from magrounding.agents.ways import Found, Ways
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options
from magrounding.spec import LEVEL, EnvSpec, Field, Grid, Mask, Text

_MOST_VALUES = 256
"""Most values of one number of an array field: each has an embedding."""

_FORGET = 0.1
"""Share of the running mean of views that a pass with gradients replaces."""


@dataclass(frozen=True)
class ViewReadConfig(Options):
    """Options of viewread.

    Attributes:
        embedding: width of a word's embedding, and units in each direction of the GRU over the mission.
        role: width of what a word of the mission says of the cells that show it.
        symbol_hidden, features: widths of the network that sums up what a cell shows, and of its output.
        hidden: width of the view, and of the memory.
        head: width of the hidden layer of policy and value.
        remember: False: acts on each view by itself and the action before.
        places: the memory keeps a map of what the views of the episode have shown. The things on it are matched with
            the mission like those in view, and one of them, or the nearest place that was never seen, is attended to:
            the first step of the way there is known. It takes a world that shows `displacement`, or one that keeps such
            a map itself and shows it as `level`.
        centred: views lose their running mean, which in a large view that is mostly alike would be all that norms see.
    """

    embedding: Count = 24
    role: Count = 16
    symbol_hidden: Count = 48
    features: Count = 16
    hidden: Count = 128
    head: Count = 64
    remember: bool = True
    places: bool = False
    centred: bool = False


class ViewRead(Policy):
    """The reader for egocentric views.

    A cell's symbol is the tuple of its words. For a mission and a symbol, the states of the mission's words that are in
    the symbol are summed, word by word of the symbol, and multiplied with one another: a red ball is where "red" and
    "ball" both are, in parts of the mission that belong together. A small network makes features of these, only for the
    missions and symbols that occur: a cell looks its features up.

    Raises:
        ConfigurationError: an environment without an egocentric map or without `goal`, or with arrays that are no small
            integers.
    """

    defaults = ViewReadConfig()
    accepts = Accepts(fields=("goal", "action_mask"), egocentric=True)
    divisible = False
    reads = {"mission": ("goal",)}  # noqa: RUF012  the base class declares it

    def __init__(self, spec: EnvSpec, config: ViewReadConfig) -> None:
        super().__init__(spec)
        self.config = config
        grid = spec.grid
        self.grid, self.grid_shape, self.vocabulary = grid.name, grid.shape, spec.vocabulary_size
        self.places = (ShownLevel if LEVEL in spec else Places)(spec) if config.places else None
        if self.places and self.places.size and not config.remember:
            raise ConfigurationError("places is the memory's: set remember to true, or places to false")
        role, hidden = config.role, config.hidden
        planes = self.planes = max(grid.shape[2], self.places.planes if self.places else 0)
        self.words = nn.Embedding(self.vocabulary, config.embedding, padding_idx=0)
        self.reader = TextEncoder(config.embedding, config.embedding, "gru")
        self.role = nn.Linear(self.reader.width, role)
        self.place = nn.Parameter(torch.randn(math.prod(spec["goal"].shape) + 1, role) * 0.5)
        self.summary = nn.Linear(self.reader.width, role)
        self.pairs = tuple(combinations(range(planes), 2))
        self.symbols = nn.Embedding(planes * self.vocabulary, config.symbol_hidden)
        self.matches = nn.Linear((planes + len(self.pairs)) * role, config.symbol_hidden)
        self.gist = nn.Linear(role, config.symbol_hidden, bias=False)
        self.features = nn.Linear(config.symbol_hidden, config.features)
        self.view = nn.Linear(grid.height * grid.width * config.features, hidden)
        if config.centred:
            self.usual = nn.Buffer(torch.zeros(hidden))
        arrays = [each for each in spec.fields if not isinstance(each, Grid | Text | Mask)]
        if config.places:
            arrays = [each for each in arrays if each.name != DISPLACEMENT]
        self.numbers = nn.ModuleDict({each.name: _Numbers(each, hidden) for each in arrays})
        self.last_action = nn.Embedding(spec.num_actions + 1, hidden)
        # Without norms the mean of all views runs away in the first steps, and gates that are shut never open again.
        self.view_norm, self.think_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.think = nn.Linear(hidden, hidden)
        if config.remember:
            self.memory = nn.GRUCell(hidden, hidden)
        if self.places:
            related = isinstance(self.places, Places)
            self.ways = Ways(self.vocabulary, planes, config.features, role, hidden, self.places.regions, related)
        choice = nn.Linear(config.head, spec.num_actions)
        self.policy = nn.Sequential(nn.Linear(hidden, config.head), nn.ReLU(), choice)
        self.value = mlp(hidden, config.head, 1)
        with torch.no_grad():
            for embedding in (self.symbols, self.last_action):
                embedding.weight.mul_(0.3)
            self.view.weight.mul_(4)  # at first as loud as direction and last action
            choice.weight.mul_(0.01)
            choice.bias.zero_()

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Return `roles` [U, V, role] by word id, `summary` [U, role]."""
        words = join_statements(ids["goal"].long())
        hidden, mask = self.reader(self.words, words)
        spoken = mask & (words.ids > 0)
        states = (self.role(hidden) + self.place[: words.ids.shape[1]]) * spoken.unsqueeze(2)
        by_word = states.new_zeros(len(states), self.vocabulary, states.shape[2])
        by_word = by_word.scatter_add(1, words.ids.unsqueeze(2).expand_as(states), states)
        half = hidden.shape[2] // 2
        last = (words.length - 1).view(-1, 1, 1).expand(-1, 1, half)
        ends = torch.cat((hidden[:, :, :half].gather(1, last).squeeze(1), hidden[:, 0, half:]), 1)
        return {"roles": by_word, "summary": self.summary(ends)}

    def initial_memory(self, num_envs: int) -> Tensor | None:
        if not self.config.remember:
            return None
        return self.place.new_zeros(num_envs, self.config.hidden + (self.places.size if self.places else 0))

    def forward(self, batch: Batch) -> PolicyOutput:
        reading, shape = batch.texts["mission"], batch.restarts.shape
        mission, text = reading.index.flatten(), reading.encoding
        grid = batch.observation[self.grid].flatten(0, 1)
        before, found = batch.memory, None
        if self.places:
            before, known = (None, None) if before is None else before.split((self.config.hidden, self.places.size), 1)
            found = self.places.follow(batch, known)
        cells, things = self.look(grid, found, text, mission)
        if isinstance(self.places, Places) and found is not None:
            held = cells.unflatten(1, (-1, self.config.features))[:, self.places.own_place]
            words = grid.flatten(1, 2)[:, self.places.own_place].long()
            things = self.ways.locate(found, things, text["summary"], mission)
            things = self.ways.relate(found, things, words, held)
        view = self.view(cells)
        if self.config.centred:
            if torch.is_grad_enabled():
                with torch.no_grad():
                    self.usual.lerp_(view.mean(0).float(), _FORGET)
            view = view - self.usual
        for name, numbers in self.numbers.items():
            view = view + numbers(batch.observation[name].flatten(0, 1))
        view = view + self.last_action(batch.last_action.flatten() + 1)
        if found is not None:
            view = view + self.ways.around(found, things)
        top = F.relu(self.think_norm(self.think(F.relu(self.view_norm(view)))))
        memory = None
        if self.config.remember:
            views = top.unflatten(0, shape)
            before = torch.zeros_like(views[0]) if before is None else before
            memory = unroll(self.memory, views, before, batch.restarts)
            top = memory.flatten(0, 1)
        if found is not None:
            top = top + self.ways.chosen(found, things, top)
            if memory is not None and found.maps is not None:
                memory = torch.cat((memory, found.maps), 2)
        logits, value = self.policy(top).unflatten(0, shape), self.value(top).view(shape)
        return PolicyOutput.masked(logits, value, batch.observation, memory)

    def look(self, grid: Tensor, found: Found | None, text: TextEncoding, mission: Tensor) -> tuple[Tensor, Tensor]:
        """Return features of what missions [N] are about: of cells and of remembered things.

        Those of the cells of grid [N, H, W, K] are [N, H · W · features], those of the things found [M, features].
        """
        cells = grid.flatten(0, 2).long()
        cells = F.pad(cells, (0, self.planes - cells.shape[1]))
        shown, about = len(cells), mission.repeat_interleave(len(cells) // len(grid))
        if found is not None:
            symbol = F.pad(found.symbol, (0, self.planes - found.symbol.shape[1]))
            cells, about = torch.cat((cells, symbol)), torch.cat((about, mission[found.step]))
        symbols, which = self._symbols(cells)
        number = len(symbols)
        pairs, cell = distinct_ids(about * number + which, len(text["roles"]) * number)
        features = F.embedding(cell, self.features_of(pairs // number, symbols[pairs % number], text))
        return features[:shown].view(len(grid), -1), features[shown:]

    def features_of(self, mission: Tensor, symbol: Tensor, text: TextEncoding) -> Tensor:
        """Return [P, features] of missions [P] and symbols [P, K]."""
        roles = text["roles"].flatten(0, 1)
        found = [F.embedding(mission * self.vocabulary + words, roles) for words in symbol.unbind(1)]
        found += [found[i] * found[j] for i, j in self.pairs]
        plane = torch.arange(symbol.shape[1], device=symbol.device) * self.vocabulary
        hidden = self.matches(torch.cat(found, 1)) + self.symbols(symbol + plane).sum(1)
        features = F.relu(self.features(F.relu(hidden + F.embedding(mission, self.gist(text["summary"])))))
        return features * symbol.any(1, keepdim=True)  # nothing but padding adds nothing, however much of it there is

    def _symbols(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Distinct symbols [S, K] of cells [P, K], and the index of each cell [P] among them.

        They are found plane by plane, so that codes stay small, whatever tuples there could be.
        """
        symbols, which = distinct_ids(cells[:, 0], self.vocabulary)
        symbols = symbols.unsqueeze(1)
        for plane in cells.unbind(1)[1:]:
            codes, which = distinct_ids(which * self.vocabulary + plane, len(symbols) * self.vocabulary)
            last = (codes % self.vocabulary).unsqueeze(1)
            symbols = torch.cat((symbols[codes // self.vocabulary], last), 1)
        return symbols, which


class _Numbers(nn.Module):
    """Embeddings of every value of every number of an array field of small integers, summed."""

    def __init__(self, field: Field, width: int) -> None:
        super().__init__()
        values, numbers = int(field.high - field.low) + 1, math.prod(field.shape)
        if not field.dtype.startswith(("int", "uint", "bool")) or values > _MOST_VALUES:
            raise ConfigurationError(
                f"viewread knows arrays of at most {_MOST_VALUES} whole numbers, {field.name} is {field.dtype} from "
                f"{field.low} to {field.high}: choose another agent"
            )
        self.table = nn.Embedding(numbers * values, width)
        self.start = nn.Buffer(torch.arange(numbers) * values - int(field.low), persistent=False)
        with torch.no_grad():
            self.table.weight.mul_(0.3)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return [N, width] of numbers [N, …]."""
        return F.embedding_bag(numbers.flatten(1).long() + self.start, self.table.weight, mode="sum")
