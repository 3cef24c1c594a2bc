"""panoread: a reader for walks by an instruction, clause by clause, matched with the words of a panorama.

The sibling of `viewread` for panoramas with directions to choose from. A pointer moves over the sentences of the
instruction, only forwards. A sentence names things and the side on which they are to be; a patch of the panorama shows
a word id, and an instruction may have the same word. No environment is built in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, join_statements
from magrounding.agents.modules import mlp
from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, TextEncoding
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options
from magrounding.spec import COLUMNS, Directions, EnvSpec

_ENDS = (".", ";", "!", "?")
"""Words that end a sentence."""


@dataclass(frozen=True)
class PanoReadConfig(Options):
    """Options of panoread.

    Attributes:
        embedding: width of a word's embedding, and units in each direction of the GRU over the instruction.
        sectors: into how many parts the circle is cut to say where a thing is; directions are twice as fine.
        hidden: width of the layer in which sentence and sight come together.
        sentences: how many are distinguished; what an instruction has beyond belongs to the last of them.
    """

    embedding: Count = 32
    sectors: Count = 16
    hidden: Count = 96
    sentences: Count = 16


class PanoRead(Policy):
    """The reader for panoramas.

    At a step, for sentence k with probability p_k of being at it: c = Σ p_k c_k is what is said, s = Σ p_k s_k where
    what it names is seen, by sectors of the circle from where the agent looks. A direction at angle a is scored by
    turn(c, s)[a] + side(c, s) · (s seen from a) + how alike c and what is seen are: "turn left" is the first, "so that
    the bus is on your right" the second. To stop, where that action exists, is scored by c and s alone. Then each
    p_k goes on to k + 1 in part: g(c, s, number of directions).

    Raises:
        ConfigurationError: a world without directions, panorama, position or goal, or with panoramas whose columns
            cannot be cut into so many sectors.
    """

    defaults = PanoReadConfig()
    accepts = Accepts(actions=(Directions,), fields=("goal", COLUMNS, "position", "action_mask"))
    reads = {"instruction": ("goal",)}  # noqa: RUF012  the base class declares it

    def __init__(self, spec: EnvSpec, config: PanoReadConfig) -> None:
        super().__init__(spec)
        self.config = config
        sectors, hidden = config.sectors, config.hidden
        if spec.grid.width % (2 * sectors):
            raise ConfigurationError(
                f"panoramas of {spec.grid.width} columns cannot be cut into {sectors} sectors: set sectors to a divisor"
            )
        self.grid, self.columns, self.vocabulary = spec.grid.name, spec.grid.width, spec.vocabulary_size
        self.grid_shape = spec.grid.shape
        actions = spec.actions
        assert isinstance(actions, Directions)  # as `accepts` says
        self.directions = actions.max_directions
        ends = [i for i, word in enumerate(spec.words) if word in _ENDS]
        self.ends = nn.Buffer(torch.tensor(ends, dtype=torch.int64), persistent=False)
        self.words = nn.Embedding(self.vocabulary, config.embedding, padding_idx=0)
        self.reader = TextEncoder(config.embedding, config.embedding, "gru")
        width = self.reader.width
        self.weigh = nn.Linear(width, 2)  # how much a word counts for what is said, and for where it is seen
        self.told = nn.Linear(width, hidden)
        self.seen = nn.Linear(sectors, hidden, bias=False)
        self.ways = nn.Embedding(self.directions + 1, hidden)
        self.around = nn.Linear(2 * sectors, hidden, bias=False)
        self.think = nn.Linear(hidden, hidden)
        self.turn = nn.Linear(hidden, 2 * sectors)
        self.side = nn.Linear(hidden, sectors)
        self.go_on = nn.Linear(hidden, 1)
        self.stop = nn.Linear(hidden, 1) if actions.stop else None
        self.value = mlp(hidden + 1, hidden, 1)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Encode instructions [U, L].

        Returns:
            `summary` [U, K, D] of each sentence, `ids` [U, L'], `names` [U, L', K], the weight of each word for the
            side on which its sentence has a thing, and `last` [U], the number of the last sentence.
        """
        words = join_statements(ids["goal"].long())
        states, mask = self.reader(self.words, words)
        spoken = mask & (words.ids > 0)
        number = self._sentences(words.ids)
        belongs = F.one_hot(number, self.config.sentences).to(states.dtype) * spoken.unsqueeze(2)  # [U, L', K]
        counts, names = self.weigh(states).unbind(2)
        counts = counts.clamp(max=20).exp().unsqueeze(2) * belongs
        counts = counts / counts.sum(1, keepdim=True).clamp(min=1e-6)
        return {
            "summary": torch.einsum("ulk,uld->ukd", counts, states),
            "ids": words.ids,
            "names": names.sigmoid().unsqueeze(2) * belongs,
            "last": (number * spoken).amax(1),
        }

    def _sentences(self, ids: Tensor) -> Tensor:
        """[U, L]: the sentence of each word."""
        ends = torch.isin(ids, self.ends)
        return (ends.cumsum(1) - ends.long()).clamp(max=self.config.sentences - 1)

    def initial_memory(self, num_envs: int) -> Tensor:
        return self.told.weight.new_zeros(num_envs, self.config.sentences)

    def forward(self, batch: Batch) -> PolicyOutput:
        reading, shape = batch.texts["instruction"], batch.restarts.shape
        observation = {name: each.flatten(0, 1) for name, each in batch.observation.items()}
        text, index = reading.encoding, reading.index.flatten()
        looks_at, columns = observation["position"][:, 1].long(), observation[COLUMNS][:, : self.directions].long()
        seen = self.sight(observation[self.grid], looks_at, text["ids"].index_select(0, index))  # [N, L, S]
        used = int(text["last"].max()) + 1  # sentences there are
        seen = torch.einsum("nlk,nls->nks", text["names"][:, :, :used].index_select(0, index), seen)
        fine = self._angles(columns, looks_at)  # [N, A]
        there = (columns >= 0).float()
        ways = torch.zeros(len(fine), 2 * self.config.sectors, device=fine.device).scatter_add(1, fine, there)
        scene = self.ways(there.sum(1).long()) + self.around(ways)  # [N, hidden]
        # What would be thought at each sentence; the pointer only mixes, so that steps depend on nothing else.
        summary = self.told(text["summary"][:, :used]).index_select(0, index)  # [N, K', hidden]
        thought = F.relu(self.think(F.relu(summary + self.seen(seen) + scene.unsqueeze(1))))
        done = F.pad(self.go_on(thought).squeeze(2).sigmoid(), (0, self.config.sentences - used))
        pointer, last = self._walk(done.unflatten(0, shape), text, batch)
        p = pointer.flatten(0, 1)[:, :used]
        turn = torch.einsum("nk,nkf->nf", p, self.turn(thought)).gather(1, fine)
        logits = turn + torch.einsum("nas,nk,nks->na", self._from(seen, p, fine), p, self.side(thought))
        mean = torch.einsum("nk,nkd->nd", p, thought)
        if self.stop is not None:
            logits = torch.cat((logits, self.stop(mean)), 1)
        place = torch.arange(used, device=p.device, dtype=p.dtype)
        left = text["last"].index_select(0, index).to(p.dtype) - p @ place
        value = self.value(torch.cat((mean, left.unsqueeze(1)), 1)).view(shape)
        return PolicyOutput.masked(logits.unflatten(0, shape), value, batch.observation, last)

    def _walk(self, goes_on: Tensor, text: TextEncoding, batch: Batch) -> tuple[Tensor, Tensor]:
        """Pointer [T, B, K] at each step and after it, by the probability [T, B, K] that a sentence is done."""
        first = torch.zeros_like(goes_on[0])
        first[:, 0] = 1
        end = F.one_hot(text["last"], self.config.sentences).bool()[batch.texts["instruction"].index]
        goes_on = goes_on.masked_fill(end, 0.0)
        pointer = first if batch.memory is None else batch.memory
        here, after = [], []
        for g, anew in zip(goes_on, batch.restarts.unsqueeze(2), strict=True):
            pointer = torch.where(anew, first, pointer)
            here.append(pointer)
            moved = pointer * g
            pointer = pointer - moved + F.pad(moved[:, :-1], (1, 0))
            after.append(pointer)
        return torch.stack(here), torch.stack(after)

    def sight(self, grid: Tensor, looks_at: Tensor, ids: Tensor) -> Tensor:
        """Return [N, L, S]: how much of each sector shows what a word [N, L] names; the middle one is straight on.

        `grid` [N, H, W, K] is the panorama, `looks_at` [N] the column straight on.
        """
        n, _, width, _ = grid.shape
        sectors, each = self.config.sectors, width // self.config.sectors
        place = torch.arange(width, device=grid.device) - looks_at.unsqueeze(1)
        # Half a sector is added, so that the middle sector lies around the column and not beside it.
        sector = (place + width // 2 + each // 2).remainder(width) // each  # [N, W]
        shown = (grid.long() * sectors + sector[:, None, :, None]).flatten(1)
        counts = torch.zeros(n, self.vocabulary * sectors, device=grid.device)
        counts.scatter_add_(1, shown, torch.ones((), device=grid.device).expand_as(shown))
        row = torch.arange(n, device=grid.device).unsqueeze(1) * self.vocabulary + ids  # [N, L]
        return F.embedding(row, counts.view(-1, sectors)).log1p() * ids.gt(0).unsqueeze(2)

    def _angles(self, columns: Tensor, looks_at: Tensor) -> Tensor:
        """Angle [N, A] of each direction, in half sectors; the middle is straight on."""
        angle = (columns.clamp(min=0) - looks_at.unsqueeze(1) + self.columns // 2).remainder(self.columns)
        return angle * 2 * self.config.sectors // self.columns

    def _from(self, seen: Tensor, pointer: Tensor, fine: Tensor) -> Tensor:
        """[N, A, S]: sight of what the current sentence names, from each direction."""
        sectors = self.config.sectors
        there = torch.einsum("nk,nks->ns", pointer, seen)
        turned = torch.arange(sectors, device=fine.device) + (fine // 2 - sectors // 2).unsqueeze(2)
        return there.unsqueeze(1).expand(-1, fine.shape[1], -1).gather(2, turned.remainder(sectors))
