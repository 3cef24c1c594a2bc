"""Batch: games of BabyAI in arrays, as they have been generated; `BatchStep`, a step of many in an arena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from minigrid.envs.babyai.core import verifier

from magrounding.envs.world import StepBuffers
from magrounding.jit import FixedTypes
from magrounding.single.babyai import kernels
from magrounding.single.babyai.kernels import BORDER, EMPTY, WALL, Seen, World
from magrounding.single.babyai.options import MAX_SIDE
from magrounding.single.babyai.words import CODE_TO_WORDS, OPAQUE, cell_codes
from magrounding.vector import Observation

_play, _look = FixedTypes(kernels.play), FixedTypes(kernels.look)
_KINDS = {
    verifier.GoToInstr: kernels.GO_TO,
    verifier.OpenInstr: kernels.OPEN,
    verifier.PickupInstr: kernels.PICK_UP,
    verifier.PutNextInstr: kernels.PUT_NEXT,
}


class Batch:
    """B games, which the kernels play once they have been generated, by minigrid (`read`) or by `generate`.

    Attributes:
        world: what decides how the games go on.
        observation: arrays [B, …] of the spec's fields, on show.
        out: what the last step has come to.
    """

    def __init__(self, num_envs: int, observation: Observation, out: StepBuffers) -> None:
        self.world = World.allocate(num_envs, MAX_SIDE)
        self.show_in(observation, out)

    def show_in(self, observation: Observation, out: StepBuffers) -> None:
        """Write what is on show from now on to these arrays."""
        self.observation, self.out = observation, out
        displacement = observation.get("displacement", np.zeros((len(out.done), 1, 2), np.int16))
        self._seen = Seen(observation["grid"], observation["direction"], displacement)

    def read(self, row: int, game: Any) -> None:
        """Read minigrid's game, a `RoomGridLevel` that has just been reset, into a row."""
        world = World(*(array[row] for array in self.world))
        inside = slice(BORDER, BORDER + game.height), slice(BORDER, BORDER + game.width)
        world.codes[:] = WALL
        world.codes[inside] = cell_codes(game.grid.encode())
        world.marks[:], world.clauses[:] = 0, 0
        mark = 1
        for part, instruction in enumerate(_in_turn(game.instrs)):
            both = isinstance(instruction, verifier.AndInstr)
            for k, clause in enumerate((instruction.instr_a, instruction.instr_b) if both else (instruction,)):
                written = world.clauses[2 * part + k]
                written[0] = _KINDS[type(clause)]
                names = ("desc_move", "desc_fixed") if written[0] == kernels.PUT_NEXT else ("desc",)
                for place, name in enumerate(names, 1):
                    written[place] = mark
                    for x, y in getattr(clause, name).obj_poss:
                        world.marks[y + BORDER, x + BORDER] |= mark
                    mark *= 2
        world.scalars[: kernels.DIRECTION + 1] = *(int(at) + BORDER for at in game.agent_pos), game.agent_dir

    def begin(self, row: int, limit: int) -> None:
        """Begin the game that has been written into a row, and show it; it is over after `limit` steps."""
        world = World(*(array[row] for array in self.world))
        world.places[:], world.done[:], world.hands[:] = world.marks, False, -1
        x, y = world.scalars[: kernels.DIRECTION]
        world.scalars[kernels.CARRIED :] = EMPTY, 0, 0, limit, x, y
        _look(row, OPAQUE, CODE_TO_WORDS, self.world, self._seen)

    def step(self, actions: np.ndarray, held: np.ndarray) -> None:
        """Play actions [B] int64 in the rows that are not held, [B] bool."""
        _play(actions, held, OPAQUE, CODE_TO_WORDS, self.world, self._seen, self.out)

    def remember(self, row: int, known: np.ndarray) -> None:
        """Mark in `known` [columns, rows] bool the cells that the agent of a row sees."""
        width, height = known.shape
        known |= self.world.visible[row, BORDER : BORDER + height, BORDER : BORDER + width].T != 0


def _in_turn(instruction: Any) -> tuple[Any, ...]:
    """Return the parts of a mission, those that come first at first."""
    if isinstance(instruction, verifier.BeforeInstr):
        return instruction.instr_a, instruction.instr_b
    if isinstance(instruction, verifier.AfterInstr):
        return instruction.instr_b, instruction.instr_a
    return (instruction,)


class BatchStep:
    """A step of rows of an arena that lie side by side, all at once.

    Args:
        rows: `EnvRow`s of `BabyAIEnv`s, whose games are in one batch from now on.
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows, self._arena = rows, rows[0].arena
        self._places = slice(rows[0].row, rows[0].row + len(rows))
        self._batch = Batch(len(rows), *self._shown())
        for number, each in enumerate(rows):
            each.env.join(self._batch, number)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Show the rows of the copied arena: copies of views would be arrays of their own."""
        vars(self).update(state)
        self._batch.show_in(*self._shown())

    def _shown(self) -> tuple[Observation, StepBuffers]:
        arena, at = self._arena, self._places
        observation = {name: array[at] for name, array in arena.observation.items()}
        return observation, StepBuffers(*(getattr(arena, name)[at] for name in StepBuffers._fields))

    def step(self) -> None:
        """Play the rows' actions; an episode that ends keeps its last observation, and the next one starts."""
        actions, held = self._arena.actions[self._places, 0], self._arena.held[self._places]
        self._batch.step(actions, held)
        over = self._batch.out.done.tolist()
        for row, action, waits, ends in zip(self._rows, actions.tolist(), held.tolist(), over, strict=True):
            if not waits:
                row.env.played.append(action)
                row.env.follow(action, ends)
            if ends:
                row.restart()
