"""WordReader: a small network that reads what our worlds show, for other people's learners.

Word ids are names, never magnitudes: they are compared with one another and looked up in a table. What a text says of a
thing is found by the words of the thing that stand in a statement:

1. A thing is an occupant of the map, what the agent holds, or a teammate. Its words attend to the statements that
   contain them (or, where a world shows symbols, to those whose words are like them: that is learned).
2. Two things are related as far as they attend to the same statements ("blessed beat poison"); a thing is part of the
   goal as far as its statements share words with it ("wolf are star alliance", "defeat the star alliance").
3. Each thing sums up its relations to all others in a few numbers, which are put on a map around the agent; one linear
   layer looks at that map.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from magrounding.errors import ConfigurationError
from magrounding.extensions.clients.tensors import Layout, unflatten
from magrounding.spec import EnvSpec, Grid, Text

_HELD, _TEAMMATES = "inventory", "teammates"


class WordReader(nn.Module):
    """Network that reads observations [N, …] of one agent into [N, width].

    Args:
        spec: what the world shows: `mg.ENVS[id].describe(**options)`, or `env.spec` of `mg.make`.
        shown: the observation as the learner gets it: its Dict space or, where `for_tensors(env, flatten=True)` has
            flattened it, the `layout` of that. What is in it and in `spec` is read, anything else is left out.
        width: of what comes out, and of the hidden layer before it.
        word: width of a word's embedding.
        features: numbers that each thing puts on the map.
        things: occupied places of the map to look at; 0: as many as there are, which `torch.vmap` cannot wait for.

    Raises:
        ConfigurationError: an observation that is no dict, or without the map of `spec` or any text.
    """

    def __init__(
        self,
        spec: EnvSpec,
        shown: spaces.Space | Layout,
        width: int = 128,
        word: int = 16,
        features: int = 16,
        things: int = 0,
    ) -> None:
        super().__init__()
        self.most = things
        names = tuple(shown) if isinstance(shown, spaces.Dict | Mapping) else ()
        if spec.grid.name not in names:
            raise ConfigurationError(
                f"a WordReader reads dicts with {spec.grid.name!r} in them, or their layout, got {shown}"
            )
        self.layout = None if isinstance(shown, spaces.Space) else dict(shown)
        fields = [field for field in spec.fields if field.name in names]
        self.width, self.grid = width, spec.grid
        self.manuals = [f.name for f in fields if isinstance(f, Text) and len(f.shape) == 2]
        self.sentences = [f.name for f in fields if isinstance(f, Text) and len(f.shape) == 1]
        if not self.manuals + self.sentences:
            raise ConfigurationError(f"a WordReader reads texts, and there is none among {', '.join(names)}")
        self.has_position = any(f.name == "position" for f in fields) and not self.grid.egocentric
        self.words_of = [f.name for f in fields if f.name in (_HELD, _TEAMMATES)]
        plain = [f for f in fields if not isinstance(f, Grid | Text) and f.name not in self.words_of]
        self.ranges = {f.name: (float(f.low), float(f.high - f.low)) for f in plain}
        is_thing = torch.ones(spec.vocabulary_size, dtype=torch.bool)
        is_thing[[*self.grid.scenery_ids, *self.grid.avatar_ids]] = False
        self.is_thing: Tensor
        self.register_buffer("is_thing", is_thing, persistent=False)

        per_thing = self.grid.words_per_occupant
        self.shared_width = per_thing * 2 * len(self.sentences)
        known = per_thing * (2 * word + 1) + self.shared_width + 3
        self.embedding = nn.Embedding(spec.vocabulary_size, word)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.weight = nn.Embedding(spec.vocabulary_size, 1)  # of a word in what two texts share: function words fade
        nn.init.zeros_(self.weight.weight)
        self.like, self.sharpness = nn.Linear(word, word), nn.Parameter(torch.tensor(6.0))
        self.pair = nn.Sequential(nn.Linear(per_thing**2 + self.shared_width + 3 + 3, 24), nn.ReLU(), nn.Linear(24, 24))
        self.sum_up = nn.Sequential(nn.Linear(known + 24, 64), nn.ReLU(), nn.Linear(64, features))
        height, across = self.grid.height, self.grid.width
        self.map_shape = (2 * height - 1, 2 * across - 1) if self.has_position else (height, across)
        numbers = sum(math.prod(f.shape) for f in plain)
        self.look = nn.Linear(math.prod(self.map_shape) * features, width)
        self.feel = nn.Linear(numbers + features, width)
        self.out = nn.Linear(width, width)

    def forward(self, seen: Mapping[str, Tensor] | Tensor) -> Tensor:
        """Return [N, width] of observations by name, [N, …] of any dtype; [..., width] of flat ones [..., D]."""
        if isinstance(seen, Tensor):
            if self.layout is None:
                raise ConfigurationError("this WordReader reads dicts: give it the layout of flat observations")
            flat = seen.reshape(-1, seen.shape[-1])
            return self(unflatten(flat, self.layout)).view(*seen.shape[:-1], self.width)
        words, row, column, kind = self.things(seen)  # [N, M, W], [N, M], [N, M], [N, M, 3]
        exists = kind.any(-1)
        attention, content, shared, is_stated = self.read(words, seen)
        known = torch.cat((self.embedding(words).flatten(2), content, shared, is_stated, kind), 2)

        both = torch.einsum("nivs,njws->nijvw", attention, attention).flatten(3)  # [N, M, M, W W]
        about = torch.cat((shared, kind), 2).unsqueeze(1).expand(-1, both.shape[1], -1, -1)
        first = kind.unsqueeze(2).expand(-1, -1, both.shape[2], -1)
        others = exists.unsqueeze(1) & ~torch.eye(both.shape[1], dtype=torch.bool, device=both.device)
        message = (self.pair(torch.cat((both, about, first), 3)) * others.unsqueeze(-1)).sum(2)
        features = self.sum_up(torch.cat((known, message), 2)) * exists.unsqueeze(-1)

        held = kind[..., 1:2].to(features.dtype)
        numbers = [(seen[name].float().flatten(1) - low) / max(span, 1.0) for name, (low, span) in self.ranges.items()]
        own = torch.cat([*numbers, (features * held).sum(1)], 1)
        around = self.place(features * (1 - held), row, column, seen)
        return F.relu(self.out(F.relu(self.look(around) + self.feel(own))))

    def things(self, seen: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return words [N, M, W], row, column [N, M] and kind [N, M, 3] (one-hot: on the map, held, a teammate)."""
        grid = seen[self.grid.name].long()
        count, height, across, layers = grid.shape
        per_thing = self.grid.words_per_occupant
        slots = grid.reshape(count, height * across * (layers // per_thing), per_thing)
        there = self.is_thing[slots[..., 0]]
        most = min(self.most, slots.shape[1]) or max(1, int(there.sum(1).max()))
        first = (~there).int().argsort(dim=1, stable=True)[:, :most]  # the occupied slots come first
        cell = first // (layers // per_thing)
        on_map = slots.gather(1, first.unsqueeze(-1).expand(-1, -1, per_thing))
        found = [(on_map, cell // across, cell % across, there.gather(1, first))]  # in the order of the kinds
        nowhere = torch.zeros_like(cell[:, :1])
        held = seen[_HELD].long().unsqueeze(1) if _HELD in self.words_of else grid.new_zeros(count, 1, per_thing)
        found.append((held, nowhere, nowhere, held[..., 0] != 0))
        if _TEAMMATES in self.words_of:
            mates = seen[_TEAMMATES].long()
            at_home = mates.clamp(min=0)  # row, column and words; the dead are at −1
            found.append((at_home[..., 2:], at_home[..., 0], at_home[..., 1], mates[..., 0] >= 0))
        kinds = [F.one_hot(torch.full_like(row, i), 3) * real[..., None] for i, (_, row, _, real) in enumerate(found)]
        words, rows, columns = (torch.cat([thing[part] for thing in found], 1) for part in range(3))
        return words, rows, columns, torch.cat(kinds, 1).float()

    def read(self, words: Tensor, seen: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Attend from each word of each thing to the texts.

        Returns:
            Attention [N, M, W, S] to the statements; their content [N, M, W · word]; words that they, and the word
            itself, share with each single sentence [N, M, 2 · W · T]; 1 where a statement contains the word [N, M, W].
        """
        goals = [seen[name].long() for name in self.sentences]
        texts = [seen[name].long() for name in self.manuals] or [goal.unsqueeze(1) for goal in goals]
        longest = max(text.shape[2] for text in texts)
        manual = torch.cat([F.pad(text, (0, longest - text.shape[2])) for text in texts], 1)  # [N, S, L]
        real = words != 0
        contains = (words[..., None, None] == manual[:, None, None]).any(-1) & real.unsqueeze(-1)  # [N, M, W, S]
        present, weight = (manual != 0).unsqueeze(-1), self.weight(manual).sigmoid()
        mean = (self.embedding(manual) * present).sum(2) / present.sum(2).clamp(min=1)  # [N, S, word]
        alike = torch.einsum("nmwd,nsd->nmws", self.like(self.embedding(words)), mean)
        scores = self.sharpness * contains + alike
        empty = ~present.any(2).squeeze(-1)[:, None, None]
        attention = scores.masked_fill(empty, -1e9).softmax(-1) * real.unsqueeze(-1)
        content = torch.einsum("nmws,nsd->nmwd", attention, mean).flatten(2)
        overlaps = []
        for goal in goals:
            shared = (manual.unsqueeze(-1) == goal[:, None, None]).any(-1) & (manual != 0)  # [N, S, L]
            overlap = (shared.unsqueeze(-1) * weight).sum((2, 3))
            overlaps.append(torch.einsum("nmws,ns->nmw", attention, overlap))
            overlaps.append(((words.unsqueeze(-1) == goal[:, None, None]).any(-1) & real).float())
        wide = torch.cat(overlaps, 2) if overlaps else content[..., :0]
        return attention, content, wide, contains.any(-1).float()

    def place(self, features: Tensor, row: Tensor, column: Tensor, seen: Mapping[str, Tensor]) -> Tensor:
        """Return [N, cells · features]: each thing's features in its cell of a map that has the agent in its middle."""
        if self.has_position:
            own = seen["position"].long()
            row = row - own[:, :1].clamp(min=0) + self.grid.height - 1
            column = column - own[:, 1:].clamp(min=0) + self.grid.width - 1
        cell = row * self.map_shape[1] + column
        empty = features.new_zeros(features.shape[0], math.prod(self.map_shape), features.shape[2])
        return empty.scatter_add(1, cell.unsqueeze(-1).expand_as(features), features).flatten(1)
