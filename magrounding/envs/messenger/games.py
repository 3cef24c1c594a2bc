"""Messenger and MaMessenger: worlds with all options chosen and checked, not yet started."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations, product
from typing import Annotated, ClassVar

import numpy as np

from magrounding import spec
from magrounding.envs.messenger.arrays import (
    ACTION_NAMES,
    AGENT_WIDTH,
    ALLY_ID,
    ALLY_WITH_MESSAGE_ID,
    CHASING,
    FIXED_ROLES,
    FLEEING,
    IMMOVABLE,
    ME_ID,
    ME_WITH_MESSAGE_ID,
    ROLES,
    SIZE,
    STARTING_CELLS,
    TEAMMATE_WIDTH,
    WANDERING,
)
from magrounding.envs.messenger.manual import LAYOUTS, STATEMENTS, STREAM, Corpus, find_corpus
from magrounding.envs.messenger.sentences import SPLITS, sentences_of
from magrounding.errors import ConfigurationError
from magrounding.options import WorldOptions
from magrounding.schema import Count, OneOf, Share
from magrounding.vocabulary import PAD


@dataclass(frozen=True)
class Stage:
    """Entities on the board, their movements and the words of manuals.

    Attributes:
        max_cycles: limit of steps.
        cells: [column, row] of where entities (and agents without a place of their own) begin.
        centre: the agents all begin in the middle, [5, 5]; else the one agent begins on one of `cells`.
        moves: "still", "wander" (at random) or "roles" (each kind chases, flees or stands, as the manual says).
        delivers: a message has to be taken to a goal; else a contact with either is the end of an agent's part.
        decoys: a decoy of the message and one of the goal, and a false statement.
        begins_with_message: how often in ten games the agents begin with messages.
        says_nothing: how often in a hundred a sentence is silent about movement. Where nothing moves, the corpus
            decides: of all sentences that say "immovable" or are silent each is as likely, in our own half and half.
        pick_up: reward for taking a message.
        team: rules of several agents: rewards of an end are ±1 for all.
    """

    max_cycles: int
    cells: tuple[tuple[int, int], ...]
    centre: bool = True
    moves: str = "still"
    delivers: bool = False
    decoys: bool = False
    begins_with_message: int = 0
    says_nothing: int = 50
    pick_up: float = 0.0
    team: bool = False

    def movements(self, new_dynamics: bool) -> np.ndarray:
        """[M, 5] of enemy, message, goal and of the two decoys, each differing from what it mimics and the other."""
        if self.moves != "roles":
            return np.full((1, 5), IMMOVABLE if self.moves == "still" else WANDERING, np.int64)
        kinds = CHASING, FLEEING, IMMOVABLE
        ways = product(kinds, repeat=3) if new_dynamics and not self.decoys else permutations(kinds)
        rows = []
        for enemy, message, goal in ways:
            decoys = [(m, g) for m, g in product(kinds, repeat=2) if m != message and g != goal and m != g]
            rows += [(enemy, message, goal, m, g) for m, g in (decoys if self.decoys else [(IMMOVABLE, IMMOVABLE)])]
        return np.array(rows, np.int64)

    def starts(self, agents: int) -> np.ndarray:
        """Return [S, slots, 2] rows and columns, or none where entities are to be scattered around the middle."""
        entities = 1 + 2 * agents + 2 * self.decoys
        middle = [(5, 5)] * agents if self.centre else []
        if self.team and agents != 2:
            return np.zeros((0, agents + entities, 2), np.int64)
        places = permutations(self.cells, entities if self.centre else entities + 1)
        return np.array([[(row, column) for column, row in (*middle, *chosen)] for chosen in places], np.int64)


STAGES = {
    "s1": Stage(max_cycles=4, cells=((5, 3), (3, 5), (7, 5), (5, 7)), begins_with_message=2),
    "s2": Stage(
        max_cycles=64,
        cells=((2, 2), (7, 2), (2, 7), (7, 7)),
        centre=False,
        moves="roles",
        delivers=True,
        says_nothing=15,
        pick_up=0.5,
    ),
    "s3": Stage(
        max_cycles=128,
        cells=((1, 6), (2, 1), (5, 4), (5, 9), (8, 1), (9, 6)),
        centre=False,
        moves="roles",
        delivers=True,
        decoys=True,
        says_nothing=0,
        pick_up=0.5,
    ),
}
"""MESSENGER (Hanjie et al. 2021)."""

_AROUND = ((4, 7), (6, 7), (5, 3), (3, 5), (7, 5))

TEAM_STAGES = {
    "s1": Stage(max_cycles=4, cells=_AROUND, begins_with_message=2, team=True),
    "s2": Stage(max_cycles=32, cells=_AROUND, moves="wander", begins_with_message=2, says_nothing=100, team=True),
    "s3": Stage(max_cycles=64, cells=_AROUND, moves="wander", delivers=True, says_nothing=100, pick_up=0.2, team=True),
    "s4": Stage(max_cycles=64, cells=_AROUND, moves="roles", delivers=True, says_nothing=0, pick_up=0.2, team=True),
}
"""Multi-agent MESSENGER (Ding et al. 2023); s4 is ours."""


_MOST_OCCUPANTS = 6


@dataclass(frozen=True, kw_only=True)
class MessengerGame(WorldOptions):
    """Options that all worlds of MESSENGER have.

    Attributes:
        agents: number of agents, n.
        split: "train": both parts of the training games, "train_mc" (entities change roles) and "train_sc" (they never
            do). "val" and "test": no entity has a role that it had in training, and the three share no sentence.
            "test_seen_dynamics": "test" with training's combinations of movements, which makes a difference in S2 of
            `messenger` and S4 of `ma_messenger` alone.
        max_cycles: steps after which a game is lost by time-out; None for the limit of the stage: 4, 64 and 128 in S1
            to S3 of `messenger`, 4, 32, 64 and 64 in S1 to S4 of `ma_messenger`.
        manual: "true", or "reassigned" for one in which every description names another role: for tests of reading.
        corpus: folder with text_train.json, text_val.json and text_test.json to take the sentences from (see
            `manual.find_corpus`), relative to the current one; None for our own.
        game_id: the manual is one line, the symbols of enemy, message and goal, instead of sentences: for agents that
            need not read (the ablation Game-ID of EMMA).
        layout: how the descriptions lie in rows: "statements", one a row; "paragraph", all in one row, in the order
            that rows would have; "stream", the same without punctuation (words without any letter or digit).
        omission: probability of each description that a game does not need to be left out of its manual. Needed is what
            says where to go: the description of the message where agents begin without one, and that of the goal where
            they begin with one or have to bring it there. The enemy's is not, nor those of decoys, nor the false one:
            what no description makes a message or a goal is to be kept away from. 0: whole manuals.
        fixed_roles: share of the games of `train` whose entities never change roles.

    Raises:
        ConfigurationError: an option out of its range, a layout or an omission of symbols (`game_id`), or more agents
            than the board has room for.
    """

    implementation: ClassVar[str] = "magrounding.envs.messenger.world:MessengerWorld"
    adjustable: ClassVar[tuple[str, ...]] = ("omission", "fixed_roles")

    agents: Count = 1
    split: Annotated[str, OneOf(SPLITS)] = "train"
    max_cycles: Count | None = None
    manual: Annotated[str, OneOf(("true", "reassigned"))] = "true"
    corpus: str | None = None
    game_id: bool = False
    layout: Annotated[str, OneOf(LAYOUTS)] = STATEMENTS
    omission: Share = 0.0
    fixed_roles: Share = FIXED_ROLES

    def __post_init__(self) -> None:
        super().__post_init__()
        most = (len(STARTING_CELLS) - 1) // 2
        if self.agents > most:
            raise ConfigurationError(
                f"{self.agents} agents need {1 + 2 * self.agents} cells around the middle, the board has "
                f"{len(STARTING_CELLS)}: at most {most} agents"
            )
        if self.game_id and (self.omission or self.layout != STATEMENTS):
            raise ConfigurationError(
                "game_id makes the manual one line of symbols, and omission and layout are about descriptions: "
                "leave out game_id, or both of these"
            )

    @property
    @abstractmethod
    def kind(self) -> Stage:
        """The stage: entities, their movements and the manual's words."""

    @property
    def limit(self) -> int:
        """Steps after which a game is lost by time-out."""
        return self.kind.max_cycles if self.max_cycles is None else self.max_cycles

    @property
    def slots(self) -> int:
        """Agents, the enemy, messages, goals and decoys."""
        return 3 * self.agents + 1 + 2 * self.kind.decoys

    @property
    def statements(self) -> int:
        """Descriptions of a manual that has sentences."""
        return 2 * len(ROLES) if self.kind.decoys else len(ROLES)

    @property
    def occupants(self) -> int:
        """K: occupants that a cell shows."""
        return min(self.slots, _MOST_OCCUPANTS)

    def describe(self) -> spec.EnvSpec:
        """Describe the world; DataNotFound for a corpus that is missing, damaged, or lacks a sentence."""
        return _describe(self, find_corpus(self.corpus))


@dataclass(frozen=True, kw_only=True)
class Messenger(MessengerGame):
    """MESSENGER for one agent (Hanjie et al. 2021).

    Attributes:
        stage: one of STAGES.
    """

    stage: Annotated[str, OneOf(STAGES)] = "s1"
    agents: int = field(default=1, init=False)

    @property
    def kind(self) -> Stage:
        return STAGES[self.stage]


@dataclass(frozen=True, kw_only=True)
class MaMessenger(MessengerGame):
    """Multi-agent MESSENGER (Ding et al. 2023).

    Attributes:
        stage: one of TEAM_STAGES.
    """

    stage: Annotated[str, OneOf(TEAM_STAGES)] = "s1"
    agents: Count = 2

    @property
    def kind(self) -> Stage:
        return TEAM_STAGES[self.stage]


@lru_cache(maxsize=64)
def _describe(game: MessengerGame, corpus: Corpus) -> spec.EnvSpec:
    sentences_of(game)  # refuses what games would miss
    n, words = game.agents, corpus.vocabulary.words
    longest = corpus.longest[game.layout == STREAM]
    manual = (game.statements, longest) if game.layout == STATEMENTS else (1, game.statements * longest)
    manual = (1, len(ROLES)) if game.game_id else manual
    board = (SIZE, SIZE, game.occupants)
    fields: list[spec.Field] = [
        spec.Grid(
            "grid",
            board,
            0,
            ALLY_WITH_MESSAGE_ID,
            scenery_ids=(PAD,),
            avatar_ids=(ME_ID, ME_WITH_MESSAGE_ID, ALLY_ID, ALLY_WITH_MESSAGE_ID),
        ),
        spec.Field("position", (2,), -1, SIZE - 1),
        spec.Text("manual", manual, 0, len(words) - 1, shared=True, lifetime=spec.EPISODE),
        spec.Field("inventory", (1,), 0, ME_WITH_MESSAGE_ID),
        spec.Mask("action_mask", (len(ACTION_NAMES),)),
    ]
    if n > 1:
        fields.append(spec.Field("teammates", (n - 1, TEAMMATE_WIDTH), -1, ME_WITH_MESSAGE_ID))
    return spec.EnvSpec(
        fields=tuple(fields),
        num_agents=n,
        actions=spec.FixedActions(ACTION_NAMES),
        words=words,
        source=corpus.source,
        max_cycles=game.limit,
        capabilities=frozenset({spec.STATE, spec.SNAPSHOT, spec.PLACES, spec.SCENE, spec.EVENTS}),
        state_parts=(("grid", board), ("agents", (n, AGENT_WIDTH))),
    )
