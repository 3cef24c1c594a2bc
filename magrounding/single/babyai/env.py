"""BabyAIEnv: BabyAI as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from minigrid.envs.babyai import goto, open, pickup, putnext, synth, unlock
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import ObjDesc, PutNextInstr

from magrounding.envs.render import Figure, Scene
from magrounding.envs.world import StepBuffers
from magrounding.errors import ConfigurationError
from magrounding.seeding import stream_key
from magrounding.single.babyai.batch import Batch, BatchStep
from magrounding.single.babyai.expert import Expert
from magrounding.single.babyai.generate import PLANS, generate
from magrounding.single.babyai.options import ACTIONS, SPLITS, BabyAI
from magrounding.single.babyai.words import CODE_TO_WORDS, VIEW, VOCABULARY, cell_codes, mission_ids
from magrounding.single.one_agent import AGENT, OneAgentEnv
from magrounding.vector import Observation, observation_of

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


class BabyAIEnv(OneAgentEnv):
    """One game of BabyAI for agent_0; arguments, errors and infos as of `OneAgentEnv`.

    Minigrid or `generate` makes the game, and the kernels of `Batch` play it: alone in a batch of one, in a vector env
    in a batch with others (`BatchStep`). Minigrid's own game follows when somebody looks at it, as the bot does.

    `infos["agent_0"]` has `text` (`goal`, the mission as minigrid words it; `manual`, an empty list), too, and
    `expert_failed` (True) once the bot has given up in this episode.

    Attributes:
        expert_failures: episodes in which the bot was asked and has failed.
        game_seed: the seed that minigrid's game was last reset with.
    """

    id = "babyai"
    frames_per_second = 10
    step_together = BatchStep

    def __init__(self, config: BabyAI, render_mode: str | None = None) -> None:
        super().__init__(config, render_mode)
        self.expert_failures = 0
        self.game_seed = -1
        self._game = make_game(config.level, config.max_cycles)
        if config.fast_view:
            self._game.gen_obs = dict  # of nothing: kernels see for it
        self._made, self._mission, self._followed = False, "", 0
        self._expert: Expert | None = None
        self.join(Batch(1, self.spec.allocate(1), StepBuffers.allocate(1, 1)), 0)

    def join(self, batch: Batch, row: int) -> None:
        """Play the episodes that begin from now on in a row of a batch."""
        self._batch, self._row = batch, row

    @property
    def game(self) -> RoomGridLevel:
        """Minigrid's game, as it stands now; look at it, do not change it.

        Raises:
            ConfigurationError: this version of minigrid makes another game of the seed.
        """
        if not self._made:
            with contextlib.redirect_stdout(io.StringIO()):  # the generator prints what it rejects
                self._game.reset(seed=self.game_seed)
            self._made = True
            if self._mission and self._game.mission != self._mission:
                raise ConfigurationError(
                    f"minigrid {version('minigrid')} makes other games of {self.config.level}: install 3.2 for its bot"
                )
        for action in self.played[self._followed :]:
            self._game.step(action)
        self._followed = len(self.played)
        return self._game

    def best_actions(self) -> np.ndarray:
        """Labels [1, 7] bool: what the bot would play now; every action where it has failed or the episode is over.

        Raises:
            CallOrderError: before `reset`, or after `close`.
        """
        self._require_start("best_actions")
        if not self.agents:
            return np.ones((1, len(ACTIONS)), np.bool_)
        if self._expert is None:
            remember = partial(self._batch.remember, self._row) if self.config.fast_view else None
            self._expert = Expert(self.game, remember)
            self.expert_failures += self._expert.failed
        return self._expert.labels()

    def follow(self, action: int, over: bool) -> None:
        """Follow the batch, which has played this action: see it, and let a bot that has been asked go on from it."""
        self._look()
        if self._expert is not None and not self._expert.failed and not over:
            self.game  # noqa: B018  the bot looks at it
            self._expert.follow(action)
            self.expert_failures += self._expert.failed

    def scene(self) -> Scene:
        """Return a picture of what the agent sees: people who play see no more of the map than an agent."""
        self._require_start("scene")
        game, grid, at = self.game, self._observe()["grid"], (VIEW - 1, VIEW // 2)
        kinds, held = grid[..., 0], self.game.carrying
        figures = [Figure(*at, "agent", "0", "facing up")]
        for row, column in np.argwhere(~np.isin(kinds, _SCENERY)).tolist():
            if (row, column) != at:  # the agent's own cell shows what it carries
                kind, colour, state = map(VOCABULARY.decode, grid[row, column, :, None])
                figures.append(Figure(row, column, "item", kind, f"{state} {colour}".strip()))
        return Scene(
            walls=kinds == VOCABULARY["wall"],
            figures=tuple(figures),
            alive=(True,),
            inventories=(f"{held.color} {held.type}" if held else "",),
            goal=game.mission,
            manual=(),
            step=game.step_count,
            max_cycles=game.max_steps,
            outcome=("won" if self._won else "lost") if self._over else "",
            unseen=kinds == VOCABULARY["unseen"],
        )

    def _draw(self, mode: str) -> str | np.ndarray:
        return ansi(self.game) if mode == "ansi_full" else self.game.get_frame()

    def close(self) -> None:
        """Release what minigrid holds."""
        super().close()
        self._game.close()

    def __getstate__(self) -> dict[str, Any]:
        """All there is: minigrid's game travels as it stands, and with it the bot and its plan."""
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _begin(self, seed: int, episode: int) -> None:
        self.game_seed = game_seed(seed, episode, self.config.split)
        self._followed, self._expert, self._made, self._mission = 0, None, False, ""
        if plan := PLANS.get(self.config.level):
            self._mission = generate(plan, self.game_seed, self._batch.world, self._row)
            self._limit = self.spec.max_cycles
        else:
            self._batch.read(self._row, self.game)
            self._mission, self._limit = self.game.mission, self.game.max_steps
        self._batch.begin(self._row, self._limit)
        goal = mission_ids(self._mission)
        self._begin_text("goal", goal)
        shown = self._batch.observation
        shown["goal"][self._row], shown["action_mask"][self._row] = goal, True
        self._look()

    def _play(self, action: int) -> tuple[float, bool, bool]:
        self._batch.step(np.array([action]), np.zeros(1, np.bool_))
        out, steps = self._batch.out, len(self.played)
        self._won = bool(out.won[0])
        self.follow(action, bool(out.done[0]))
        return 1 - 0.9 * (steps / self._limit) if self._won else 0.0, self._won, bool(out.truncated[0, 0])

    def _look(self) -> None:
        """See what minigrid sees, where that was asked for."""
        if not self.config.fast_view:
            self._batch.observation["grid"][self._row, 0] = CODE_TO_WORDS[cell_codes(self.game.gen_obs()["image"])]

    def _observe(self) -> Observation:
        seen = observation_of(self.spec, self._batch.observation, self._row, 0)
        return {name: seen[name].copy() for name in self._observation_spaces[AGENT]}

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"text": {"manual": [], "goal": self._mission}}
        if self._expert is not None and self._expert.failed:
            info["expert_failed"] = True
        return info


_SCENERY = [VOCABULARY[kind] for kind in ("unseen", "empty", "wall")]


def ansi(game: RoomGridLevel) -> str:
    """The mission, minigrid's map with two signs a cell (what, the first letter of its colour), and what is held."""
    held = game.carrying
    lines = [f"step {game.step_count} of {game.max_steps}", f"goal: {game.mission}", "", game.pprint_grid(), ""]
    lines.append("holds " + (f"{held.color} {held.type}" if held else "nothing"))
    lines.append("key K, ball A, box B; door: open __, closed D, locked L; the second sign is the colour")
    return "\n".join(lines)
