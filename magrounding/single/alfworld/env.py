"""ALFWorldEnv: ALFWorld as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.seeding import stream_key
from magrounding.single.alfworld import package
from magrounding.single.alfworld.expert import Expert, read_task
from magrounding.single.alfworld.games import Games
from magrounding.single.alfworld.options import (
    COMMAND_WORDS,
    FEEDBACK_WORDS,
    GOAL_WORDS,
    HISTORY,
    ITEM_WORDS,
    MAX_COMMANDS,
    MAX_ITEMS,
    TOKENIZER,
    ALFWorld,
)
from magrounding.single.alfworld.scenes import SPLITS
from magrounding.single.one_agent import OneAgentEnv
from magrounding.single.tokenizer import UNKNOWN, ChoiceTable
from magrounding.vector import Observation

NOTHING = "Nothing happens."

_IDLE: list[Any] = []
"""Copies of the planner's library, of which every engine needs one of its own: used again, and never unloaded. The
copies of a process share a list of what they register. Unloading one would leave entries in that list which point to
nothing, and the next copy to be loaded would crash the process."""


@dataclass(frozen=True)
class Moment:
    """State of a game after a reset or a step: the engine's answer, commands that can be typed, in alphabetic order."""

    feedback: str
    commands: tuple[str, ...]
    won: bool


class Engine:
    """A game, with the names and texts of ALFWorld; MissingExtra where that is not installed."""

    def __init__(self) -> None:
        package.require()
        self._pddl = package.engine()
        self._demangler = package.part("agents.utils.misc").Demangler
        self.library = _IDLE.pop() if _IDLE else import_module("fast_downward").load_lib()
        self._release = weakref.finalize(self, _take_back, self.library)
        self._release.atexit = False
        self._game: Mapping[str, Any] = {}
        self._episode: Any = None

    def start(self, game: Mapping[str, Any]) -> Moment:
        """Begin a game, given as the content of its file."""
        self._game = game
        translated = self._pddl.translate(game["pddl_domain"], game["pddl_problem"], game["grammar"])
        self._episode = self._pddl.Episode(translated, self.library, self._demangler)
        return self._moment(self._episode.write("#intro#", {}))

    def step(self, command: str) -> Moment:
        """Type a command; one that cannot be typed now changes nothing."""
        answer = self._episode.play(command)
        return self._moment(NOTHING if answer is None else answer)

    def plan(self) -> list[str]:
        """Return the planner's commands to the goal; for tests, as it takes long and knows what is hidden."""
        return self._pddl.plan(self._game["pddl_domain"], self._game["pddl_problem"], self._episode)

    def close(self) -> None:
        """Release the copy of the planner's library; nothing can be played any more. Twice is fine."""
        self._episode = None
        self._release()

    def _moment(self, feedback: str) -> Moment:
        return Moment(feedback, tuple(sorted(self._episode.actions)), self._episode.state.check_goal())


def _take_back(library: Any) -> None:
    library.cleanup()
    _IDLE.append(library)


GO = "go to "
Thing = tuple[str, str]
"""Kind and number."""

_THING = re.compile(r"([a-z]+) (\d+)")
_TEXTS = {"goal": GOAL_WORDS, "feedback": FEEDBACK_WORDS}
_INTRODUCTION = re.compile(r"(?:-=.*?=-)?\s*(?P<room>.*?)\s*Your task is to: (?P<goal>.*)", re.DOTALL)


class ALFWorldEnv(OneAgentEnv):
    """One game of ALFWorld for agent_0; arguments and infos as of `OneAgentEnv`.

    `infos["agent_0"]` has `text` (`goal`, `feedback` and `choices` as the engine words them; `manual`, an empty list),
    too, and `expert_failed` (True) once the expert has been asked and knew no way.

    Attributes:
        game_name: what the folder of the game is called.
        left_out: commands for which there was no row, in all steps so far; "look" is none of them.
        things_left_out, words_left_out: the same of things for the grid, and of words of the texts.

    Raises:
        MissingExtra: alfworld is not installed.
        DataNotFound: the folder has no games.
    """

    id = "alfworld"
    render_modes = ("ansi", "ansi_full")
    _kept = ("_expert_failed",)

    def __init__(self, config: ALFWorld, render_mode: str | None = None) -> None:
        super().__init__(config, render_mode)
        self.game_name = ""
        self.left_out = self.things_left_out = self.words_left_out = 0
        self._games = Games(config.games, config.split)
        self._table = ChoiceTable(TOKENIZER, MAX_COMMANDS, COMMAND_WORDS, remembered=4096)
        self._engine = Engine()
        self._loaded: tuple[int, Mapping[str, Any]] = (-1, {})
        self._clear()

    def _clear(self) -> None:
        """Forget what was played: the episode is at its beginning."""
        self._goal = self._feedback = ""
        self._room: list[Thing] = []
        self._things: list[Thing] = []
        self._visited: dict[str, None] = {}
        self._texts = {name: np.zeros(length, np.int16) for name, length in _TEXTS.items()}
        self._choices: tuple[str, ...] = ()
        self._offered: list[tuple[str, ...]] = []
        self._played_commands: list[tuple[str, str]] = []
        self._expert: Expert | None = None
        self._expert_knows, self._expert_failed = 0, False

    def best_actions(self) -> np.ndarray:
        """Labels [1, 60] bool: what the expert may play now; every choice where it knows no way or all is over.

        A CallOrderError before `reset` and after `close`.
        """
        self._require_start("best_actions")
        labels = np.zeros((1, MAX_COMMANDS), np.bool_)
        best = self._ask_expert() if self.agents else ()
        labels[0, : len(self._choices)] = [choice in best for choice in self._choices]
        if not labels.any():
            labels[0, : len(self._choices)] = True
            self._expert_failed |= bool(self.agents)
        return labels

    def _draw(self, mode: str) -> str:
        answers = [f"> {command}\n{feedback}" for command, feedback in self._played_commands] or [self._feedback]
        choices = [f"{number:2d} {command}" for number, command in enumerate(self._choices)]
        return "\n".join([f"goal: {self._goal}", *answers[-HISTORY:], *choices])

    def close(self) -> None:
        """Release the engine."""
        super().close()
        self._engine.close()

    def _choose(self, seed: int, episode: int) -> int:
        """Return the number of the game to be played."""
        return int(stream_key(seed, episode, SPLITS.index(self.config.split))) % len(self._games)

    def _begin(self, seed: int, episode: int) -> None:
        number = self._choose(seed, episode)
        if self._loaded[0] != number:
            self._loaded = number, self._games.data(number)
        self.game_name = self._games.name(number)
        self._clear()
        moment = self._start(self._loaded[1])
        parts = _INTRODUCTION.match(moment.feedback)
        self._goal, room = (parts["goal"], parts["room"]) if parts else ("", moment.feedback)
        self._room = things_in(room)
        self._write("goal", self._goal)
        self._begin_text("goal", self._texts["goal"])
        self._show(Moment(room, moment.commands, moment.won))

    def _play(self, action: int) -> tuple[float, bool, bool]:
        self._illegal = action >= len(self._choices)
        command = "" if self._illegal else self._choices[action]
        moment = Moment(NOTHING, self._offered[-1], False) if self._illegal else self._engine.step(command)
        self._played_commands.append((command, moment.feedback))
        if command.startswith(GO):
            place = command.removeprefix(GO)
            self._visited.pop(place, None)
            self._visited[place] = None
        self._show(moment)
        self._won = moment.won
        return float(moment.won), moment.won, not moment.won and len(self.played) >= self.config.max_cycles

    def _show(self, moment: Moment) -> None:
        self._feedback = moment.feedback
        self._offered.append(moment.commands)
        self._choices = choices_of(moment.commands, self._visited)
        self.left_out += len(moment.commands) - moment.commands.count("look") - len(self._choices)
        self._things, beyond = things_shown(self._room, things_in(moment.feedback))
        self.things_left_out += beyond
        self._write("feedback", moment.feedback)
        self.words_left_out += self._table.cut(self._choices)

    def _write(self, name: str, text: str) -> None:
        """Keep a text as ids, and count those that are cut."""
        self._texts[name], cut = TOKENIZER.fit(text, _TEXTS[name])
        self.words_left_out += cut

    def _start(self, game: Mapping[str, Any]) -> Moment:
        """Return the engine's first moment of a game; ConfigurationError for one that it cannot play."""
        try:
            return self._engine.start(game)
        except MagroundingError:
            raise
        except (Exception, SystemExit) as error:  # the engine's parsers raise whatever they like, and its planner exits
            what = f"{type(error).__name__}: {error}"[:200]
            raise ConfigurationError(
                f"the game {self.game_name!r} cannot be played ({what}): is it a game of ALFWorld?"
            ) from error

    def _ask_expert(self) -> tuple[str, ...]:
        """Return the expert's commands, after it has been shown what was played since it was last asked."""
        task = read_task(self._goal)
        if task is None:
            return ()
        if self._expert is None:
            self._expert, self._expert_knows = Expert(task, self._offered[0]), 0
        for step in range(self._expert_knows, len(self._played_commands)):
            self._expert.follow(*self._played_commands[step], self._offered[step + 1])
        self._expert_knows = len(self._played_commands)
        return self._expert.best_commands()

    def _observe(self) -> Observation:
        grid = np.zeros((MAX_ITEMS, 1, ITEM_WORDS), np.int16)
        grid[: len(self._things), 0] = [thing_ids(thing) for thing in self._things] or 0
        history = np.zeros((HISTORY, COMMAND_WORDS), np.int16)
        for row, (command, _) in zip(history, self._played_commands[-HISTORY:], strict=False):
            row[...] = TOKENIZER.row(command, COMMAND_WORDS)
        choices, mask = self._table.rows(self._choices)
        return {
            "action_mask": mask,
            "choices": choices,
            "feedback": self._texts["feedback"].copy(),
            "goal": self._texts["goal"].copy(),
            "grid": grid,
            "history": history,
        }

    def _info(self) -> dict[str, Any]:
        text = {"manual": [], "goal": self._goal, "feedback": self._feedback, "choices": list(self._choices)}
        return {"text": text, "expert_failed": True} if self._expert_failed else {"text": text}


def choices_of(commands: Sequence[str], visited: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the commands that are offered: all but "look"; where they are too many, those of least use are left out.

    First goes what only examines something, then the way back to places, the last visited first, so that each can be
    come to again; then what else changes nothing, and places not yet visited. What takes, puts, uses or treats
    something is left out only where there are more than MAX_COMMANDS of these alone.
    """
    offered = [command for command in commands if command != "look"]
    beyond = len(offered) - MAX_COMMANDS
    if beyond <= 0:
        return tuple(offered)
    seen = {f"{GO}{place}": number for number, place in enumerate(visited)}
    spare = sorted(range(len(offered)), key=lambda j: _use(offered[j], j, seen))[:beyond]
    return tuple(command for j, command in enumerate(offered) if j not in spare)


def _use(command: str, place: int, seen: dict[str, int]) -> tuple[int, int]:
    """Return a key of a command and its place in the list, the smallest to be left out first.

    Those that go back have been `seen`, with a number for when each was last typed.
    """
    if command.startswith("examine "):
        return 0, place
    if command in seen:
        return 1, -seen[command]
    if command in ("help", "inventory"):
        return 2, -place
    for use, beginning in enumerate(("close ", GO, "open "), 3):
        if command.startswith(beginning):
            return use, -place
    return 6, -place


def things_in(text: str) -> list[Thing]:
    """Return everything that a text names by kind and number, in its order."""
    return _THING.findall(text.lower())


def thing_ids(thing: Thing) -> list[int]:
    """Return a word for the kind and one for the number; what a game of the user's calls otherwise is UNKNOWN."""
    return [TOKENIZER.vocabulary[word if word in TOKENIZER.vocabulary else UNKNOWN] for word in thing]


def things_shown(room: Sequence[Thing], named: Sequence[Thing]) -> tuple[list[Thing], int]:
    """Return the things of the grid in their order, and the number that it has no room for.

    What the last answer has named is shown rather than other receptacles of the room.
    """
    things, now = list(dict.fromkeys([*room, *named])), set(named)
    beyond = max(0, len(things) - MAX_ITEMS)
    spare = set([thing for thing in things if thing not in now][::-1][:beyond])
    return [thing for thing in things if thing not in spare][:MAX_ITEMS], beyond
