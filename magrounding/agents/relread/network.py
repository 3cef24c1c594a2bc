"""relread, the relational reader: a word is grounded by the words that share its statements.

Nothing of any environment is built in. Entities are occupants of `grid` beside scenery and agents. No identity of a
word reaches the policy, only relations: how the words of an entity are related, through the document, to those of
others, of the goal and of the agents' inventories. So unseen words, assignments and sizes of map are read like any
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy, Inputs, info_nce
from magrounding.agents.modules import among, mlp
from magrounding.agents.policy import ATTENTION, Accepts, Auxiliary, PolicyOutput, TextEncoding, shares
from magrounding.agents.relread import kernels
from magrounding.agents.relread.manual_reader import ROW_OF, ManualReader, WordRelations
from magrounding.agents.relread.motion import (
    DIRECTIONS,
    FRAMES,
    MOTION_CLASSES,
    Frame,
    Motion,
    initial_tracks,
    track,
    tracks_before,
)
from magrounding.agents.relread.statements import AUTO, EDGES, LEARNT, ROWS, make_statements
from magrounding.agents.remapping import within
from magrounding.agents.telling import TellHead
from magrounding.schema import Count, Natural, Options
from magrounding.spec import FACTS, EnvSpec

OLD_NAMES = {"kinship": "similarity"}


@dataclass(frozen=True)
class RelreadConfig(Options):
    """Options of relread.

    Attributes:
        similarity: E, width of the embeddings by which symbols are looked for in statements that do not contain them;
            0: nothing but a word itself is like it. They learn by `Relread.contrast`.
        meaning: D, numbers that a statement says of what it is about, learned for each word; 0: none, so that no word
            means anything but by where else it stands.
        motion: D, width of the embeddings of how things move, and of what words say of it. With them statements are
            looked for by how a thing moves as well, so that things that look the same are distinguished. They learn by
            `Relread.auxiliary`. 0: a frame is looked at as if it were the only one.
        pair_hidden, message: widths of the network that looks at each pair of things, and of its output.
        entity_hidden, features: widths of the network that sums up a thing, and of what it puts on the map.
        reach: R, cells that the egocentric map reaches in each direction; what is farther lies on its edge.
        hidden, top: widths of the layers between map and heads.
        segments: what a statement is. "rows": a row of the manual; "stops": a sentence, rows being cut at full stops;
            "learnt": what a `Segmenter` cuts rows into, which learns it before anything else is learnt; "edges": what a
            reader of `Edges` has put together, which likewise learns it first; "auto": rows; where a manual is a single
            row, edges if its sentences claim facts of names on the map (`spec.FACTS`), else learnt.
        phrases: compare the goal with statements by pairs of neighbouring words as well, see `ManualReader`.
    """

    renamed: ClassVar[Mapping[str, str]] = OLD_NAMES

    similarity: Natural = 0
    meaning: Natural = 0
    motion: Natural = 0
    pair_hidden: Count = 32
    message: Count = 16
    entity_hidden: Count = 32
    features: Count = 24
    reach: Count = 5
    hidden: Count = 512
    top: Count = 256
    segments: str = AUTO
    phrases: bool = False

    def for_world(self, spec: EnvSpec) -> Self:
        """Resolve AUTO by the environment's manuals."""
        if self.segments != AUTO:
            return self
        if spec["manual"].shape[0] > 1:
            return replace(self, segments=ROWS)
        return replace(self, segments=EDGES if FACTS in spec.capabilities else LEARNT)


class Relread(DocumentPolicy):
    """The relational reader."""

    defaults = RelreadConfig()
    accepts = Accepts(fields=("manual", "position", "inventory", "action_mask"), also=("teammates",), egocentric=False)
    loss_weights: ClassVar[Mapping[str, float]] = {"motion": 1.0}

    def __init__(self, spec: EnvSpec, config: RelreadConfig) -> None:
        super().__init__(spec)
        self.config = config = config.for_world(spec)
        self.width = spec.grid.words_per_occupant
        self.num_agents = spec.num_agents
        self.reader = ManualReader(
            spec.vocabulary_size, config.similarity, config.meaning, config.motion, spec.words, phrases=config.phrases
        )
        self.segments = make_statements(config.segments, spec)
        self.depends_on_names = self.reader.knows_words
        self.word_rows = within("reader", self.reader.word_rows)
        if self.segments is not None:
            self.depends_on_names |= self.segments.depends_on_names
            own = within("segments", self.segments.word_rows)
            self.word_rows = None if own is None or self.word_rows is None else {**self.word_rows, **own}
        no_entity = among((*spec.grid.scenery_ids, *spec.grid.avatar_ids), spec.vocabulary_size)
        self.no_entity = nn.Buffer(no_entity, persistent=False)
        words = self.width
        alone = (2 + config.meaning) * words + 1 + config.motion  # features of each word, is_ally, how it moves
        self.pair_of = nn.Linear(alone, config.pair_hidden)
        self.pair_with = nn.Linear(alone, config.pair_hidden)
        self.pair_relations = nn.Linear(3 * words * words, config.pair_hidden)
        self.pair_message = nn.Linear(config.pair_hidden, config.message)
        held = 3 * words * words + 1
        self.motions = nn.ModuleList(
            nn.Embedding(count, config.motion) for count in (MOTION_CLASSES, DIRECTIONS) if config.motion
        )
        self.entity = mlp(config.message + alone + held, config.entity_hidden, config.features)
        self.side = 2 * config.reach + 1
        self.what = nn.Linear(config.features + 1, config.hidden)
        self.nowhere = self.side * self.side
        self.where = nn.Embedding(self.nowhere + 1, config.hidden, padding_idx=self.nowhere)
        here = config.reach * (self.side + 1)
        around = torch.tensor([here, here - self.side, here + self.side, here - 1, here + 1])
        self.around = nn.Buffer(around, persistent=False)
        self.near = nn.Parameter(torch.zeros(5, config.features + 2, config.hidden))
        walls = 4 * (config.reach + 1)
        self.tells = spec.tells
        moves = spec.num_actions - self.tells
        self.feel = nn.Linear(walls + moves + bool(self.tells) + 1, config.hidden)
        self.think = nn.Linear(config.hidden, config.top)
        self.policy = nn.Linear(config.top, moves)
        self.value = nn.Linear(config.top, 1)
        if self.tells:
            self.tell = TellHead(words * (config.features + 1) + 1, config.top)
        with torch.no_grad():
            self.policy.weight.mul_(0.01)
            self.policy.bias.zero_()

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        if self.segments is None:
            return self.reader(manual, goal)
        pieces = self.segments(manual)
        rows = pieces.row_of.to(self.reader.fade.dtype)
        return {**self.reader(pieces.ids, goal), ROW_OF: rows / rows.sum(2, keepdim=True).clamp(min=1)}

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        observation, text, document = inputs
        things = self.find(observation)
        motion, memory = self.follow(things, observation, memory)
        logits, value = self.decide(inputs, things, self.relate(things, text, document, motion))
        return PolicyOutput.masked(
            logits,
            value,
            observation,
            memory,
            aux={ATTENTION: lambda: self.attention(things, text, document, motion)},
            seen=(things, motion),
        )

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor:
        return self.reader.relate_words(text, subjects, names)

    def attention(self, things: Things, text: TextEncoding, document: Tensor, motion: Motion | None = None) -> Tensor:
        """Return ATTENTION [N, S], the average over the words of entities in sight and of the agent's inventory."""
        motion_class = _motion_classes(motion)
        attention, which = self.reader.attention(things.words, text, motion_class)
        attention, written = attention.transpose(1, 2), text["key"].any(2)
        if ROW_OF in text:  # of the rows that the pieces are from
            attention, written = torch.bmm(attention, text[ROW_OF]), text[ROW_OF].any(1)
        asked = attention[document.view(-1, 1, 1), which]  # [N, M + 1, W, S]
        asks = F.pad(things.exists & ~things.is_ally, (0, 1), value=True).unsqueeze(2) & (things.words != 0)
        return shares((asked * asks.unsqueeze(3)).sum((1, 2)) * written[document])

    def auxiliary(self, inputs: Inputs, output: PolicyOutput, extras: Mapping[str, Tensor]) -> Auxiliary:
        """Return the loss "motion" of predicting how things move, where the option motion is on."""
        if not self.config.motion:
            return Auxiliary()
        things, motion = output.seen
        return Auxiliary({"motion": self.motion_loss(things, motion, inputs.text, inputs.document)})

    def motion_loss(self, things: Things, motion: Motion, text: TextEncoding, document: Tensor) -> Tensor:
        """Return the negative log-likelihood [N] of how things move, in nats, summed over those that are new in sight.

        Older ones do not count, as it would be those that last: dangerous and slow, or good and hard to catch ones are
        seen for longest, and manuals say what is dangerous or good.
        """
        recent = things.exists & ~things.is_ally & (motion.age > 0) & (motion.age < FRAMES)
        likely, which = self.reader.predict_motion(things.words[:, :-1, 0], motion.motion_class, text)
        return -(likely[document.unsqueeze(1), which] * recent).sum(1)

    def initial_memory(self, num_envs: int) -> Tensor | None:
        return initial_tracks(num_envs, self.num_agents, self.no_entity.device) if self.config.motion else None

    def memories(self, memory: Tensor, observation: dict[str, Tensor], restarts: Tensor) -> Tensor:
        every = {name: tensor.flatten(0, 1) for name, tensor in observation.items()}
        frames = Frame(*(part.unflatten(0, restarts.shape) for part in self._frame(self.find(every), every)))
        return tracks_before(frames, memory, restarts)

    def follow(
        self, things: Things, observation: dict[str, Tensor], memory: Tensor | None
    ) -> tuple[Motion | None, Tensor | None]:
        """Return the motion of things, given the memory (None: empty), and the memory after it; None: motion is off."""
        if not self.config.motion:
            return None, None
        if memory is None:
            memory = initial_tracks(len(things.row), self.num_agents, things.row.device)
        return track(self._frame(things, observation), memory)

    def _frame(self, things: Things, observation: dict[str, Tensor]) -> Frame:
        agents = observation["position"].unsqueeze(1)
        if "teammates" in observation:
            agents = torch.cat((agents, observation["teammates"][:, :, :2]), 1)
        entity = things.exists & ~things.is_ally
        return Frame(things.words[:, :-1, 0], things.row, things.column, entity, agents)

    def decide(
        self, inputs: Inputs, things: Things, features: Tensor, beside: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return logits [N, A] of all actions and values [N], given the features [N, M, C] of things.

        `beside` [N, hidden] is added to the first layer.
        """
        observation = inputs.observation
        own = self.feel(self._own(observation))
        hidden = self.look(things, features, observation["position"], own if beside is None else own + beside)
        top = F.relu(self.think(F.relu(hidden, inplace=True)), inplace=True)
        logits = self.policy(top)
        if self.tells:
            logits = torch.cat((logits, self.tell(self._statements(inputs, things, features), top)), 1)
        return logits, self.value(top).squeeze(-1)

    def _statements(self, inputs: Inputs, things: Things, features: Tensor) -> Tensor:
        """Return [N, S, W (C + 1) + 1], what each statement is about.

        That are features of the things in sight whose words it has, how many there are, and the goal's share in it.
        """
        _, text, document = inputs
        distinct, which = self.reader.distinct(things.words[:, :-1], self.reader.vocabulary_size)  # [N, M, W]
        has = text["value"].detach().index_select(2, distinct).transpose(1, 2)  # [U, P, S]
        at = document.view(-1, 1, 1) * has.shape[1] + which
        shown = (things.exists & ~things.is_ally).unsqueeze(2) & (things.words[:, :-1] != 0)
        match = F.embedding(at, has.flatten(0, 1)) * shown.unsqueeze(3)  # [N, M, W, S]
        known = F.pad(features, (0, 1), value=1.0)
        about = torch.einsum("nmws,nmc->nswc", match, known).flatten(2)
        return torch.cat((about, F.embedding(document, text["goal"].detach()).unsqueeze(2)), 2)

    def find(self, observation: dict[str, Tensor]) -> Things:
        """Return the things of an observation; M is the most of any in the batch."""
        grid, held = observation["grid"], observation["inventory"]
        mates = observation.get("teammates", held.new_zeros(len(held), 0, 2))
        if kernels.suits(grid, mates, held):
            return Things(*kernels.find(grid, mates, held, self.no_entity, self.width))
        n, _, width, per_cell = grid.shape
        occupants = grid.reshape(n, -1, self.width).int()  # [N, P, W]
        present = ~self.no_entity[occupants[:, :, 0].long()]
        count = present.cumsum(1)
        most = int(count.max().clamp(min=1))  # the only wait for a GPU
        slot = torch.where(present, count - 1, most)  # what is no entity goes to a column that is cut off
        place = (torch.arange(slot.shape[1], device=grid.device) // (per_cell // self.width)).expand_as(slot)
        into = slot.unsqueeze(2).expand_as(occupants)
        words = occupants.new_zeros(n, most + 1, self.width).scatter(1, into, occupants)[:, :most]
        cell = slot.new_zeros(n, most + 1).scatter(1, slot, place)[:, :most]
        exists = torch.arange(most, device=grid.device) < count[:, -1:]
        row, column = mates[:, :, 0].long(), mates[:, :, 1].long()
        alive = row >= 0
        return Things(
            torch.cat((words, self._as_occupant(mates[:, :, 2:]), self._as_occupant(held).unsqueeze(1)), 1),
            torch.cat((cell // width, row.clamp(min=0)), 1),
            torch.cat((cell % width, column.clamp(min=0)), 1),
            torch.cat((exists, alive), 1),
            torch.cat((torch.zeros_like(exists), torch.ones_like(alive)), 1),
        )

    def _as_occupant(self, inventory: Tensor) -> Tensor:
        """Words [N, …, W] of an inventory [N, …, I], padded or cut to the width of an occupant."""
        return F.pad(inventory.int(), (0, max(0, self.width - inventory.shape[-1])))[..., : self.width]

    def relate(self, things: Things, text: TextEncoding, document: Tensor, motion: Motion | None = None) -> Tensor:
        """Return features [N, M, C] of every thing: its relations to the others, the goal and the agent's inventory."""
        reading, which, of = self.reader.read(things.words, text, _motion_classes(motion))  # [N, M + 1, W]
        row = document.view(-1, 1, 1) * reading.features.shape[1] + of[:, :-1]
        word_features = F.embedding(row, reading.features.flatten(0, 1)).flatten(2)  # [N, M, (2 + D) W]
        alone = [word_features, things.is_ally.to(word_features.dtype).unsqueeze(-1)]
        if motion is not None:
            classes, directions = self.motions
            alone.append(classes(motion.motion_class) + directions(motion.direction))
        alone = torch.cat(alone, -1)
        bonds, with_held = self._bonds(reading, alone, document, which, things.exists)
        holding = (things.words[:, -1:, :1] != 0).to(alone.dtype).expand(-1, alone.shape[1], 1)
        features = self.entity(torch.cat((self.pair_message(bonds), alone, with_held, holding), -1))
        return features * things.exists.unsqueeze(-1)

    def _bonds(
        self, reading: WordRelations, alone: Tensor, document: Tensor, which: Tensor, exists: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sum of a layer over the relations of each thing to each other, and its relations to the agent's inventory.

        Args:
            reading, which: relations of P words, and which of them each word is [N, M + 1, W]; the last are the
                inventory's.
            alone: [N, M, A], features of each thing by itself.
            document, exists: [N] and [N, M].

        Returns:
            [N, M, pair_hidden], summed over the others that exist, and [N, M, 3 W W].
        """
        mentions, alike, _ = reading
        if kernels.suits(mentions, self.pair_of.weight):
            layers = self.pair_relations, self.pair_of, self.pair_with
            bias = self.pair_relations.bias + self.pair_of.bias + self.pair_with.bias
            weight = torch.cat([*(layer.weight for layer in layers), bias.unsqueeze(1)], 1)
            return kernels.relate(mentions, alike, alone, weight, document, which, exists)
        relations = torch.stack((mentions, mentions.transpose(1, 2), alike), -1)  # [U, P, P, 3]
        first, second = which[:, :-1, None, :, None], which[:, None, :, None, :]
        between = relations[document.view(-1, 1, 1, 1, 1), first, second].flatten(3)  # [N, M, M + 1, W W 3]
        pairs = self.pair_relations(between[:, :, :-1])
        pairs = pairs + self.pair_of(alone).unsqueeze(2) + self.pair_with(alone).unsqueeze(1)
        others = exists.unsqueeze(1) & ~torch.eye(exists.shape[1], dtype=torch.bool, device=pairs.device)
        return (F.relu(pairs) * others.unsqueeze(-1)).sum(2), between[:, :, -1]

    def look(self, things: Things, features: Tensor, position: Tensor, base: Tensor) -> Tensor:
        """Return [N, hidden]: `base` (written over) plus a linear layer on the egocentric map.

        A unit combines one mixture of features with one pattern of cells: the weights are products (what × where),
        computed from the few occupied cells. The agent's own cell and its four neighbours have unrestricted weights of
        their own.
        """
        mixing = torch.cat((self.what.weight.t(), self.what.bias.unsqueeze(0)))
        place = self.place(things, position)
        return look(base, with_presence(things, features), mixing, self.where.weight, self.near, place)

    def place(self, things: Things, position: Tensor) -> Tensor:
        """Return [N, M, 2]: the cell of the egocentric map of every thing, and its index in `around`, or -1.

        The cell of a thing that does not exist is `nowhere`, with a pattern of zeros.
        """
        reach, around = self.config.reach, self.around
        if kernels.suits(position):
            return kernels.place_around(things.row, things.column, things.exists, position, reach, around)
        rows = (things.row - position[:, :1].long()).clamp(-reach, reach) + reach
        columns = (things.column - position[:, 1:].long()).clamp(-reach, reach) + reach
        cell = torch.where(things.exists, rows * self.side + columns, self.nowhere)
        same = cell.unsqueeze(-1) == around
        return torch.stack((cell, torch.where(same.any(-1), same.int().argmax(-1), -1)), -1)

    def _own(self, observation: dict[str, Tensor]) -> Tensor:
        """Features of the agent: distances to the border (up to `reach`), action mask, whether anything is held."""
        walls = border_distances(observation["position"], observation["grid"].shape[1:3], self.config.reach)
        holding = (observation["inventory"][:, :1] != 0).float()
        mask = observation["action_mask"].float()
        if self.tells:  # which of them, the statements say
            mask = torch.cat((mask[:, : -self.tells], mask[:, -self.tells :].amax(1, keepdim=True)), 1)
        return torch.cat((walls, mask, holding), 1)

    @property
    def contrasts(self) -> bool:
        return bool(self.config.similarity)

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        things = self.find(observation)
        symbols, shown = things.words[:, :-1, 0], things.exists & ~things.is_ally
        distinct, which = self.reader.distinct(symbols, self.reader.vocabulary_size)
        spoken_of = self.reader.similarity(distinct, text).logsumexp(2).t()  # [P, U], of each symbol in each manual
        scores = (F.embedding(which, spoken_of) * shown.unsqueeze(-1)).sum(1)  # [boards, manuals]
        return info_nce(scores)


def _motion_classes(motion: Motion | None) -> Tensor | None:
    """Motion class [N, M + 1, 1] of each thing and of the inventory, which stands still; None: motion is off."""
    return None if motion is None else F.pad(motion.motion_class, (0, 1)).unsqueeze(-1)


class Things(NamedTuple):
    """M things of each observation: first the entities of the grid, then teammates with what they hold."""

    words: Tensor  # [N, M + 1, W] int32 ids; the last are those of the agent's own inventory
    row: Tensor  # [N, M] int64
    column: Tensor  # [N, M] int64
    exists: Tensor  # [N, M] bool
    is_ally: Tensor  # [N, M] bool


def with_presence(things: Things, features: Tensor) -> Tensor:
    """Return [N, M, C + 2]: features [N, M, C] of things, whether they are teammates, and 1."""
    ally = (things.is_ally & things.exists).to(features.dtype).unsqueeze(-1)
    return torch.cat((features, ally, torch.ones_like(ally)), -1)


def look(base: Tensor, known: Tensor, mixing: Tensor, patterns: Tensor, near: Tensor, place: Tensor) -> Tensor:
    """Apply a layer to an egocentric map with few things on it, see `Relread.look`; arguments as of `kernels.look`."""
    if kernels.suits(known, mixing):
        return kernels.look(base, known, mixing, patterns, near, place)
    cell, which = place.unbind(-1)
    there = F.one_hot(which + 1, len(near) + 1)[..., 1:].to(known.dtype)  # [N, M, 5]
    on_cells = torch.bmm(there.transpose(1, 2), known).flatten(1) @ near.flatten(0, 1)
    return base + on_cells + ((known @ mixing) * F.embedding(cell, patterns, len(patterns) - 1)).sum(1)  # of [N, M, H]


def border_distances(position: Tensor, shape: torch.Size, reach: int) -> Tensor:
    """Return one-hot distances [N, 4 (reach + 1)] of position [N, 2] from the borders, which are up to `reach`."""
    height, width = shape
    row, column = position.long().unbind(-1)
    distances = torch.stack((row, height - 1 - row, column, width - 1 - column), 1)
    return F.one_hot(distances.clamp(0, reach), reach + 1).flatten(1).float()
