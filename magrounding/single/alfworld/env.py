"""ALFWorldEnv: ALFWorld as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from magrounding.errors import ConfigurationError, InvalidAction, choose
from magrounding.seeding import stream_key
from magrounding.single.alfworld.engine import Engine, Moment
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
    ALFWorld,
)
from magrounding.single.alfworld.scenes import SPLITS
from magrounding.single.alfworld.words import WORDING, thing_ids, things_in
from magrounding.single.wording import ChoiceTable
from magrounding.texts import content_keys
from magrounding.vector import row_seeds

RENDER_MODES = ("ansi",)
NOTHING = "Nothing happens."
_AGENT = "agent_0"
_INTRODUCTION = re.compile(r"(?:-=.*?=-)?\s*(?P<room>.*?)\s*Your task is to: (?P<goal>.*)", re.DOTALL)

Observation = dict[str, np.ndarray]


class ALFWorldEnv(ParallelEnv[str, Observation, SupportsIndex]):
    """One game of ALFWorld for agent_0.

    Every array it returns is the caller's own. `infos["agent_0"]` has `action_mask` [60] int8, `text` (`goal`,
    `feedback` and `choices` as the engine words them; `manual`, an empty list), `document` (equal keys mean equal
    goals); `won` in the last step; `illegal` (True) after a choice that was not there; and `expert_failed` (True) once
    the expert has been asked and knew no way.

    Args:
        config: which games, limit and split.
        render_mode: None or "ansi".

    Attributes:
        game_name: what the folder of the game is called.

    Raises:
        MissingExtra: alfworld is not installed.
        DataNotFound: the folder has no games.
        ConfigurationError: an unknown render mode.
    """

    id = "alfworld"

    def __init__(self, config: ALFWorld, render_mode: str | None = None) -> None:
        if render_mode is not None:
            choose("render_mode", render_mode, RENDER_MODES)
        self.config = config
        self.options = config.as_dict()
        self.render_mode = render_mode
        self.spec = config.describe()
        self.vocabulary = WORDING.vocabulary
        self.metadata = {"name": f"{self.id}-v0", "render_modes": list(RENDER_MODES), "is_parallelizable": True}
        self.possible_agents = [_AGENT]
        self.agents: list[str] = []
        self.game_name = ""
        self._games = Games(config.games, config.split)
        self._table = ChoiceTable(WORDING, MAX_COMMANDS, COMMAND_WORDS, remembered=4096)
        self._observation_space = self.spec.space()
        self._action_space = spaces.Discrete(self.spec.num_actions)
        self._engine: Engine | None = Engine()
        self._seed: int | None = None
        self._episode = 0
        self._number = -1
        self._loaded: tuple[int, Mapping[str, Any]] = (-1, {})
        self._clear()

    def _clear(self) -> None:
        """Nothing has been played of the episode."""
        self._goal = self._feedback = ""
        self._document = 0
        self._room: list[tuple[str, str]] = []
        self._choices: tuple[str, ...] = ()
        self._offered: list[tuple[str, ...]] = []
        self._played: list[tuple[str, str]] = []
        self._expert: Expert | None = None
        self._expert_knows, self._expert_failed = 0, False

    def observation_space(self, agent: str) -> spaces.Dict:
        """The space of what the agent sees; the same object on each call."""
        if agent != _AGENT:
            raise KeyError(agent)
        return self._observation_space

    def action_space(self, agent: str) -> spaces.Discrete:
        """The space of the agent's actions; the same object on each call."""
        if agent != _AGENT:
            raise KeyError(agent)
        return self._action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode: the first of a seed or, without one, the next after the last (at first, of a random seed).

        Args:
            seed: an integer in [0, 2**62).
            options: ignored; PettingZoo's interface has it.

        Returns:
            observations, infos: by agent.
        """
        if seed is not None or self._seed is None:
            self._seed, self._episode = int(row_seeds(seed, 1)[0]), 0
        else:
            self._episode += 1
        place = SPLITS.index(self.config.split)
        self._number = int(stream_key(self._seed, self._episode, place)) % len(self._games)
        self._begin()
        return {_AGENT: self._observe()}, {_AGENT: self._info()}

    def step(
        self, actions: Mapping[str, SupportsIndex]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: for "agent_0" the row of `choices` to play; one that is masked does nothing.

        Returns:
            observations, rewards, terminations, truncations, infos: by agent; five empty dicts where the episode is
            over and no action is given.

        Raises:
            InvalidAction: an action outside the space, a missing or unknown agent, a step before `reset` or after the
                end. Nothing has happened then: the step can be repeated with a better action.
        """
        if not self.agents and self._seed is not None and not actions:
            return {}, {}, {}, {}, {}
        action = self._action(actions)
        legal = action < len(self._choices)
        won = self._play(self._choices[action] if legal else "")
        over = len(self._played) >= self.config.max_cycles
        observation, info = self._observe(), self._info()
        if not legal:
            info["illegal"] = True
        if won or over:
            self.agents = []
            info["won"] = won
        reward, truncated = float(won), over and not won
        return {_AGENT: observation}, {_AGENT: reward}, {_AGENT: won}, {_AGENT: truncated}, {_AGENT: info}

    def best_actions(self) -> np.ndarray:
        """Labels [1, 60] bool: what the expert would play now; every choice where it knows no way or all is over.

        Raises:
            ConfigurationError: before `reset`.
        """
        if self._seed is None:
            raise ConfigurationError("call reset() before best_actions()")
        labels = np.zeros((1, MAX_COMMANDS), np.bool_)
        wish = self._ask_expert() if self.agents else None
        if wish in self._choices:
            labels[0, self._choices.index(wish)] = True
        else:
            labels[0, : len(self._choices)] = True
            self._expert_failed |= bool(self.agents)
        return labels

    def render(self) -> str | None:
        """The game as text; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._seed is None:
            raise ConfigurationError("call reset() before render()")
        said = [f"> {command}\n{feedback}" for command, feedback in self._played] or [self._feedback]
        choices = [f"{number:2d} {command}" for number, command in enumerate(self._choices)]
        return "\n".join([f"goal: {self._goal}", *said[-HISTORY:], *choices])

    def close(self) -> None:
        """Release the engine."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the engine, which no process can hand to another, and the expert, who learns it again."""
        return {**self.__dict__, "_engine": None, "_games": None, "_loaded": (-1, {}), "_expert": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up a copy: what was played is played again."""
        self.__dict__.update(state)
        self._engine, self._games = Engine(), Games(self.config.games, self.config.split)
        if self._number >= 0:
            commands, agents, failed = [command for command, _ in self._played], self.agents, self._expert_failed
            self._begin()
            for command in commands:
                self._play(command)
            self.agents, self._expert_failed = agents, failed

    def _begin(self) -> None:
        """Start the game of the episode."""
        if self._loaded[0] != self._number:
            self._loaded = self._number, self._games.data(self._number)
        self.game_name = self._games.name(self._number)
        self._clear()
        moment = self._running().start(self._loaded[1])
        parts = _INTRODUCTION.match(moment.feedback)
        self._goal, room = (parts["goal"], parts["room"]) if parts else ("", moment.feedback)
        self._room = things_in(room)
        self._document = int(content_keys({"goal": WORDING.row(self._goal, GOAL_WORDS)[None]})[0])
        self.agents = [_AGENT]
        self._show(Moment(room, moment.commands, moment.won))

    def _play(self, command: str) -> bool:
        """Type a command, "" for none; whether the game is won."""
        moment = self._running().step(command) if command else Moment(NOTHING, self._offered[-1], False)
        self._played.append((command, moment.feedback))
        self._show(moment)
        return moment.won

    def _running(self) -> Engine:
        """The engine; ConfigurationError after `close`."""
        if self._engine is None:
            raise ConfigurationError("this environment is closed: make another one")
        return self._engine

    def _show(self, moment: Moment) -> None:
        self._feedback = moment.feedback
        self._offered.append(moment.commands)
        self._choices = choices_of(moment.commands)

    def _ask_expert(self) -> str | None:
        """The expert's wish, after it has been shown what has happened since it was last asked."""
        task = read_task(self._goal)
        if task is None:
            return None
        if self._expert is None:
            self._expert, self._expert_knows = Expert(task, self._offered[0]), 0
        for step in range(self._expert_knows, len(self._played)):
            self._expert.follow(*self._played[step], self._offered[step + 1])
        self._expert_knows = len(self._played)
        return self._expert.command()

    def _action(self, actions: Mapping[str, SupportsIndex]) -> int:
        if not self.agents:
            raise InvalidAction(
                "call reset() before step()" if self._seed is None else "the episode is over: call reset()"
            )
        if actions.keys() != {_AGENT}:
            raise InvalidAction(f"actions are for {list(actions)}, expected one for each of {self.agents}")
        try:
            action = index(actions[_AGENT])
        except TypeError:
            action = -1
        if not 0 <= action < MAX_COMMANDS:
            raise InvalidAction(f"action {actions[_AGENT]!r} of {_AGENT} is not an integer in [0, {MAX_COMMANDS})")
        return action

    def _observe(self) -> Observation:
        """The observation, in the order of the space."""
        items = list(dict.fromkeys([*self._room, *things_in(self._feedback)]))[:MAX_ITEMS]
        grid = np.zeros((MAX_ITEMS, 1, ITEM_WORDS), np.int16)
        grid[: len(items), 0] = [thing_ids(item) for item in items] or 0
        history = np.zeros((HISTORY, COMMAND_WORDS), np.int16)
        for row, (command, _) in zip(history, self._played[-HISTORY:], strict=False):
            row[...] = WORDING.row(command, COMMAND_WORDS)
        choices, mask = self._table.rows(self._choices)
        return {
            "action_mask": mask,
            "choices": choices,
            "feedback": WORDING.row(self._feedback, FEEDBACK_WORDS),
            "goal": WORDING.row(self._goal, GOAL_WORDS),
            "grid": grid,
            "history": history,
        }

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "action_mask": (np.arange(MAX_COMMANDS) < len(self._choices)).astype(np.int8),
            "text": {
                "manual": [],
                "goal": self._goal,
                "feedback": self._feedback,
                "choices": list(self._choices),
            },
            "document": self._document,
        }
        if self._expert_failed:
            info["expert_failed"] = True
        return info


def choices_of(commands: tuple[str, ...]) -> tuple[str, ...]:
    """The commands that are offered: all but "look"; where they are too many, those that only examine go first."""
    offered = [command for command in commands if command != "look"]
    examining = [command for command in offered if command.startswith("examine ")]
    spare = set(examining[: max(0, len(offered) - MAX_COMMANDS)])
    return tuple(command for command in offered if command not in spare)[:MAX_COMMANDS]
