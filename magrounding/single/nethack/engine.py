"""NetHack itself, as nle runs it: seeded for good, one step at a time, its rewards, and its buffers to look at.

nle's `screen_descriptions` is never asked for: describing the screen draws random numbers, which changes the
game.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import nle.nethack
import numpy as np
from nle.env import tasks

from magrounding.single.nethack.options import SILG_TASKS

_NETHACK: Any = nle.nethack
"""nle's module of constants, which come from C."""

_KEYS = ("glyphs", "chars", "colors", "blstats", "message")
_NEVER = 2**62
"""Limit of an episode in nle: ours is counted outside, as nle quits the game at its own."""

_CLASSES = {
    "score": tasks.NetHackScore,
    "gold": tasks.NetHackGold,
    "scout": tasks.NetHackScout,
    "eat": tasks.NetHackEat,
    "staircase": tasks.NetHackStaircase,
    "staircase_pet": tasks.NetHackStaircasePet,
    "oracle": tasks.NetHackOracle,
}


class Outcome(NamedTuple):
    """The task's reward in a step, whether the game is over, and whether nle says that the task is done."""

    reward: float
    done: bool
    reached: bool


class Prompts(tasks.NetHackScore):
    """SILG's three tasks in one game: nle's rewards of gold, scout and score, without their penalties.

    nle copies all that is shown before each step, to compare; three numbers are enough.
    """

    _STATISTIC: ClassVar = {"gold": _NETHACK.NLE_BL_GOLD, "score": _NETHACK.NLE_BL_SCORE}

    def __init__(self) -> None:
        super().__init__(observation_keys=_KEYS, max_episode_steps=_NEVER, fix_moon_phase=True)
        self.prompt = "score"
        self._seen: dict[tuple[int, int], int] = {}
        self._before = 0

    def begin(self) -> None:
        """Start a game."""
        self.reset()
        self._glyphs, self._stats = (self.last_observation[i] for i in (self._glyph_index, self._blstats_index))
        self._seen.clear()
        self._before = 0 if self.prompt == "scout" else int(self._stats[self._STATISTIC[self.prompt]])

    def play(self, key: int) -> Outcome:
        """Press a key, and go on until the game waits for the next."""
        observation, done = self.nethack.step(key)
        _, done = self._perform_known_steps(observation, done, exceptions=True)
        if not self.nethack.in_normal_game():  # nle pays nothing then
            return Outcome(0.0, done, False)
        if self.prompt != "scout":
            now = int(self._stats[self._STATISTIC[self.prompt]])
            gain, self._before = now - self._before, now
            return Outcome(float(gain), done, False)
        stats = self._stats
        place = int(stats[_NETHACK.NLE_BL_DNUM]), int(stats[_NETHACK.NLE_BL_DLEVEL])
        known = int(np.count_nonzero(self._glyphs != _NETHACK.GLYPH_CMAP_OFF))
        gain = known - self._seen.get(place, 0)
        self._seen[place] = known
        return Outcome(float(gain), done, False)


class Engine:
    """One running NetHack, for one of TASKS.

    Attributes:
        glyphs, characters, colours: [21, 79], nle's own buffers, which every step changes: copy what is kept.
        statistics: [27], nle's `blstats`.
        message: [256] uint8.
    """

    def __init__(self, task: str) -> None:
        self._env: Any
        if task in SILG_TASKS:
            self._env = Prompts()
        else:
            self._env = _CLASSES[task](observation_keys=_KEYS, max_episode_steps=_NEVER, fix_moon_phase=True)
        self._own = isinstance(self._env, Prompts)
        self._keys = [int(action) for action in self._env.actions]

    def begin(self, seed: int, prompt: str = "") -> None:
        """Start the game of one of NetHack's seeds; SILG's tasks have a prompt."""
        env = self._env
        env.seed(core=seed, disp=seed, reseed=False)  # reset(seed=) does not reach the game
        if self._own:
            env.prompt = prompt
            env.begin()
        else:
            env.reset()
        self.glyphs, self.characters, self.colours, self.statistics, self.message = env.last_observation[: len(_KEYS)]

    def step(self, action: int) -> Outcome:
        """Play one of the 23 actions."""
        if self._own:
            return self._env.play(self._keys[action])
        _, reward, done, _, info = self._env.step(action)
        return Outcome(float(reward), bool(done), int(info["end_status"]) == 2)  # TASK_SUCCESSFUL, where there is one

    def close(self) -> None:
        self._env.close()
