"""fieldread: a network for any environment, built from its spec; the default of a new environment.

Numbers, maps and texts have encoders of their own. Texts are attended to twice, first by what is seen, then by the
result. A network made for the fields of an environment learns faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, join_statements
from magrounding.agents.modules import DocumentAttention, FiLM2, distance_map, embed_cells, spatial_max, unroll
from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, Reading, TextEncoding, mask_logits
from magrounding.agents.sir.heads import ChoiceHead, make_action_head
from magrounding.schema import Count, Options
from magrounding.spec import CHOICES, COLUMNS, MASK, Directions, EnvSpec, Field, FixedActions, Grid, TextChoices

_POSITION = "position"
_MOST_SLOTS, _MOST_VALUES = 64, 4096
"""Fields of at most so many numbers, and of so many values together, are also embedded value by value."""


@dataclass(frozen=True)
class FieldReadConfig(Options):
    """Options of fieldread.

    Attributes:
        embedding: width of a word.
        channels: of the two layers that look at a map.
        width: of what is known of a step.
        memory: a recurrent unit keeps track of the episode.
    """

    embedding: Count = 32
    channels: Count = 32
    width: Count = 128
    memory: bool = True


class NumberEncoder(nn.Module):
    """Encoder of a field of numbers: the numbers, each of their values, and their embeddings as word ids."""

    def __init__(self, field: Field, vocabulary: int, embedding: int, width: int) -> None:
        super().__init__()
        size, whole = math.prod(field.shape), np.issubdtype(np.dtype(field.dtype), np.integer)
        self.low, self.span = field.low, field.high - field.low
        self.bounded = math.isfinite(self.span) and 0 < self.span < 1e6
        self.numbers = nn.Linear(size, width)
        few = whole and size <= _MOST_SLOTS
        listed = few and self.bounded and size * (self.span + 1) <= _MOST_VALUES
        self.values = nn.Embedding(size * int(self.span + 1), width) if listed else None
        named = few and field.low >= 0 and 1 < field.high < vocabulary
        self.named = nn.Linear(size * embedding, width) if named else None

    def forward(self, array: Tensor, words: nn.Embedding) -> Tensor:
        """Return [N, width] of an array [N, …]."""
        flat = array.flatten(1) if array.dim() > 1 else array.unsqueeze(1)
        real = flat.float().nan_to_num()
        scaled = (real - self.low) / self.span * 2 - 1 if self.bounded else real.sign() * real.abs().log1p()
        seen = self.numbers(scaled)
        if self.values is not None:
            count = int(self.span + 1)
            slots = torch.arange(flat.shape[1], device=flat.device) * count
            seen = seen + self.values((flat.long() - int(self.low)).clamp(0, count - 1) + slots).sum(1)
        if self.named is not None:
            seen = seen + self.named(words(flat.long()).flatten(1))
        return seen


class FieldRead(Policy):
    """The network, for any fields and any kind of actions."""

    defaults = FieldReadConfig()
    accepts = Accepts(actions=(FixedActions, TextChoices, Directions), grid=False, also=None)

    def __init__(self, spec: EnvSpec, config: FieldReadConfig) -> None:
        super().__init__(spec)
        self.config = config
        embedding, channels, width = config.embedding, config.channels, config.width
        self.reads = {text.name: (text.name,) for text in spec.texts}
        self.texts = [name for name in self.reads if not (name == CHOICES and isinstance(spec.actions, TextChoices))]
        self.grids = [field.name for field in spec.fields if isinstance(field, Grid)]
        own = [f for f in spec.own_fields if not isinstance(f, Grid) and f.name not in (MASK, COLUMNS)]
        numbers = {f.name: f for f in own if math.prod(f.shape)}
        self.placed = _POSITION in numbers and numbers[_POSITION].shape == (2,)
        self.seen = list(numbers)
        vocabulary = spec.vocabulary_size
        self.words = nn.Embedding(vocabulary, embedding, padding_idx=0)
        self.numbers = nn.ModuleList(NumberEncoder(each, vocabulary, embedding, width) for each in numbers.values())
        self.readers: Any = nn.ModuleList(_Reader(embedding, width) for _ in self.texts)
        self.glance = nn.Linear(embedding, width) if self.grids else None
        self.layers: Any = nn.ModuleList(
            nn.ModuleList(FiLM2(width, below + 2, channels, text_modulation=False) for below in (embedding, channels))
            for _ in self.grids
        )
        self.gather = nn.Linear(2 * width + len(self.grids) * channels, width)
        self.gather_norm, self.read_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.memory = nn.GRUCell(width, width) if config.memory else None
        self.head = make_action_head(spec, embedding, width // 2, width, channels)
        self.value = nn.Linear(width, 1)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Return states and mask of the words of U texts (`_Reader`); of texts to choose from, the head's encoding."""
        if name == CHOICES and isinstance(self.head, ChoiceHead):
            return self.head.encode(ids[name], self.words)
        return self.readers[self.texts.index(name)](self.words, ids[name])

    def initial_memory(self, num_envs: int) -> Tensor | None:
        return None if self.memory is None else self.words.weight.new_zeros(num_envs, self.config.width)

    def forward(self, batch: Batch) -> PolicyOutput:
        shape = batch.restarts.shape
        seen = {name: array.flatten(0, 1) for name, array in batch.observation.items()}
        text: TextEncoding = {}
        if isinstance(self.head, ChoiceHead):
            seen[CHOICES], text = batch.texts[CHOICES].index.flatten(0, 1), batch.texts[CHOICES].encoding
            seen.setdefault(MASK, torch.ones_like(seen[CHOICES]))
        hidden, maps = self._perceive(seen, batch.texts, batch.restarts.flatten())
        memory = batch.memory
        if self.memory is not None and memory is not None:
            memory = unroll(self.memory, hidden.unflatten(0, shape), memory, batch.restarts)
            hidden = hidden + memory.flatten(0, 1)
        logits = self.head(hidden, maps, seen, text).float()
        if MASK in seen:
            logits = mask_logits(logits, seen[MASK])
        return PolicyOutput(logits.unflatten(0, shape), self.value(hidden).float().view(shape), memory)

    def _perceive(
        self, seen: Mapping[str, Tensor], texts: Mapping[str, Reading], rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Features of N observations without memory, [N, width], and the last layer of the first map."""
        at_first = self.words.weight.new_zeros(len(rows), self.config.width)
        for name, encoder in zip(self.seen, self.numbers, strict=True):
            at_first = at_first + encoder(seen[name], self.words)
        cells = [embed_cells(self.words, seen[name].clamp(min=0)) for name in self.grids]
        if self.glance is not None:
            at_first = at_first + self.glance(torch.stack([spatial_max(each) for each in cells]).sum(0))
        asked = [(reader, reader.attention(texts[name])) for name, reader in zip(self.texts, self.readers, strict=True)]
        read = at_first + sum(reader.attend(text, at_first) for reader, text in asked)
        maps = [self._look(layers, each, seen, read) for layers, each in zip(self.layers, cells, strict=True)]
        pooled = [spatial_max(each) for each in maps]
        known = F.relu(self.gather_norm(self.gather(torch.cat((at_first, read, *pooled), 1))))
        again = known + sum(reader.attend(text, known) for reader, text in asked)
        return F.relu(self.read_norm(again)), maps[0] if maps else at_first

    def _look(self, layers: Iterable[FiLM2], cells: Tensor, seen: Mapping[str, Tensor], read: Tensor) -> Tensor:
        """The last layer [N, C, H, W] over a map, modulated by the texts, with the agent's position."""
        at = seen[_POSITION] if self.placed else cells.new_zeros(len(cells), 2)
        places = distance_map(at, *cells.shape[2:])
        for layer in layers:
            cells = layer(torch.cat((cells, places.to(cells.dtype)), 1), read)
        return cells


class _Reader(nn.Module):
    """Encoder of one text, statement by statement, and attention to it."""

    def __init__(self, embedding: int, width: int) -> None:
        super().__init__()
        self.encoder = TextEncoder(embedding, embedding, "gru")
        self.skip = nn.Linear(embedding, 2 * embedding)
        self.question = nn.Linear(width, 2 * embedding)
        self.answer = nn.Linear(2 * embedding, width)

    def forward(self, words: nn.Embedding, ids: Tensor) -> TextEncoding:
        """Return states [U, W, 2 · embedding] and mask [U, W] of ids [U, …], whose last dimension is a statement's."""
        rows = ids.reshape(-1, ids.shape[-1]) if ids.dim() > 1 else ids.unsqueeze(1)
        joined = join_statements(rows)
        states, _ = self.encoder(words, joined)
        spoken = joined.ids > 0
        states = (states + self.skip(words(joined.ids.long()))) * spoken.unsqueeze(2)
        return {"states": states.reshape(len(ids), -1, states.shape[2]), "mask": spoken.reshape(len(ids), -1)}

    def attention(self, reading: Reading) -> DocumentAttention:
        """Prepare the texts of N observations for queries."""
        return DocumentAttention(reading.encoding["states"], reading.encoding["mask"], reading.index.flatten())

    def attend(self, texts: DocumentAttention, asked: Tensor) -> Tensor:
        """Answer [N, width] to queries [N, width]."""
        return self.answer(texts(self.question(asked).to(self.answer.weight.dtype)))
