"""EnvSpec: observations, texts, actions, limits and capabilities of an environment, known without starting it.

Worlds, adapters, networks and learners agree on it. Weights load, settings are checked and networks are built from it,
so no simulator starts for a question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
from gymnasium import spaces

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, check_choice
from magrounding.machine import require_memory
from magrounding.vocabulary import Vocabulary

EPISODE: Final = "episode"
STEP: Final = "step"
Lifetime = Literal["episode", "step"]
"""Lifetime of a text."""

CHOICES = "choices"
"""The text field of TextChoices: [C, L], a text in each row."""
LEVEL = "level"
"""A map, beside that around the agent, of all that the episode has shown of the level; padding: never seen."""
COLUMNS = "columns"
"""The field of Directions: [A], the column of the grid that each leads to, −1 for none."""

WON: Final = "won"
SCORE: Final = "score"
Outcome = Literal["won", "score"]
"""The outcome that promotion, selection and reports go by."""

STATE, SNAPSHOT, EXPERT, PLACES, SCENE, SCORES, EVENTS, FACTS = CAPABILITIES = tuple(
    "state snapshot expert places scene score events facts".split()
)
"""Capabilities of an environment, see also the module of that name.

state: `state()`, the whole state as numbers, for learners that see it.
snapshot: `snapshot()` and `restore()`, for runs that resume bit for bit; others restart their episodes.
expert: `best_actions()`, labels for imitation.
places: `entity_places()`, where things are that agents can go to.
scene: `scene()`, a picture.
score: an outcome beside winning, in `info["score"]`.
events: `events()`, what agents did in the last step, and what they hold.
facts: `facts(row)` and `fact_table()`, what a text claims and where, for diagnoses of readers; no agent sees it.
"""


@dataclass(frozen=True)
class Field:
    """One key of the observation: an array of numbers.

    Attributes:
        name: key in the observation dict.
        shape: shape for one agent.
        low, high: inclusive bounds.
        dtype: NumPy dtype name.
        shared: one array for the whole team ([B, *shape] in a batch) instead of one for each agent ([B, n, *shape]).
    """

    name: str
    shape: tuple[int, ...]
    low: float
    high: float
    dtype: str = "int16"
    shared: bool = False


@dataclass(frozen=True)
class Grid(Field):
    """A map of word ids, [H, W, K].

    Attributes:
        scenery_ids: ids that are no entity: padding, empty, wall, fog.
        avatar_ids: ids of agents: me, ally. Every other id belongs to an entity.
        words_per_occupant: ids that one occupant of a cell takes: K is a multiple of it.
        egocentric: the agent always stands in the same cell and looks the same way, so the map turns with it.
        own_cell: row and column of that cell; None where the world does not say it.
        passable_ids: ids of which one is in each cell that an agent can enter; none where the world does not say it.
        blocked_ids: ids of which none is in such a cell.
        straight_ids: ids of cells that no diagonal step enters or leaves.
        hidden_ids: ids of cells that are out of sight.
    """

    __repr__ = brief

    scenery_ids: tuple[int, ...] = ()
    avatar_ids: tuple[int, ...] = ()
    words_per_occupant: int = 1
    egocentric: bool = False
    own_cell: tuple[int, int] | None = None
    passable_ids: tuple[int, ...] = ()
    blocked_ids: tuple[int, ...] = ()
    straight_ids: tuple[int, ...] = ()
    hidden_ids: tuple[int, ...] = ()

    @property
    def height(self) -> int:
        return self.shape[0]

    @property
    def width(self) -> int:
        return self.shape[1]


@dataclass(frozen=True)
class Text(Field):
    """Word ids of one text [L], of its statements [S, L], or of texts to choose from [C, L]; 0 is padding.

    Attributes:
        lifetime: EPISODE where it stays the same from reset to reset, STEP where it may change in every step.
    """

    __repr__ = brief

    lifetime: Lifetime = STEP

    def __post_init__(self) -> None:
        check_choice("lifetime of a text", self.lifetime, get_args(Lifetime))


MASK = "action_mask"
"""The mask that every world shows."""


@dataclass(frozen=True)
class Mask(Field):
    """Mask [A] of 0 and 1: `action_mask` has 1 for actions that do something."""

    low: float = 0
    high: float = 1
    dtype: str = "int8"


class Move(NamedTuple):
    """Effect of an action on the agent's place on a map, where nothing stands in the way.

    Attributes:
        action: its number.
        down, right: rows and columns of one step.
        far: it goes on as long as it can.
    """

    action: int
    down: int
    right: int
    far: bool = False


@dataclass(frozen=True)
class FixedActions:
    """The same actions in every step.

    Attributes:
        names: of all actions.
        moves: of those that move the agent, in the order in which they are preferred; empty where the world does not
            say it.
        tells: how many of them, the last, tell teammates a row of the manual, in the order of its rows.
    """

    __repr__ = brief

    names: tuple[str, ...]
    moves: tuple[Move, ...] = ()
    tells: int = 0

    @property
    def count(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class TextChoices:
    """Texts to choose from, other ones in every step: row j of the text field `choices` is action j.

    Attributes:
        max_choices: C, rows of `choices`; `action_mask` says which there are.
        max_tokens: words of a choice.
    """

    max_choices: int
    max_tokens: int

    @property
    def count(self) -> int:
        return self.max_choices

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"choice {j}" for j in range(self.max_choices))


@dataclass(frozen=True)
class Directions:
    """Directions in a panorama: action j leads to column `columns[j]` of the grid.

    Attributes:
        max_directions: how many there are at most; `action_mask` says which.
        stop: one action more, the last, ends the walk; its column is the one that the agent looks at.
    """

    max_directions: int
    stop: bool = False

    @property
    def count(self) -> int:
        return self.max_directions + self.stop

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"direction {j}" for j in range(self.max_directions)), *(("stop",) if self.stop else ()))


ActionSpec = FixedActions | TextChoices | Directions


@dataclass(frozen=True)
class EnvSpec:
    """Description of an environment that worlds, adapters, networks and learners agree on.

    Attributes:
        fields: everything the world writes, in order.
        num_agents: n.
        actions: what an agent chooses from.
        words: the word of each id, id 0 being padding; empty where a world's ids are not words.
        names: words that name a thing and say nothing of it: which of them stands where changes with every game.
        max_cycles: steps after which an episode is truncated.
        time_limit_is_loss: a time-out is a loss with its own reward: the value after it is 0.
        outcome: WON or SCORE.
        capabilities: of CAPABILITIES.
        state_parts: (name, shape) of the parts of `state()`, in order; empty without that capability.
        tokenizer: names what turns texts into ids, where that is no list of words.
        source: where its sentences are from, for reports; "" for a world with but one answer.

    Raises:
        ConfigurationError: another outcome or capability, or two fields of one name.
    """

    __repr__ = brief

    fields: tuple[Field, ...]
    num_agents: int
    actions: ActionSpec
    words: tuple[str, ...]
    max_cycles: int
    time_limit_is_loss: bool = True
    outcome: Outcome = WON
    capabilities: frozenset[str] = frozenset()
    state_parts: tuple[tuple[str, tuple[int, ...]], ...] = ()
    tokenizer: str = ""
    source: str = ""
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_choice("outcome of a world", self.outcome, get_args(Outcome))
        for name in sorted(self.capabilities):
            check_choice("capability", name, CAPABILITIES)
        if len(self._by_name) < len(self.fields):
            names = ", ".join(field.name for field in self.fields)
            raise ConfigurationError(f"each field of a world has a name of its own, got {names}")

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    def __getitem__(self, name: str) -> Field:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def with_mask(self) -> EnvSpec:
        """Return this spec with the field `action_mask`, for envs that need none: every action always counts."""
        if MASK in self:
            return self
        return replace(self, fields=(*self.fields, Mask(MASK, (self.num_actions,))))

    @property
    def num_actions(self) -> int:
        return self.actions.count

    @property
    def tells(self) -> int:
        """How many actions, the last, tell a row of the manual."""
        return self.actions.tells if isinstance(self.actions, FixedActions) else 0

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, padding included."""
        return max(len(self.words), *(int(f.high) + 1 for f in self.fields if isinstance(f, Grid | Text)), 1)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.words[1:])

    @property
    def vocabulary_hash(self) -> str:
        """Equal hashes: every id means the same."""
        return self.tokenizer or self.vocabulary.hash

    @property
    def grid(self) -> Grid:
        """The map; ConfigurationError for a world that shows none."""
        for field in self.fields:
            if isinstance(field, Grid):
                return field
        raise ConfigurationError("this world shows no grid")

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        return tuple(field for field in self.fields if isinstance(field, Text))

    @cached_property
    def shared_texts(self) -> tuple[str, ...]:
        """Names of what all agents read, once an episode: what `info["document"]` is the key of."""
        return tuple(text.name for text in self.texts if text.shared and text.lifetime == EPISODE)

    @cached_property
    def unshared_texts(self) -> frozenset[str]:
        """Names of the other texts: those of single agents, and those that change within an episode."""
        return frozenset(text.name for text in self.texts).difference(self.shared_texts)

    @property
    def lasting_texts(self) -> tuple[str, ...]:
        """Names of the texts that last an episode, choices apart: the task, a manual, a goal."""
        return tuple(text.name for text in self.texts if text.lifetime == EPISODE and text.name != CHOICES)

    @cached_property
    def own_fields(self) -> tuple[Field, ...]:
        """Fields that are no texts."""
        return tuple(field for field in self.fields if not isinstance(field, Text))

    @property
    def state_size(self) -> int:
        """Numbers in a row's `state()`."""
        return sum(math.prod(shape) for _, shape in self.state_parts)

    def state_layout(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """Return name → (slice, shape), the places of parts in `state()`."""
        places, start = {}, 0
        for name, shape in self.state_parts:
            stop = start + math.prod(shape)
            places[name] = slice(start, stop), shape
            start = stop
        return places

    def reads_alike(self, other: EnvSpec) -> bool:
        """Tell whether agents made for one spec can play with the other: only sizes of map and texts may differ."""

        def without_size(field: Field) -> tuple[int, ...] | int:
            return len(field.shape) if isinstance(field, Text) else field.shape[2 * isinstance(field, Grid) :]

        def but_size(spec: EnvSpec) -> tuple[Any, ...]:
            shapes = [(f.name, without_size(f), f.shared) for f in spec.fields]
            return shapes, spec.num_agents, spec.actions, spec.vocabulary_size, spec.words, spec.tokenizer

        return but_size(self) == but_size(other)

    def space(self) -> spaces.Dict:
        """The Gymnasium space of one agent's observation."""
        return spaces.Dict({f.name: spaces.Box(f.low, f.high, f.shape, np.dtype(f.dtype).type) for f in self.fields})

    def require_memory(self, num_envs: int) -> None:
        """Raise a ConfigurationError where the arrays of B rows are larger than half of this machine's memory.

        Observations are there twice, as episodes that ended keep their last; half of the memory is left to all else.
        """
        each = sum(
            math.prod(f.shape) * np.dtype(f.dtype).itemsize * (1 if f.shared else self.num_agents) for f in self.fields
        )
        games = f"{num_envs:,} games of this world take" if num_envs > 1 else "a game of this world takes"
        advice = "choose fewer games, fewer agents or a smaller map"
        require_memory(num_envs * (2 * each + 2 * self.state_size), games, advice)

    def allocate(self, num_envs: int) -> dict[str, np.ndarray]:
        """Zeroed batch buffers: [B, *shape] for shared fields, [B, n, *shape] for the others."""
        agents = (self.num_agents,)
        return {f.name: np.zeros((num_envs, *(() if f.shared else agents), *f.shape), f.dtype) for f in self.fields}
