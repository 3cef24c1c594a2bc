"""What an agent can go by that reads a part of the manual: for oracles that play, tell and guess from that alone.

Some statements need not be read: the map says which monster is the distractor where it alone shares its name with none,
and the statement about its team says as much as that about the goal's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from magrounding.envs.rtfm.arrays import (
    COLUMN,
    COLUMN_STEP,
    DISTRACTOR_TEAM,
    ELEMENT,
    FIRST_TELL,
    PRESENT,
    ROW,
    ROW_STEP,
    STAY,
    TARGET,
    TEAM,
    WORD_2,
)
from magrounding.envs.rtfm.telling import ELEMENTS, STATEMENT
from magrounding.seeding import ORDER

if TYPE_CHECKING:
    from magrounding.envs.rtfm.world import RTFMWorld

TELLING_COST = 0.05
"""An agent tells only where to stand still costs at most this share of its chances."""
_SPARING_COST = 0.1
"""It goes around an item that others may need where that costs less than this share."""


class Informed:
    """Games whose manual is split, those of R rows of a world, as their agents can know them."""

    def __init__(self, world: RTFMWorld, rows: np.ndarray) -> None:
        rules, shown, scalars = world._rules, world.observation, world._games.scalars[rows]
        self._keys, self._entities = world._games.keys[rows, ORDER], world._games.entities[rows]
        self._agents, items = slice(rules.agents), rules.agents + rules.monsters
        self._monsters, self._items = slice(rules.agents, items), slice(items, None)
        self._lavish = rules.tells < 0
        self._legal, told_by = shown["action_mask"][rows] == 1, shown["told_by"][rows]
        self._known, self._own = told_by >= 0, told_by == 0  # [R, n, S]
        self._statements = scalars[:, STATEMENT:]  # in each row of the manual [R, S]
        self._goal, other = (self._statements == scalars[:, [team]] + ELEMENTS for team in (TEAM, DISTRACTOR_TEAM))
        monsters = self._entities[:, self._monsters]
        names, self._targets = monsters[..., WORD_2], monsters[..., TARGET] == 1
        self._living = monsters[..., PRESENT] == 1
        alone = ((names[:, :, None] == names[:, None]).sum(2) == 1).sum(1) == 1
        self._named = (self._living <= self._targets).all(1) | (alone & (rules.monsters > 2))
        self._certain = self._named[:, None] | (self._known & (self._goal | other)[:, None]).any(2)

    def needed(self) -> np.ndarray:
        """Rows of the manual [R, S] that say what beats targets and, where only they do, who the targets are."""
        about = (self._about(self._monsters) & self._targets[..., None]).any(1)
        return about | (self._goal & ~self._named[:, None])

    def imagine(self, player: int, guesses: bool) -> np.ndarray:
        """Return the entities [R, E, NUM_COLUMNS] as an agent sees them.

        Without guesses an item is of no use whose element is unknown to it, and none is as long as the targets are: so
        it keeps away from monsters. With guesses it has, for all of a game, one that fits what it knows: who the
        distractor is, and which element each item beats. An agent that owns all statements about elements then plays as
        if alone, and the others keep away.
        """
        seen, certain = self._entities.copy(), self._certain[:, [player]]
        element, targets = seen[:, self._items, ELEMENT], seen[:, self._monsters, TARGET]
        closed = (self._about(self._items) & self._known[:, player, None]).any(2)
        if not guesses:
            element[~(closed & certain)] = -1
            return seen
        factors = np.random.default_rng(0).integers(2**63, size=1 + element.shape[1], dtype=np.uint64) | np.uint64(1)
        draws = (self._keys[:, None] * factors >> np.uint64(40)).astype(np.int64)
        monsters = targets.shape[1]
        targets[:] = np.where(certain, targets, draws[:, :1] % monsters != np.arange(monsters))
        order = np.where(closed, 1 << 40, draws[:, 1:]).argsort(1, kind="stable")
        np.put_along_axis(element, closed.argsort(1, kind="stable"), np.take_along_axis(element, order, 1), 1)
        alone = (self._own[:, self._agents] | (self._statements >= ELEMENTS)[:, None]).all(2)
        element[alone.any(1) & ~alone[:, player]] = -1
        present = seen[:, self._agents, PRESENT]
        present[alone[:, [player]] & (np.arange(present.shape[1]) != player)] = 0
        return seen

    def spare(self, player: int, seen: np.ndarray, labels: np.ndarray, costs: np.ndarray) -> None:
        """Label [R, A], instead of moves that would take an item of no use to the agent, others that cost little."""
        items = seen[:, self._items, None]
        cells = np.stack((ROW_STEP, COLUMN_STEP), 1) + seen[:, player, None][..., [ROW, COLUMN]]
        there = (items[..., [ROW, COLUMN]] == cells[:, None]).all(-1)
        takes = (there & (items[..., PRESENT] == 1) & (items[..., ELEMENT] < 0)).any(1)
        cost = np.where(self._legal[:, player, :FIRST_TELL] & ~takes, costs[:, :FIRST_TELL], 1)
        least = cost.min(1, keepdims=True)
        changed = (labels[:, :FIRST_TELL] & takes).any(1) & (least[:, 0] < _SPARING_COST)
        labels[changed, :FIRST_TELL] = (cost <= least)[changed]

    def tell(self, labels: np.ndarray, costs: np.ndarray, tells: bool) -> None:
        """Label [R, n, A] what to tell, if agents ever do, given each agent's best moves and their costs.

        That is what a teammate may need and was not told: who the targets are, then what beats them. An agent that does
        not know them tells what beats any monster that lives, if it may tell as much as it likes.
        """
        still = ~self._legal[..., STAY + 1 : FIRST_TELL].any(-1)
        labels[..., FIRST_TELL:] = labels[still] = False
        labels[still, STAY] = True
        costs[still] = 0
        if not tells:
            return
        legal = self._legal[..., FIRST_TELL:]
        fought = self._living[:, None] & np.where(self._certain[..., None], self._targets[:, None], self._lavish)
        first = legal & (self._goal & ~self._named[:, None])[:, None]
        rest = legal & (self._about(self._monsters)[:, None] & fought[..., None]).any(2)
        told = np.where(first.any(2, keepdims=True), first, rest)
        costs[..., FIRST_TELL:] = costs[..., [STAY]]
        speaks = told.any(2) & (costs[..., STAY] <= TELLING_COST)
        costs[speaks], labels[speaks] = 0, False
        labels[..., FIRST_TELL:] = told & speaks[..., None]

    def _about(self, slots: slice) -> np.ndarray:
        """Whether each row of the manual is about the element of each of these entities, [R, E, S]."""
        return self._entities[:, slots, ELEMENT, None] == self._statements[:, None]
