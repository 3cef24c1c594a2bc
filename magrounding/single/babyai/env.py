"""BabyAIEnv: BabyAI as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from minigrid.envs.babyai import goto, open, pickup, putnext, synth, unlock
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import ObjDesc, PutNextInstr

from magrounding.envs.render import Figure, Scene
from magrounding.seeding import stream_key
from magrounding.single.babyai.expert import Expert
from magrounding.single.babyai.options import ACTIONS, SPLITS, BabyAI
from magrounding.single.babyai.view import View
from magrounding.single.babyai.words import MAX_WORDS, VIEW, VOCABULARY, grid_words, mission_ids
from magrounding.single.one_agent import OneAgentEnv
from magrounding.vector import Observation

RANGE_BITS = 60
"""Split k draws minigrid's seeds from [k · 2**60, (k + 1) · 2**60)."""

NUM_OBJECTS = 18


class PutNext(RoomGridLevel):
    """Put one thing next to another, in nine rooms with 18 objects (the paper's form; minigrid has one of two rooms).

    Args:
        max_steps: limit of every game; None: by the mission.
    """

    def __init__(self, max_steps: int | None = None) -> None:
        super().__init__(num_rows=3, num_cols=3, max_steps=max_steps)

    def gen_mission(self) -> None:
        """Rooms and doors, objects that can all be reached, and two of them for the mission."""
        self.place_agent()
        self.connect_all()
        objects = self.add_distractors(num_distractors=NUM_OBJECTS, all_unique=False)
        self.check_objs_reachable()
        moved, fixed = self._rand_subset(objects, 2)
        self.instrs = PutNextInstr(ObjDesc(moved.type, moved.color), ObjDesc(fixed.type, fixed.color))


class _KeyToBeFound(RoomGridLevel):
    """A level with one locked room, drawn again where every key to it lies within.

    Minigrid means to put the key into another room, but compares the numbers of rooms by `is`, which is false of
    NumPy's: the door cannot be opened in 2.6 % of its games of Unlock, and 5.4 % of GoToImpUnlock.
    """

    def gen_mission(self) -> None:
        super().gen_mission()
        rooms = [room for row in self.room_grid for room in row]
        colors = [door.color for room in rooms if room.locked for door in room.doors if door]
        within_reach = [(thing.type, thing.color) for room in rooms if not room.locked for thing in room.objs]
        if not any(("key", color) in within_reach for color in colors):
            raise RejectSampling("every key to the locked room lies in it")


class Unlock(_KeyToBeFound, unlock.Unlock):
    """Open the door of the locked room."""


class GoToImpUnlock(_KeyToBeFound, goto.GoToImpUnlock):
    """Go to a thing in the locked room."""


_GAMES = {
    "GoToObj": goto.GoToObj,
    "GoToRedBallGrey": goto.GoToRedBallGrey,
    "GoToRedBall": goto.GoToRedBall,
    "GoToLocal": goto.GoToLocal,
    "PutNextLocal": putnext.PutNextLocal,
    "PickupLoc": pickup.PickupLoc,
    "GoToObjMaze": goto.GoTo,
    "GoTo": goto.GoTo,
    "Pickup": pickup.Pickup,
    "UnblockPickup": pickup.UnblockPickup,
    "Open": open.Open,
    "Unlock": Unlock,
    "PutNext": PutNext,
    "Synth": synth.Synth,
    "SynthLoc": synth.SynthLoc,
    "GoToSeq": goto.GoToSeq,
    "SynthSeq": synth.SynthSeq,
    "GoToImpUnlock": GoToImpUnlock,
    "BossLevel": synth.BossLevel,
}


def make_game(level: str, max_steps: int | None = None) -> RoomGridLevel:
    """Minigrid's game of a level.

    Args:
        level: one of LEVELS.
        max_steps: limit of every game; None: by the mission.
    """
    objects = {"num_dists": 1} if level == "GoToObjMaze" else {}
    return _GAMES[level](max_steps=max_steps, **objects)


def game_seed(seed: int, episode: int, split: str) -> int:
    """The seed that minigrid is reset with: a hash of seed and episode, in the range of the split."""
    place = SPLITS.index(split)
    return (place << RANGE_BITS) + (int(stream_key(seed, episode, place)) >> (64 - RANGE_BITS))


_CHANGES_A_CELL = frozenset(ACTIONS.index(name) for name in ("pickup", "drop", "toggle"))


class BabyAIEnv(OneAgentEnv):
    """One game of BabyAI for agent_0; arguments, errors and infos as of `OneAgentEnv`.

    `infos["agent_0"]` has `text` (`goal`, the mission as minigrid words it; `manual`, an empty list), too, and
    `expert_failed` (True) once the bot has given up in this episode.

    Attributes:
        expert_failures: episodes in which the bot was asked and has failed.
        game: minigrid's game; look at it, do not change it.
        game_seed: the seed that it was last reset with.
    """

    id = "babyai"
    frames_per_second = 10

    def __init__(self, config: BabyAI, render_mode: str | None = None) -> None:
        super().__init__(config, render_mode)
        self.expert_failures = 0
        self.game = make_game(config.level, config.max_cycles)
        self.game_seed = -1
        self._view = View(self.game) if config.fast_view else None
        self._mask = np.ones(self._num_actions, np.int8)
        self._goal = np.zeros(MAX_WORDS, np.int16)
        self._start = np.zeros(2, np.int16)
        self._expert: Expert | None = None

    def best_actions(self) -> np.ndarray:
        """Labels [1, 7] bool: what the bot would play now; every action where it has failed or the episode is over.

        Raises:
            CallOrderError: before `reset`, or after `close`.
        """
        self._require_start("best_actions")
        if not self.agents:
            return np.ones((1, len(ACTIONS)), np.bool_)
        if self._expert is None:
            self._expert = Expert(self.game, self._view)
            self.expert_failures += self._expert.failed
        return self._expert.labels()

    def scene(self) -> Scene:
        """Return a picture of what the agent sees: people who play see no more of the map than an agent."""
        self._require_start("scene")
        outcome = ("won" if self._won else "lost") if self._over else ""
        return scene_of(self.game, self._grid, outcome)

    def _draw(self, mode: str) -> str | np.ndarray:
        return ansi(self.game) if mode == "ansi_full" else self.game.get_frame()

    def close(self) -> None:
        """Release what minigrid holds."""
        super().close()
        self.game.close()

    def __getstate__(self) -> dict[str, Any]:
        """All there is: minigrid's game travels as it stands, and with it the bot and its plan."""
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _begin(self, seed: int, episode: int) -> None:
        self.game_seed = game_seed(seed, episode, self.config.split)
        with contextlib.redirect_stdout(io.StringIO()):  # the generator prints what it rejects
            seen, _ = self.game.reset(seed=self.game_seed)
        if self._view is not None:
            self._view.reset()
        self._goal = mission_ids(self.game.mission)
        self._start = self._at()
        self._begin_text("goal", self._goal)
        self._expert = None
        self._look(seen)

    def _play(self, action: int) -> tuple[float, bool, bool]:
        seen, reward, terminated, truncated, _ = self.game.step(action)
        reward, terminated = float(reward), bool(terminated)
        truncated = bool(truncated) and not terminated
        self._won = terminated and reward > 0
        if self._view is not None and action in _CHANGES_A_CELL:
            self._view.update()
        self._look(seen)  # before the bot goes on: it shares the view
        if self._expert is not None and not self._expert.failed and not (terminated or truncated):
            self._expert.follow(action)
            self.expert_failures += self._expert.failed
        return reward, terminated, truncated

    def _at(self) -> np.ndarray:
        """Row and column of the agent, [2] int16."""
        return np.array(self.game.agent_pos[::-1], np.int16)

    def _look(self, seen: dict[str, Any] | None) -> None:
        """Compute the view; `seen` is minigrid's observation, where it computes one."""
        if self._view is not None:
            self._grid = self._view.grid()
        else:
            self._grid = grid_words(seen["image"])  # pyright: ignore[reportOptionalSubscript]  None with our view only

    def _observe(self) -> Observation:
        come = {"displacement": self._at() - self._start} if self.config.displacement else {}
        return {
            "action_mask": self._mask.copy(),
            "direction": np.array([self.game.agent_dir], np.int16),
            **come,
            "goal": self._goal.copy(),
            "grid": self._grid.copy(),
        }

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"text": {"manual": [], "goal": self.game.mission}}
        if self._expert is not None and self._expert.failed:
            info["expert_failed"] = True
        return info


_AGENT = ">v<^"
_THINGS = {"key": "k", "ball": "o", "box": "b"}
_DOORS = {0: "/", 1: "+", 2: "*"}
"""Signs by a door's state: open, closed, locked."""
_SCENERY = [VOCABULARY[kind] for kind in ("unseen", "empty", "wall")]


def ansi(game: RoomGridLevel) -> str:
    """The mission, the whole map with two signs a cell (what, and the first letter of its colour), and what is held."""
    lines = [f"step {game.step_count} of {game.max_steps}", f"goal: {game.mission}", ""]
    at = tuple(map(int, game.agent_pos))
    for y in range(game.height):
        cells = (_AGENT[game.agent_dir] * 2 if (x, y) == at else _signs(game.grid.get(x, y)) for x in range(game.width))
        lines.append("".join(cells).rstrip())
    held = game.carrying
    lines += ["", "holds " + (f"{held.color} {held.type}" if held else "nothing")]
    lines.append("key k, ball o, box b; door: open /, closed +, locked *; the second sign is the colour")
    return "\n".join(lines)


def scene_of(game: RoomGridLevel, grid: np.ndarray, outcome: str) -> Scene:
    """Draw what the agent sees: it stands in the middle of the last row and looks at the first.

    Args:
        game: minigrid's game.
        grid: [7, 7, 3] int16, the observation.
        outcome: see `Scene`.
    """
    kinds = grid[..., 0]
    figures = [Figure(VIEW - 1, VIEW // 2, "agent", "0", "facing up")]
    for row, column in np.argwhere(~np.isin(kinds, _SCENERY)).tolist():
        if (row, column) != (VIEW - 1, VIEW // 2):  # the agent's own cell shows what it carries
            kind, colour, state = map(VOCABULARY.decode, grid[row, column, :, None])
            figures.append(Figure(row, column, "item", kind, f"{state} {colour}".strip()))
    held = game.carrying
    return Scene(
        walls=kinds == VOCABULARY["wall"],
        figures=tuple(figures),
        alive=(True,),
        inventories=(f"{held.color} {held.type}" if held else "",),
        goal=game.mission,
        manual=(),
        step=game.step_count,
        max_cycles=game.max_steps,
        outcome=outcome,
        unseen=kinds == VOCABULARY["unseen"],
    )


def _signs(thing) -> str:
    if thing is None:
        return " ."
    if thing.type == "wall":
        return "##"
    sign = _DOORS[thing.encode()[2]] if thing.type == "door" else _THINGS[thing.type]
    return sign + thing.color[0]
