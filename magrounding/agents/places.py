"""Places: a map of what the views of an episode have shown, and what lies where on the ways from the agent.

The map lies still: its middle is where the episode began. The fields `displacement` and `direction` say how far the
agent has come and which way it looks; both follow from its own moves.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Batch
from magrounding.agents.ways import BANDS, OUT_OF_REACH, Found, find_things
from magrounding.errors import ConfigurationError
from magrounding.jit import cached_njit
from magrounding.spec import EnvSpec

DISPLACEMENT, DIRECTION = "displacement", "direction"
"""[2], rows south and columns east of where the episode began; [1], 0 east, 1 south, 2 west, 3 north."""

REGIONS = 4 * (OUT_OF_REACH + 1)
"""A region is a direction (0 ahead, 1 right, 2 behind, 3 left) and a band: direction · (OUT_OF_REACH + 1) + band."""

_MOST_SYMBOLS = 2**20
"""Most tuples of words that a cell could show: there is a table of them."""

_SOUTH, _EAST = (0, 1, 0, -1), (1, 0, -1, 0)
"""Rows down and columns to the right of a step in each direction."""

_PASSABLE, _THING = 1, 2


class Places:
    """Maps of the places that episodes have shown.

    Ways lead over cells that were seen and can be passed, where they were last seen so; things at their ends may stand
    in the way. Of ways that are equally long, that counts which goes straight on, then right, left and back.

    Args:
        spec: of a world whose map turns with the agent.

    Attributes:
        size: numbers of a map, S · S + 1.
        regions: REGIONS.
        planes: ids of a cell.

    Raises:
        ConfigurationError: a world that shows no displacement, or does not say what can be passed.
    """

    regions = REGIONS

    def __init__(self, spec: EnvSpec) -> None:
        grid = self.grid = spec.grid
        if DISPLACEMENT not in spec or DIRECTION not in spec or grid.own_cell is None or not grid.passable_ids:
            raise ConfigurationError(
                f"a map of places needs the fields {DISPLACEMENT} and {DIRECTION}, and a map that says what can be "
                "passed: set displacement to true where the world has that option, or places to false"
            )
        self.vocabulary, planes = spec.vocabulary_size, grid.shape[2]
        self.planes = planes
        if self.vocabulary**planes > _MOST_SYMBOLS:
            raise ConfigurationError(
                f"a map of places holds at most {_MOST_SYMBOLS:,} symbols, cells of this world have "
                f"{self.vocabulary:,} ** {planes}: set places to false"
            )
        self.side = 2 * int(spec[DISPLACEMENT].high) + 3  # walls around the farthest cells
        self.size = self.side**2 + 1
        self._own_cell = grid.own_cell
        self.own_place = grid.own_cell[0] * grid.width + grid.own_cell[1]
        self._bands = np.searchsorted(BANDS, np.arange(self.size))
        words = np.indices((self.vocabulary,) * planes).reshape(planes, -1)
        passable, hidden = (np.isin(words, ids).any(0) for ids in (grid.passable_ids, grid.hidden_ids))
        kinds = passable * _PASSABLE + ~np.isin(words[0], grid.scenery_ids) * _THING
        self._kinds = np.where(hidden, -1, kinds).astype(np.int8)

    def follow(self, batch: Batch, before: Tensor | None) -> Found:
        """Add views to the maps.

        Args:
            batch: T steps of B episodes.
            before: [B, S · S + 1] the maps before the first step; None: empty ones.
        """
        shape, device = batch.restarts.shape, batch.restarts.device
        grid, displacement, direction = (
            batch.observation[name].cpu().contiguous().numpy() for name in (self.grid.name, DISPLACEMENT, DIRECTION)
        )
        maps = np.zeros((shape[0] + 1, shape[1], self.size), np.float32)
        if before is not None:
            maps[0] = before.detach().cpu().numpy()
        unexplored = np.empty(shape[0] * shape[1], np.int64)
        restarts = batch.restarts.cpu().numpy()
        seen = grid, displacement, direction[..., 0], restarts
        known = *self._own_cell, self.vocabulary, self._kinds, self._bands, maps
        things = find_things(lambda things: _follow(*seen, *known, things, unexplored), 64 * len(unexplored))
        step, code, region, sector = torch.from_numpy(things).to(device).unbind(1)
        planes = [code // self.vocabulary**k % self.vocabulary for k in reversed(range(self.grid.shape[2]))]
        return Found(
            torch.from_numpy(maps[1:]).to(device),
            step,
            torch.stack(planes, 1),
            region,
            torch.from_numpy(unexplored).to(device),
            sector,
        )


@cached_njit()
def _sector(down, right, face):
    """Return the sector of what lies rows down and columns right of where the episode began, with its first face."""
    ahead = _SOUTH[face] * down + _EAST[face] * right
    aside = _SOUTH[(face + 1) % 4] * down + _EAST[(face + 1) % 4] * right
    return 3 * (1 + np.sign(ahead)) + 1 + np.sign(aside)


@cached_njit()
def _follow(
    grid, displacement, direction, restarts, own_row, own_column, vocabulary, kinds, bands, maps, things, unexplored
):
    """Write maps [1:], things and unexplored; see `Found`.

    Args:
        grid, displacement: [T, B, H, W, K] and [T, B, 2], as observed.
        direction, restarts: [T, B].
        own_row, own_column: where the agent stands in each view.
        vocabulary: V; a symbol's number has its words as digits.
        kinds: [V ** K] int8, what is true of a symbol, _PASSABLE and _THING; -1 where it hides what is there.
        bands: [S · S + 1], the band of ways of each length.
        maps: [T + 1, B, S · S + 1]; the first is read.
        things: [capacity, 4] (step, symbol, region, sector).
        unexplored: [T · B].

    Returns:
        how many things there are: those beyond the capacity are missing.
    """
    steps, games, height, width, planes = grid.shape
    size = maps.shape[2] - 1
    side = int(np.sqrt(size))
    middle = side // 2
    per_direction = OUT_OF_REACH + 1
    turns = (0, 1, 3, 2)
    # The cells of the search, in order: where, first step, last step, length of the way.
    at_row, at_column = np.empty(size, np.int64), np.empty(size, np.int64)
    first, last, length = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    reached, region = np.full(size, -1, np.int64), np.empty(size, np.int64)
    count = 0
    for t in range(steps):
        for b in range(games):
            n, known = t * games + b, maps[t + 1, b]
            face = int(direction[t, b])
            if restarts[t, b]:
                known[:] = 0
            else:
                known[:] = maps[t, b]
            if not known[size]:  # an empty memory begins an episode, too
                known[size] = 1 + face
            first_face = int(known[size]) - 1
            row, column = int(displacement[t, b, 0]) + middle, int(displacement[t, b, 1]) + middle
            for i in range(height):
                for j in range(width):
                    ahead, right = own_row - i, j - own_column
                    y = row + _SOUTH[face] * ahead + _EAST[face] * right
                    x = column + _EAST[face] * ahead - _SOUTH[face] * right
                    if (ahead == 0 and right == 0) or y < 0 or x < 0 or y >= side or x >= side:
                        continue  # the agent's own cell shows what it carries
                    code = 0
                    for k in range(planes):
                        code = code * vocabulary + int(grid[t, b, i, j, k])
                    if code and kinds[code] >= 0:
                        known[y * side + x] = code
            unexplored[n] = REGIONS
            at_row[0], at_column[0], last[0], length[0] = row, column, face, 0
            reached[row * side + column] = n
            here, end = 0, 1
            while here < end:
                for turn in turns:
                    ahead = (last[here] + turn) % 4
                    y, x = at_row[here] + _SOUTH[ahead], at_column[here] + _EAST[ahead]
                    place = y * side + x
                    if y < 0 or x < 0 or y >= side or x >= side or reached[place] == n:
                        continue
                    reached[place] = n
                    start = first[here] if here else turn
                    region[place] = start * per_direction + bands[length[here] + 1]
                    code = int(known[place])
                    if code and kinds[code] & _PASSABLE:
                        at_row[end], at_column[end], first[end], last[end] = y, x, start, ahead
                        length[end] = length[here] + 1
                        end += 1
                    if not code and unexplored[n] == REGIONS:
                        unexplored[n] = region[place]
                here += 1
            for place in range(size):
                code = int(known[place])
                if not code or not kinds[code] & _THING or place == row * side + column:
                    continue
                if reached[place] != n:
                    down, right = place // side - row, place % side - column
                    if abs(down) > abs(right):
                        way = 1 if down > 0 else 3
                    else:
                        way = 0 if right > 0 else 2
                    region[place] = (way - face) % 4 * per_direction + OUT_OF_REACH
                if count < len(things):
                    things[count, 0], things[count, 1], things[count, 2] = n, code, region[place]
                    things[count, 3] = _sector(place // side - middle, place % side - middle, first_face)
                count += 1
    return count
