"""What an agent can go by that reads a part of the manual: for oracles that play, tell and guess from that alone.

Some statements need not be read: the map says which monster is the distractor where it alone shares its name with none,
and the statement about its team says as much as that about the goal's.
"""

from __future__ import annotations

import numpy as np

from magrounding.envs.rtfm.arrays import (
    COLUMN,
    COLUMN_STEP,
    DISTRACTOR_TEAM,
    ELEMENT,
    FIRST_TELL,
    PLACE,
    PRESENT,
    ROW,
    ROW_STEP,
    STAY,
    TARGET,
    TEAM,
    WORD_2,
)
from magrounding.envs.rtfm.telling import ELEMENTS
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.seeding import ORDER

_TELLING_COST = 0.05
"""An agent tells only where to stand still costs at most this share of its chances."""
_SPARING_COST = 0.1
"""It goes around an item that others may need where that costs less than this share."""


class Informed:
    """Games whose manual is split, those of R rows of a world, as their agents can know them."""

    def __init__(self, world: RTFMWorld, rows: np.ndarray) -> None:
        rules, games, shown = world._rules, world._games, world.observation
        self._keys, self.entities = games.keys[rows, ORDER], games.entities[rows]
        self._monsters = slice(rules.agents, rules.agents + rules.monsters)
        self._items = slice(self._monsters.stop, self._monsters.stop + rules.items)
        self._mask = shown["action_mask"][rows] == 1
        places = games.scalars[rows, PLACE : PLACE + rules.statements]
        self._statements = places.argsort(1)  # of each row of the manual
        told_by = np.take_along_axis(shown["told_by"][rows], places[:, None], 2)
        self._known, self._own = told_by >= 0, told_by == 0  # [R, n, S] by statement
        self._goal, other = (games.scalars[rows, team] + ELEMENTS for team in (TEAM, DISTRACTOR_TEAM))
        monsters, every = self.entities[:, self._monsters], np.arange(len(rows))
        names, self._targets = monsters[..., WORD_2], monsters[..., TARGET] == 1
        self._living = monsters[..., PRESENT] == 1
        alone = ((names[:, :, None] == names[:, None]).sum(2) == 1).sum(1) == 1
        self._named = (self._living <= self._targets).all(1) | (alone & (rules.monsters > 2))
        self._certain = self._named[:, None] | self._known[every, :, self._goal] | self._known[every, :, other]

    def needed(self) -> np.ndarray:
        """Rows of the manual [R, S] that say what beats targets and, where only they do, who the targets are."""
        return self._rows(self._targets, ~self._named)

    def imagine(self, player: int, guesses: bool) -> np.ndarray:
        """Return the entities [R, E, NUM_COLUMNS] as an agent sees them.

        Without guesses an item is of no use whose element is unknown to it, and none is as long as the targets are: so
        it keeps away from monsters. With guesses it has, for all of a game, one that fits what it knows: who the
        distractor is, and which element each item beats. An agent that owns all statements about elements then plays as
        if alone, and the others keep away.
        """
        seen = self.entities.copy()
        element = seen[:, self._items, ELEMENT]
        closed = np.take_along_axis(self._known[:, player], element.astype(np.int64), 1)
        certain = self._certain[:, player]
        if not guesses:
            element[~(closed & certain[:, None])] = -1
            return seen
        targets, (monsters, items) = seen[:, self._monsters, TARGET], (self._targets.shape[1], element.shape[1])
        factors = np.random.default_rng(0).integers(2**63, size=1 + items, dtype=np.uint64) | np.uint64(1)
        draws = (self._keys[:, None] * factors >> np.uint64(40)).astype(np.int64)
        targets[~certain] = (draws[:, :1] % monsters != np.arange(monsters))[~certain]
        order = np.where(closed, 1 << 40, draws[:, 1:]).argsort(1, kind="stable")
        np.put_along_axis(element, closed.argsort(1, kind="stable"), np.take_along_axis(element, order, 1), 1)
        alone = self._own[:, : self._monsters.start, :ELEMENTS].all(2)
        element[alone.any(1) & ~alone[:, player]] = -1
        present = seen[:, : self._monsters.start, PRESENT]
        present[alone[:, [player]] & (np.arange(present.shape[1]) != player)] = 0
        return seen

    def spare(self, player: int, seen: np.ndarray, labels: np.ndarray, costs: np.ndarray) -> None:
        """Label [R, A], instead of moves that would take an item of no use to the agent, others that cost little."""
        items, legal = seen[:, self._items, None], self._mask[:, player, :FIRST_TELL]
        moves = np.stack((ROW_STEP, COLUMN_STEP), 1) + seen[:, player, None][..., [ROW, COLUMN]]
        met = (items[..., [ROW, COLUMN]] == moves[:, None]).all(-1)
        takes = (met & (items[..., PRESENT] == 1) & (items[..., ELEMENT] < 0)).any(1)
        cost = np.where(legal & ~takes, costs[:, :FIRST_TELL], 1)
        least = cost.min(1, keepdims=True)
        changed = (labels[:, :FIRST_TELL] & takes).any(1) & (least[:, 0] < _SPARING_COST)
        labels[changed, :FIRST_TELL] = (cost <= least)[changed]

    def tell(self, labels: np.ndarray, costs: np.ndarray, tells: bool) -> None:
        """Label [R, n, A] what to tell, if agents ever do, given each agent's best moves and their costs.

        That is what a teammate may need and was not told: who the targets are, then what beats them; of an agent that
        does not know them, what beats any monster that lives.
        """
        still = ~self._mask[..., STAY + 1 : FIRST_TELL].any(-1)
        labels[..., FIRST_TELL:] = labels[still] = False
        costs[still] = 0
        labels[still, STAY] = True
        if not tells:
            return
        goal = self._own[np.arange(len(self._goal)), :, self._goal]
        for player in range(labels.shape[1]):
            certain = self._certain[:, player, None]
            first = self._mask[:, player, FIRST_TELL:] & self._rows(
                self._targets & False, ~self._named & goal[:, player]
            )
            rest = self._mask[:, player, FIRST_TELL:] & self._rows(self._living & (self._targets | ~certain), False)
            told = np.where(first.any(1, keepdims=True), first, rest)
            speaks = told.any(1) & (costs[:, player, STAY] <= _TELLING_COST)
            costs[:, player, FIRST_TELL:] = costs[:, player, [STAY]]
            costs[speaks, player] = 0
            labels[speaks, player] = False
            labels[speaks, player, FIRST_TELL:] = told[speaks]

    def _rows(self, monsters: np.ndarray, goal: np.ndarray | bool) -> np.ndarray:
        """Rows of the manual [R, S] about the elements of monsters [R, k] and, where `goal` [R], the goal's team."""
        statements = np.zeros(self._statements.shape, np.bool_)
        element = self.entities[:, self._monsters, ELEMENT]
        statements[:, :ELEMENTS] = ((element[..., None] == np.arange(ELEMENTS)) & monsters[..., None]).any(1)
        statements[np.arange(len(statements)), self._goal] = goal
        return np.take_along_axis(statements, self._statements, 1)
