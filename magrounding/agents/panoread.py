"""panoread: a reader for walks by an instruction. What a panorama shows is matched with the words that name it.

The sibling of `viewread` for panoramas with directions to choose from. A word of the instruction counts now where what
it names is seen on the side that the words around it say, and where the memory has come to. Each direction is scored by
what is said there, by where it lies, and by where the thing lies from it. No world is built in: what a cell shows is a
word id, and an instruction may have the same word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.building import check_config, configure
from magrounding.agents.language import TextEncoder, join_statements
from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, TextEncoding, mask_logits
from magrounding.errors import ConfigurationError
from magrounding.spec import COLUMNS, Directions, EnvSpec


@dataclass(frozen=True)
class PanoReadConfig:
    """Options of panoread.

    Attributes:
        embedding: width of a word's embedding, and units in each direction of the GRU over the instruction.
        sectors: into how many parts the circle is cut.
        hidden: width of the memory, and of the layer that scores a direction.
        remember: False: acts on each panorama by itself.
    """

    embedding: int = 32
    sectors: int = 16
    hidden: int = 96
    remember: bool = True

    def __post_init__(self) -> None:
        check_config(self)


class PanoRead(Policy):
    """The reader for panoramas.

    Args:
        spec: of the world.
        config: options.

    Raises:
        ConfigurationError: a world without directions, panorama, position or goal, or with panoramas whose columns
            cannot be cut into so many sectors.
    """

    accepts = Accepts(actions=(Directions,), fields=("goal", COLUMNS, "position", "action_mask"))
    reads = {"instruction": ("goal",)}  # noqa: RUF012  the base class declares it

    def __init__(self, spec: EnvSpec, config: PanoReadConfig) -> None:
        super().__init__(spec)
        self.config = config
        sectors, hidden = config.sectors, config.hidden
        if spec.grid.width % sectors:
            raise ConfigurationError(
                f"panoramas of {spec.grid.width} columns cannot be cut into {sectors} sectors: set sectors to a divisor"
            )
        self.grid, self.columns, self.vocabulary = spec.grid.name, spec.grid.width, spec.vocabulary_size
        self.words = nn.Embedding(self.vocabulary, config.embedding, padding_idx=0)
        self.reader = TextEncoder(config.embedding, config.embedding, "gru")
        width = self.reader.width
        self.side = nn.Linear(width, sectors)  # where a word expects what it names
        self.key = nn.Linear(width, hidden, bias=False)
        self.begin = nn.Linear(width, 1)  # how early a word counts, with nothing in sight
        self.told = nn.Linear(width + sectors, hidden)
        self.towards = nn.Embedding(2 * sectors, hidden)
        self.there = nn.Linear(sectors, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden)
        if config.remember:
            self.memory = nn.GRUCell(hidden, hidden)
        self.mind = nn.Linear(hidden, hidden)
        self.score = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.value = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Of instructions [U, L]: `ids` [U, L'], `states` [U, L', D], and `mask` [U, L'] of their words."""
        words = join_statements(ids["goal"].long())
        states, mask = self.reader(self.words, words)
        return {"ids": words.ids, "states": states * mask.unsqueeze(2), "mask": mask}

    def initial_memory(self, num_envs: int) -> Tensor | None:
        return self.key.weight.new_zeros(num_envs, self.config.hidden) if self.config.remember else None

    def forward(self, batch: Batch) -> PolicyOutput:
        reading, shape = batch.texts["instruction"], batch.restarts.shape
        observation = {name: each.flatten(0, 1) for name, each in batch.observation.items()}
        text, index = reading.encoding, reading.index
        looks_at = observation["position"][:, 1].long()
        seen = self.sight(observation[self.grid], looks_at, text["ids"].index_select(0, index.flatten()))  # [N, L, S]
        states, mask = text["states"].index_select(0, index.flatten()), text["mask"].index_select(0, index.flatten())
        first = (seen * self.side(states)).sum(2) + self.begin(states).squeeze(2)  # [N, L]
        first = first.masked_fill(~mask, -1e9).unflatten(0, shape)
        keys = self.key(states).unflatten(0, shape)
        seen, states = seen.unflatten(0, shape), states.unflatten(0, shape)
        memory = torch.zeros_like(keys[0, :, 0]) if batch.memory is None else batch.memory
        after, said, where = [], [], []
        for t, keep in enumerate((~batch.restarts).unsqueeze(2)):
            memory = memory * keep
            asked = torch.einsum("bld,bd->bl", keys[t], self.query(memory)) / math.sqrt(keys.shape[3])
            weights = (first[t] + asked).softmax(1)
            there = torch.einsum("bl,bls->bs", weights, seen[t])
            told = self.told(torch.cat((torch.einsum("bl,bld->bd", weights, states[t]), there), 1))
            memory = self.memory(F.relu(told), memory) if self.config.remember else F.relu(told)
            after.append(memory)
            said.append(told + self.mind(memory))
            where.append(there)
        memory, told, there = torch.stack(after), torch.cat(said), torch.cat(where)
        logits = self._score(told, there, observation[COLUMNS].long(), looks_at).unflatten(0, shape)
        logits = mask_logits(logits.float(), batch.observation["action_mask"])
        value = self.value(memory).squeeze(2).float()
        return PolicyOutput(logits, value, memory if self.config.remember else None)

    def sight(self, grid: Tensor, looks_at: Tensor, ids: Tensor) -> Tensor:
        """[N, L, S]: how much of each sector shows what a word names; the middle one is where the agent looks.

        Args:
            grid: [N, H, W, K].
            looks_at: [N], a column.
            ids: [N, L] of the words.
        """
        n, height, width, planes = grid.shape
        shown = grid.permute(0, 1, 3, 2).reshape(n, height * planes, width).long()
        counts = torch.zeros(n, self.vocabulary, width, device=grid.device)
        counts.scatter_add_(1, shown, torch.ones((), device=grid.device).expand_as(shown))
        sector = width // self.config.sectors
        # Half a sector is added, so that the middle sector lies around the column and not beside it.
        turned = torch.arange(width, device=grid.device) + (looks_at - width // 2 - sector // 2).unsqueeze(1)
        counts = counts.gather(1, ids.unsqueeze(2).expand(-1, -1, width))
        counts = counts.gather(2, turned.remainder(width).unsqueeze(1).expand_as(counts))
        return counts.unflatten(2, (-1, sector)).sum(3).mul(ids.gt(0).unsqueeze(2)).log1p()

    def _score(self, told: Tensor, there: Tensor, columns: Tensor, looks_at: Tensor) -> Tensor:
        """[N, A] of what is told [N, D], where its thing lies [N, S], and columns [N, A]."""
        sectors = self.config.sectors
        angle = (columns.clamp(min=0) - looks_at.unsqueeze(1) + self.columns // 2).remainder(self.columns)
        fine = angle * 2 * sectors // self.columns  # [N, A], the middle is straight on
        turned = torch.arange(sectors, device=fine.device) + (fine // 2 - sectors // 2).unsqueeze(2)
        from_there = there.unsqueeze(1).expand(-1, columns.shape[1], -1).gather(2, turned.remainder(sectors))
        return self.score(told.unsqueeze(1) + self.towards(fine) + self.there(from_there)).squeeze(2)


def make_panoread(spec: EnvSpec, **options: Any) -> PanoRead:
    """Make a panoread network for a world; options are those of `PanoReadConfig`."""
    return PanoRead(spec, configure("panoread", PanoReadConfig(), options))
