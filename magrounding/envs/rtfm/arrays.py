"""Memory layout of B rows: the arrays that the kernels share, and the names of their columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Columns of Games.scalars [B, NUM_SCALARS] int64.
SEED, EPISODE, STEP, DRAWS, TEAM, TEAM_DIVISION, ELEMENT_DIVISION, TARGETS_LEFT, OUTCOME = range(9)  # as `compiled`
# A game of `eval_minimal`: the elements whose members its twin exchanges (4 first + second), the distractor's team.
EXCHANGED, DISTRACTOR_TEAM = 9, 10
# Statements that the manual leaves out: bit k is statement k (see `generate`).
OMITTED = 11
NUM_SCALARS = 12
# Columns that only games with a split manual have: the first steps, in which nothing moves and agents may only tell;
# from OWNER and STATEMENT on one for each statement, see `telling`.
TALK, OWNER, STATEMENT, NUM_SPLIT_SCALARS = 12, 13, 20, 27

# Columns of Games.entities [B, E, NUM_COLUMNS] int16. Slots 0 … n-1 are agents, then monsters, then items.
# PRESENT: an agent alive, a monster alive, an item on the floor. WORD_1, WORD_2: what a cell shows ("fire", "goblin").
# ELEMENT: a monster's own, an item's the one it beats. TARGET: 1 for a monster that must die, 0 for the distractor.
# HELD: slot of the item that an agent holds, or -1. MOVE: the queued move. TURN: [k] is the slot that moves k-th.
# KILLS, DIED, ENGAGED: what an agent did in this step (targets killed, died, met the distractor).
ROW, COLUMN, PRESENT, WORD_1, WORD_2, ELEMENT, TARGET, HELD, MOVE, TURN, KILLS, DIED, ENGAGED = range(13)
NUM_COLUMNS = 13

# Columns of facts [F, NUM_FACT_COLUMNS] int64: a claim of a manual and where it stands (see `facts`).
RELATION, SUBJECT, OBJECT, POLARITY, MANUAL_ROW, SUBJECT_FIRST, SUBJECT_LAST, NAME_FIRST, NAME_LAST = range(9)
NUM_FACT_COLUMNS = 9
# Tokens of a template: ids of words, and slots (see `constructions`); from FIRST_CLASS downwards classes of words.
FIRST_LIST, SECOND_LIST, BOTH_LISTS, FIRST_NAME, SECOND_NAME, FIRST_CLASS = -1, -2, -3, -4, -5, -6

STAY, UP, DOWN, LEFT, RIGHT = range(5)
ACTION_NAMES = ("stay", "up", "down", "left", "right")
ROW_STEP = np.array([0, -1, 1, 0, 0], np.int64)
FIRST_TELL = len(ACTION_NAMES)
"""The action `tell 1`: action FIRST_TELL + r tells row r of the manual."""
COLUMN_STEP = np.array([0, 0, 0, -1, 1], np.int64)

TEAMMATE_WIDTH = 4
"""Row, column and the two inventory words of a teammate."""
READINGS = ("all", "kind", "half", "librarian")
"""Who reads which rows of a manual, see `games.MaRtfm`."""
ALL, KIND, HALF, LIBRARIAN = range(len(READINGS))
HEARD = ("own", "another", "none")
"""What is heard of a row that is told: the row, another game's of the same topic, or nothing."""
TRUE_LINES, OTHER_LINES, NO_LINES = range(len(HEARD))
AGENT_WIDTH = 5
"""Numbers of each agent in a state: row, column, alive and the two words of the item held."""


class Rules(NamedTuple):
    """The configuration, as the kernels read it (counts, flags and squared distances; -1 means unlimited)."""

    agents: int
    players: int
    monsters: int
    items: int
    size: int
    occupants: int
    max_cycles: int
    moving: bool
    individual_death: bool
    leave_item: bool
    resample_text: bool
    shuffle_manual: bool
    statements: int
    layout: int
    prose: bool
    pairs: bool
    minimal: bool
    distinct_names: bool
    reading: int
    heard: int
    tells: int
    reassigned: bool
    letters: bool
    sight_squared: float
    chase_squared: float
    side: int
    salt: int
    omission: float
    distraction: float
    decoys: float
    talk: float


class Prose(NamedTuple):
    """Templates of manuals (see `prose`); kinds are modifiers of elements, monsters of teams, fillers.

    Attributes:
        tokens: [T, L] int16 templates.
        pools: [3 kinds, 3 numbers of groups, constructions, 1 + N]: how many templates there are, and which.
        classes: [J, 1 + N] int16: how many words a class has, and which.
        members: [2, 2, M] modifiers and monsters in alphabetical order (−1 behind the last), and the words of each.
        name_words: [2, 4, 4] int16 words of elements and teams.
        comma: id of what stands between the members of a list, 0 for nothing.
    """

    tokens: np.ndarray
    pools: np.ndarray
    classes: np.ndarray
    members: np.ndarray
    name_words: np.ndarray
    comma: int


class Tables(NamedTuple):
    """Tables that episodes are generated from and described with.

    Attributes:
        teams: [ways, 3, g] monsters of each team; elements: [ways, 4, g] modifiers of each element (see `splits`).
        element_orders: [24, 4] the orders of the four elements.
        triples: [P, 3] ids of the letters of rock-paper-scissors.
        monster_words, modifier_words, noun_words, element_words: ids of the names.
        team_lists: [ways, 3], element_lists: [ways, 4]: which list of members a sentence is about (C below).
        team_sentences: [T, 3, C, L], element_sentences: [T, 4, C, L], goal_sentences: [T, 3, 1, G] (see `text`).
        background: [H * W * K] int16, the bare map.
        prose: what other manuals than statements are put together from.
    """

    teams: np.ndarray
    elements: np.ndarray
    element_orders: np.ndarray
    triples: np.ndarray
    monster_words: np.ndarray
    modifier_words: np.ndarray
    noun_words: np.ndarray
    element_words: np.ndarray
    team_lists: np.ndarray
    element_lists: np.ndarray
    team_sentences: np.ndarray
    element_sentences: np.ndarray
    goal_sentences: np.ndarray
    background: np.ndarray
    prose: Prose


class Views(NamedTuple):
    """Observations of B games: the arrays of `EnvSpec`, see `CompiledWorld`; and two that are seen of split manuals.

    Attributes:
        manual: [B, S, L], the whole.
        heard: [B, S, L], what is heard of a row that is told.
        lines: [B, n * S, L], the rows of each agent's manual, and told_by [B, n, S]; without rows where all read all.
    """

    grid: np.ndarray
    position: np.ndarray
    manual: np.ndarray
    goal: np.ndarray
    inventory: np.ndarray
    action_mask: np.ndarray
    teammates: np.ndarray
    heard: np.ndarray
    lines: np.ndarray
    told_by: np.ndarray
