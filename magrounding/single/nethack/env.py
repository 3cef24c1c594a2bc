"""NetHackEnv: NetHack as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import nle.nethack
import numpy as np
from nle.env import tasks

from magrounding.errors import ConfigurationError
from magrounding.seeding import LAYOUT, TASK, stream_key
from magrounding.single.nethack.expert import Expert
from magrounding.single.nethack.level import Level
from magrounding.single.nethack.options import (
    GOAL_WORDS,
    GOALS,
    MESSAGE_WORDS,
    PROMPTS,
    SEEDS,
    SILG_TASKS,
    SPLITS,
    STATUS_WORDS,
    THRESHOLDS,
    NetHack,
)
from magrounding.single.nethack.words import BLANK, HEIGHT, SHOWN, WIDTH, all_words, first_ids, status_text, tokenizer
from magrounding.single.one_agent import OneAgentEnv
from magrounding.spec import LEVEL
from magrounding.vector import Observation

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


STEP_COST = 0.02
_REMEMBERED = 2**14
"""Messages and status lines that are kept as ids: most come up again and again."""
_DEPTH = 12
"""Index of the dungeon depth in nle's `blstats`."""

CELL_HEIGHT, CELL_WIDTH, _SIZE = 17, 9, 14

_COLOURS = (
    "555753 cc3c3c 4e9a06 aa6e28 466ebe 965aa0 06989a c8cbc5 888a85 f5783c 8ae234 fce94f 729fcf c88cc8 34e2e2 ffffff"
)
_PALETTE = ["#" + colour for colour in _COLOURS.split()]
"""RGB of NetHack's 16 colours; black, the first, would not be seen as it is."""


class NetHackEnv(OneAgentEnv):
    """One game of NetHack for agent_0; arguments, errors and infos as of `OneAgentEnv`.

    `infos["agent_0"]` has `text` (`goal`, `message`, `status`), too, and in tasks that are not SILG's `score`, the
    rewards so far.

    Attributes:
        prompt: "gold", "scout" or "score" in SILG's tasks; else "".
        gained: sum of the task's own rewards in this episode.
        game_seed: the seed that NetHack was started with.
    """

    id = "nethack"
    _kept = ("_expert", "_advice")

    def __init__(self, config: NetHack, render_mode: str | None = None) -> None:
        super().__init__(config, render_mode)
        self._silg = config.task in SILG_TASKS
        self._limit = config.limit
        self._engine = Engine(config.task)
        self._mask = np.ones(self._num_actions, np.int8)
        self._shown = np.array(SHOWN)
        self._first = first_ids()
        self._planes = 1 + config.characters + config.colours
        self.prompt = ""
        self.gained = 0.0
        self.game_seed = -1
        self._expert: Expert | None = None
        self._advice: int | None = None
        self._level = Level()

    def best_actions(self) -> np.ndarray:
        """Return labels [1, 23] bool of the action that the expert would play; all are true once the episode is over.

        A ConfigurationError in a task that is not SILG's, a CallOrderError before `reset` and after `close`.
        """
        if not self._silg:
            raise ConfigurationError("best_actions() is for SILG's tasks")
        self._require_start("best_actions")
        if not self.agents:
            return np.ones((1, self._num_actions), np.bool_)
        if self._expert is None:
            self._expert = Expert(self.config.stated or self.prompt)
            self._show(self._expert, None)
        if self._advice is None:
            self._advice = self._expert.action()
        return np.arange(self._num_actions)[None] == self._advice

    def _show(self, watching: Expert | Level, action: int | None) -> None:
        """Let the expert or the level look at the screen, after an action."""
        engine = self._engine
        column, row = engine.statistics[:2].tolist()
        depth, message = int(engine.statistics[_DEPTH]), _message(engine.message.tobytes())[0]
        watching.look(engine.glyphs, row, column, depth, message, action)

    def _draw(self, mode: str) -> str | np.ndarray:
        engine, (message, _), (status, _) = self._engine, *self._read()
        lines = (f"goal: {self._goal}", message)
        footer = (status, f"step {len(self.played)} of {self._limit}, gained {self.gained:g}")
        text = _text(engine.characters, lines, footer)
        return text if mode == "ansi_full" else _picture(text, engine.colours, len(lines))

    def close(self) -> None:
        """End the game, and remove the folder that NetHack plays in."""
        super().close()
        self._engine.close()

    def _begin(self, seed: int, episode: int) -> None:
        place = SPLITS.index(self.config.split)
        self.game_seed = place * SEEDS + int(stream_key(seed, episode, LAYOUT)) % SEEDS
        if self._silg:
            prompts = SILG_TASKS[self.config.task]
            self.prompt = prompts[int(stream_key(seed, episode, TASK)) % len(prompts)]
            self._goal = PROMPTS[self.config.stated or self.prompt]
            self._threshold = THRESHOLDS[self.config.thresholds][self.prompt]
        else:
            self._goal = GOALS[self.config.task]
        self._goal_row = tokenizer().row(self._goal, GOAL_WORDS)
        self._begin_text("goal", self._goal_row)
        self._engine.begin(self.game_seed, self.prompt)
        self._expert = self._advice = None
        self.gained, self._dead = 0.0, False
        if self.config.level:
            self._level = Level()
            self._show(self._level, None)

    def _play(self, action: int) -> tuple[float, bool, bool]:
        gain, self._dead, reached = self._engine.step(action)
        self.gained += gain
        self._won = self.gained >= self._threshold if self._silg else reached
        terminated = self._won or self._dead
        truncated = not terminated and len(self.played) >= self._limit
        over = terminated or truncated
        if self._expert is not None and not over:
            self._show(self._expert, action)
            self._advice = None
        if self.config.level and not self._dead:
            self._show(self._level, action)
        if not self._silg:
            return gain, terminated, truncated
        if over:
            return (1.0 if self._won else -1.0), terminated, truncated
        return -STEP_COST, False, False

    def _read(self) -> tuple[tuple[str, np.ndarray], tuple[str, np.ndarray]]:
        """Return message and status, each as text and as ids."""
        engine = self._engine
        numbers = engine.statistics.take(self._shown).tolist()
        return _message(engine.message.tobytes()), _status(tuple(numbers))

    def _observe(self) -> Observation:
        engine, (glyph, character, colour) = self._engine, self._first
        grid = np.empty((HEIGHT, WIDTH, self._planes), np.int16)
        np.add(engine.glyphs, glyph, out=grid[..., 0])
        if self.config.characters:
            np.add(engine.characters, character, out=grid[..., 1], dtype=np.int16)
        if self.config.colours:
            np.add(engine.colours, colour, out=grid[..., -1], dtype=np.int16)
        self._message, self._status = self._read()
        position = engine.statistics[1::-1].astype(np.int16)
        if self.config.crop:
            grid = self._around(grid, *position.tolist())
        if self._dead:
            position[:] = -1
        return {
            "action_mask": self._mask.copy(),
            "goal": self._goal_row.copy(),
            "grid": grid,
            **({LEVEL: self._shown_level()} if self.config.level else {}),
            "message": self._message[1].copy(),
            "position": position,
            "status": self._status[1].copy(),
        }

    def _shown_level(self) -> np.ndarray:
        """Return glyph and mark of each cell of the level, [21, 79, 2]; padding where nothing is known.

        The agent's own cell shows what is under it.
        """
        level = self._level
        shown, marks, known = level.glyphs.copy(), level.marks(), level.known()
        shown[level.place] = level.map[level.place]
        last = len(all_words()) - 1
        return np.stack([(self._first[0] + shown) * known, (last + marks) * (marks > 0)], 2).astype(np.int16)

    def _around(self, grid: np.ndarray, row: int, column: int) -> np.ndarray:
        """Return the part of a map around a cell; padding beyond the map, and where nothing is known of it."""
        size, beside = self.config.crop, self.config.crop // 2
        wide = np.zeros((HEIGHT + 2 * beside, WIDTH + 2 * beside, self._planes), np.int16)
        known = (grid[..., :1] != self._first[0] + BLANK).astype(np.int16)
        wide[beside : beside + HEIGHT, beside : beside + WIDTH] = grid * known
        return wide[row : row + size, column : column + size].copy()

    def _info(self) -> dict[str, Any]:
        text = {"goal": self._goal, "message": self._message[0], "status": self._status[0]}
        return {"text": text} if self._silg else {"text": text, "score": self.gained}


@lru_cache(maxsize=_REMEMBERED)
def _message(raw: bytes) -> tuple[str, np.ndarray]:
    """Return the text of nle's `message`, and its ids, a cached array that must not be changed."""
    text = raw.partition(b"\0")[0].decode("latin-1")
    return text, tokenizer().row(text, MESSAGE_WORDS)


@lru_cache(maxsize=_REMEMBERED)
def _status(numbers: tuple[int, ...]) -> tuple[str, np.ndarray]:
    """Return the text of the SHOWN numbers of nle's `blstats`, and its ids, a cached array that must not be changed."""
    text = status_text(numbers)
    return text, tokenizer().row(text, STATUS_WORDS)


def _text(characters: np.ndarray, header: Sequence[str], footer: Sequence[str]) -> str:
    """Return lines above, the map of characters [21, 79], and lines below."""
    rows = [row.tobytes().decode("latin-1").rstrip() for row in np.ascontiguousarray(characters)]
    return "\n".join((*header, *rows, *footer))


def _picture(text: str, colours: np.ndarray, above: int) -> np.ndarray:
    """Return that as a picture [height, width, 3] uint8 in the terminal's colours; lines are cut at the map's width.

    Args:
        text: the lines.
        colours: [21, 79], of the map's characters.
        above: lines above the map.
    """
    import matplotlib  # it brings a typewriter's font
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(matplotlib.get_data_path() + "/fonts/ttf/DejaVuSansMono.ttf", _SIZE)
    lines = text.split("\n")
    inks = np.full((len(lines), WIDTH), 7)
    inks[above : above + HEIGHT] = colours & 15
    image = Image.new("RGB", (WIDTH * CELL_WIDTH, len(lines) * CELL_HEIGHT))
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        for column, sign in enumerate(line[:WIDTH]):
            if sign != " ":
                draw.text((column * CELL_WIDTH, row * CELL_HEIGHT), sign, _PALETTE[inks[row, column]], font)
    return np.array(image)
