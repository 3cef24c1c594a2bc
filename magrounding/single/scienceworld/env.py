"""ScienceWorldEnv: ScienceWorld as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from magrounding.errors import ConfigurationError, InvalidAction, choose
from magrounding.seeding import TASK, stream_key
from magrounding.single.scienceworld import picture
from magrounding.single.scienceworld.gold import WON, find_gold
from magrounding.single.scienceworld.java import find_java, shared_java
from magrounding.single.scienceworld.options import (
    CHOICE_WORDS,
    INVENTORY_WORDS,
    LOOK_WORDS,
    OBSERVATION_WORDS,
    TASK_WORDS,
    ScienceWorld,
)
from magrounding.single.scienceworld.simulation import Moment, Simulation
from magrounding.single.scienceworld.tasks import variations
from magrounding.single.scienceworld.words import wording
from magrounding.single.wording import ChoiceTable
from magrounding.spec import CHOICES
from magrounding.texts import content_keys
from magrounding.vector import row_seeds

RENDER_MODES = ("ansi", "rgb_array")
FRAMES_PER_SECOND = 2
_AGENT = "agent_0"

Observation = dict[str, np.ndarray]


class ScienceWorldEnv(ParallelEnv[str, Observation, SupportsIndex]):
    """One game of ScienceWorld for agent_0.

    Every array it returns is the caller's own. `infos["agent_0"]` has `action_mask`, `text` (`task`, `observation`,
    `look`, `inventory` and the list `choices`, as the simulator words them), `document` (equal keys mean equal tasks),
    `score`, `illegal` (True) after a masked action, and `won` in the last step.

    A game depends on its variation and on the commands played, and on nothing else; a pickle or a copy of the env plays
    the commands again.

    Args:
        config: which task, split, limit and simplifications.
        render_mode: None, "ansi" or "rgb_array".

    Attributes:
        variation: the variation that is being played.
        commands: what has been played of it; None stands for a masked action.
        left_out: valid actions for which there was no row, in all steps so far.

    Raises:
        ConfigurationError: an unknown render mode, or no Java.
    """

    id = "scienceworld"

    def __init__(self, config: ScienceWorld, render_mode: str | None = None) -> None:
        if render_mode is not None:
            choose("render_mode", render_mode, RENDER_MODES)
        find_java()
        self.config = config
        self.options = config.as_dict()
        self.render_mode = render_mode
        self.spec = config.describe()
        self.vocabulary = wording().vocabulary
        self.metadata = {
            "name": f"{self.id}-v0",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": True,
            "render_fps": FRAMES_PER_SECOND,
        }
        self.possible_agents = [_AGENT]
        self.agents: list[str] = []
        self.variation = -1
        self.commands: list[str | None] = []
        self.left_out = 0
        self._observation_space = self.spec.space()
        self._action_space = spaces.Discrete(self.spec.num_actions)
        self._choices = ChoiceTable(wording(), config.max_choices, CHOICE_WORDS)
        self._simulation: Simulation | None = None
        self._moment: Moment | None = None
        self._mask = np.zeros(config.max_choices, np.int8)
        self._task_text = ""
        self._task = np.zeros(TASK_WORDS, np.int16)
        self._document = 0
        self._seed: int | None = None
        self._episode = 0

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
            seed: an integer in [0, 2**62), which decides the variation.
            options: `{"variation": k}` plays that one instead, of whatever split.

        Raises:
            ConfigurationError: a seed, an option or a variation that does not exist.
            SimulatorError: Java was lost; the next reset starts it anew.
        """
        if seed is not None or self._seed is None:
            self._seed, self._episode = int(row_seeds(seed, 1)[0]), 0
        else:
            self._episode += 1
        self._begin(self._choose_variation(options or {}))
        return {_AGENT: self._observe()}, {_AGENT: self._info()}

    def step(
        self, actions: Mapping[str, SupportsIndex]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: for "agent_0" the row of a choice; where there is none in that row, the game stands still.

        Returns:
            observations, rewards, terminations, truncations, infos: by agent; five empty dicts where the episode is
            over and no action is given.

        Raises:
            InvalidAction: an action outside the space, a missing or unknown agent, a step before `reset` or after the
                end. Nothing has happened then: the step can be repeated with a better action.
            SimulatorError: Java was lost; the next reset starts it anew.
        """
        if not self.agents and self._seed is not None and not actions:
            return {}, {}, {}, {}, {}
        row, before = self._action(actions), self._now
        command = before.actions[row] if row < len(before.actions) else None
        self._play(command)
        moment = self._now
        terminated = moment.over or moment.score < 0
        truncated = not terminated and len(self.commands) >= self.config.max_cycles
        if terminated or truncated:
            self.agents = []
        info = self._info()
        if command is None:
            info["illegal"] = True
        if terminated or truncated:
            info["won"] = moment.score >= WON
        reward = float(moment.score - before.score) if self.config.failure_penalty else _shown(moment) - _shown(before)
        return {_AGENT: self._observe()}, {_AGENT: reward}, {_AGENT: terminated}, {_AGENT: truncated}, {_AGENT: info}

    def best_actions(self) -> np.ndarray:
        """Labels [1, C] bool: the next command of the gold path; all choices where the game has left it.

        The first question in a variation may take ten seconds, later ones read what was found from the disk.

        Raises:
            ConfigurationError: before `reset`.
            SimulatorError: Java was lost.
        """
        labels = self._mask.astype(np.bool_)[None]
        if not self.agents:
            if self._seed is None:
                raise ConfigurationError("call reset() before best_actions()")
            return labels
        config, played = self.config, tuple(self.commands)
        gold = find_gold(self._running().java, config.task, self.variation, config.simplifications).commands
        if gold[: len(played)] == played and len(gold) > len(played) and gold[len(played)] in self._now.actions:
            labels[:] = False
            labels[0, self._now.actions.index(gold[len(played)])] = True
        return labels

    def render(self) -> str | np.ndarray | None:
        """The game as text ("ansi") or a picture of that text [720, 960, 3] uint8; None without a render mode."""
        if self.render_mode is None:
            return None
        moment = self._now
        text = picture.ansi(self._task_text, moment, len(self.commands), self.config.max_cycles, max(moment.score, 0))
        return text if self.render_mode == "ansi" else picture.rgb_array(text)

    def close(self) -> None:
        """Let the game go; Java ends with the last game of this process."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None

    def __getstate__(self) -> dict[str, Any]:
        """What is needed to play the episode again: a Java process does not travel."""
        kept = ("config", "render_mode", "agents", "variation", "commands", "_seed", "_episode")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["config"], state["render_mode"])
        vars(self).update({name: state[name] for name in ("_seed", "_episode")})
        if self._seed is not None:
            self._begin(state["variation"])
            for command in state["commands"]:
                self._play(command)
        self.agents = list(state["agents"])

    @property
    def _now(self) -> Moment:
        if self._moment is None:
            raise ConfigurationError("call reset() first")
        return self._moment

    def _running(self) -> Simulation:
        """The game in Java, in a process that is there."""
        if self._simulation is None or self._simulation.java.has_ended:
            self._simulation = None  # it would hold the process that is gone
            self._simulation = Simulation(shared_java(self.config.heap), self.config.fast_actions)
        return self._simulation

    def _choose_variation(self, options: Mapping[str, Any]) -> int:
        for name in options:
            choose("option of reset", name, ("variation",))
        official = variations(self.config.task)
        if "variation" not in options:
            among = official[self.config.split]
            return among[int(stream_key(self._seed, self._episode, TASK)) % len(among)]
        count, wanted = sum(map(len, official.values())), options["variation"]
        if isinstance(wanted, bool) or not isinstance(wanted, int) or not 0 <= wanted < count:
            raise ConfigurationError(f"{self.config.task} has variations 0 to {count - 1}, got {wanted!r}")
        return wanted

    def _begin(self, variation: int) -> None:
        self.agents = []  # of no game, if Java is lost now
        simulation = self._running()
        self._moment = self._fit(simulation.begin(self.config.task, variation, self.config.simplifications))
        self._task_text = simulation.task_text()
        self._task = wording().row(self._task_text, TASK_WORDS)
        self._document = int(content_keys({"task": self._task[None]})[0])
        self.variation, self.commands = variation, []
        self.agents = [_AGENT]

    def _play(self, command: str | None) -> None:
        if command is not None:
            agents, self.agents = self.agents, []  # of no game, if Java is lost now
            self._moment = self._fit(self._running().step(command))
            self.agents = agents
        self.commands.append(command)

    def _fit(self, moment: Moment) -> Moment:
        """A moment with as many actions as there are rows."""
        beyond = len(moment.actions) - self.config.max_choices
        if beyond <= 0:
            return moment
        self.left_out += beyond
        return replace(moment, actions=moment.actions[: self.config.max_choices])

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
        if not 0 <= action < self.spec.num_actions:
            raise InvalidAction(
                f"action {actions[_AGENT]!r} of {_AGENT} is not an integer in [0, {self.spec.num_actions})"
            )
        return action

    def _observe(self) -> Observation:
        """The observation, in the order of the space."""
        moment, words = self._now, wording()
        choices, self._mask = self._choices.rows(moment.actions)
        return {
            "action_mask": self._mask.copy(),
            CHOICES: choices,
            "inventory": words.row(moment.inventory, INVENTORY_WORDS),
            "look": words.row(moment.look, LOOK_WORDS),
            "observation": words.row(moment.observation, OBSERVATION_WORDS),
            "task": self._task.copy(),
        }

    def _info(self) -> dict[str, Any]:
        moment = self._now
        mask = np.zeros(self.config.max_choices, np.int8)
        mask[: len(moment.actions)] = 1
        return {
            "action_mask": mask,
            "text": {
                "task": self._task_text,
                "observation": moment.observation,
                "look": moment.look,
                "inventory": moment.inventory,
                "choices": list(moment.actions),
            },
            "document": self._document,
            "score": _shown(moment),
        }


def _shown(moment: Moment) -> float:
    """The score, 0 to 100: a failed game has none."""
    return float(max(moment.score, 0))
