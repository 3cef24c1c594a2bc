"""ShownLevel: ways over a map that the world itself shows whole, with what each of its actions does to the place.

The sibling of `places.Places` for worlds that keep the map themselves (the field `level`): nothing is remembered here.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Batch
from magrounding.agents.ways import BANDS, OUT_OF_REACH, Found, find_things
from magrounding.errors import ConfigurationError
from magrounding.jit import cached_njit
from magrounding.spec import LEVEL, EnvSpec, FixedActions, Grid

_PASSABLE, _BLOCKED, _STRAIGHT, _THING = 1, 2, 4, 8
_MOST_UNSEEN = 5
"""Unseen cells around a place beyond which more count no more."""
_THINGS = 64
"""Things of a step that there is room for at first."""


class ShownLevel:
    """The level that a world shows.

    Ways lead by the moves of the world's actions, a far one counting as one, and of ways with equally many that counts
    which begins with the move that comes first in the spec. The nearest unseen place is the nearest that can be reached
    and has an unseen cell straight beside it; of equally near ones that with most unseen cells around.

    Args:
        spec: of a world that shows a level.

    Attributes:
        size: 0, nothing is remembered.
        regions: how many there are; a region is a move and a band, move · (OUT_OF_REACH + 1) + band, and the last is
            the agent's own cell.
        planes: ids of a cell.

    Raises:
        ConfigurationError: a world that does not say where the agent is, how it moves, or what can be passed.
    """

    size = 0

    def __init__(self, spec: EnvSpec) -> None:
        grid, actions = spec[LEVEL], spec.actions
        moves = actions.moves if isinstance(actions, FixedActions) else ()
        if not isinstance(grid, Grid) or not moves or not grid.passable_ids or "position" not in spec:
            raise ConfigurationError(
                f"ways over the {LEVEL} of a world need the agent's position, its moves, and what can be passed, which "
                "this world does not say: set places to false"
            )
        self.planes = grid.shape[2]
        self.regions = len(moves) * (OUT_OF_REACH + 1) + 1
        self._moves = np.array([(move.down, move.right, move.far) for move in moves], np.int64)
        self._bands = np.searchsorted(BANDS, np.arange(grid.height * grid.width + 1))
        ids = np.arange(int(grid.high) + 1)
        kinds = np.isin(ids, grid.passable_ids) * _PASSABLE + np.isin(ids, grid.blocked_ids) * _BLOCKED
        kinds += np.isin(ids, grid.straight_ids) * _STRAIGHT
        kinds += ~np.isin(ids, (*grid.scenery_ids, *grid.avatar_ids)) * _THING
        self._kinds = kinds.astype(np.int8)

    def follow(self, batch: Batch, before: Tensor | None) -> Found:
        """Look for ways in T steps of B episodes; nothing is known from before."""
        device = batch.restarts.device
        levels = batch.observation[LEVEL].flatten(0, 1).cpu().contiguous().numpy()
        position = batch.observation["position"].flatten(0, 1).cpu().contiguous().numpy()
        unexplored = np.empty(len(levels), np.int64)
        seen = levels, position, self._kinds, self._moves, self._bands
        things = find_things(lambda things: _find(*seen, things, unexplored), _THINGS * len(levels))
        step, row, column, region = things.T
        symbol = levels[step, row, column].astype(np.int64)
        found = (torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in (step, symbol, region, unexplored))
        return Found(None, *found)


@cached_njit()
def _enters(kinds, r, c, down, right):
    """Return whether a step from a cell leads to one that can be entered."""
    y, x = r + down, c + right
    if y < 0 or x < 0 or y >= kinds.shape[0] or x >= kinds.shape[1]:
        return False
    if not kinds[y, x] & _PASSABLE or kinds[y, x] & _BLOCKED:
        return False
    return down == 0 or right == 0 or not (kinds[y, x] | kinds[r, c]) & _STRAIGHT


@cached_njit()
def _find(levels, position, kinds, moves, bands, things, unexplored):
    """Write things and unexplored; see `Found`.

    Args:
        levels, position: [N, H, W, K] and [N, 2], as observed.
        kinds: [V] int8, what is true of an id.
        moves: [M, 3] rows, columns, and whether the move goes on.
        bands: [H · W + 1], the band of ways of each length.
        things: [capacity, 4] (step, row, column, region).
        unexplored: [N].

    Returns:
        how many things there are: those beyond the capacity are missing.
    """
    steps, height, width, planes = levels.shape
    per_move, own = OUT_OF_REACH + 1, len(moves) * (OUT_OF_REACH + 1)
    cells = np.empty((height, width), np.int8)
    away, first = np.empty((height, width), np.int64), np.empty((height, width), np.int64)
    queue = np.empty((height * width, 2), np.int64)
    count = 0
    for n in range(steps):
        unexplored[n] = own + 1
        row, column = position[n]
        if row < 0:
            continue
        for r in range(height):
            for c in range(width):
                kind = 0
                for k in range(planes):
                    kind |= kinds[levels[n, r, c, k]]
                cells[r, c] = kind
                away[r, c] = -1
        away[row, column], first[row, column] = 0, -1
        queue[0, 0], queue[0, 1] = row, column
        here, end = 0, 1
        while here < end:
            r, c = queue[here]
            here += 1
            for m in range(len(moves)):
                down, right = moves[m, 0], moves[m, 1]
                if not _enters(cells, r, c, down, right):
                    continue
                y, x = r + down, c + right
                while moves[m, 2] and _enters(cells, y, x, down, right):
                    y, x = y + down, x + right
                if away[y, x] < 0:
                    away[y, x] = away[r, c] + 1
                    first[y, x] = m if away[r, c] == 0 else first[r, c]
                    queue[end, 0], queue[end, 1] = y, x
                    end += 1
        least = 2**62
        for r in range(height):
            for c in range(width):
                if away[r, c] > 0:
                    unseen, beside = 0, False
                    for y in range(max(0, r - 1), min(height, r + 2)):
                        for x in range(max(0, c - 1), min(width, c + 2)):
                            if levels[n, y, x, 0] == 0:
                                unseen += 1
                                beside |= y == r or x == c
                    cost = (_MOST_UNSEEN + 1) * away[r, c] - min(unseen, _MOST_UNSEEN)
                    if beside and cost < least:
                        least = cost
                        unexplored[n] = first[r, c] * per_move + bands[away[r, c]]
                if not cells[r, c] & _THING:
                    continue
                if away[r, c] == 0:
                    region = own
                elif away[r, c] > 0:
                    region = first[r, c] * per_move + bands[away[r, c]]
                else:
                    region = _straight(moves, r - row, c - column) * per_move + OUT_OF_REACH
                if count < len(things):
                    things[count, 0], things[count, 1], things[count, 2], things[count, 3] = n, r, c, region
                count += 1
    return count


@cached_njit()
def _straight(moves, down, right):
    """Return the first move in the direction of a place."""
    for m in range(len(moves)):
        if moves[m, 0] == np.sign(down) and moves[m, 1] == np.sign(right):
            return m
    return 0
