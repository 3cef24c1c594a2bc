"""ScienceWorldEnv: ScienceWorld as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import numpy as np

from magrounding.errors import CallOrderError
from magrounding.seeding import TASK, stream_key
from magrounding.single.one_agent import OneAgentEnv, Shown
from magrounding.single.scienceworld.gold import WON, find_gold
from magrounding.single.scienceworld.java import find_java, shared_java
from magrounding.single.scienceworld.options import (
    CHOICE_WORDS,
    INVENTORY_WORDS,
    LOOK_WORDS,
    OBSERVATION_WORDS,
    TASK_WORDS,
    ScienceWorld,
    tokenizer,
    variations,
)
from magrounding.single.scienceworld.simulation import Moment, Simulation
from magrounding.single.tokenizer import ChoiceTable
from magrounding.spec import CHOICES
from magrounding.vector import Observation, check_count

WIDTH, HEIGHT = 960, 720
_COLUMNS, _LINE, _SIZE = 110, 17, 14


class ScienceWorldEnv(OneAgentEnv):
    """One game of ScienceWorld for agent_0; arguments and infos as of `OneAgentEnv`.

    `infos["agent_0"]` has `text` (`task`, `observation`, `look`, `inventory` and the list `choices`, as the simulator
    words them) and `score`, too.

    Attributes:
        variation: the variation that is being played.
        commands: what has been played of it; None stands for a masked action.
        left_out: valid actions for which there was no row, in all steps so far.
        words_left_out: words of what was observed, but of choices, that were cut.

    Raises:
        ConfigurationError: no Java.
    """

    id = "scienceworld"
    frames_per_second = 2

    def __init__(self, config: ScienceWorld, render_mode: str | None = None) -> None:
        find_java()
        super().__init__(config, render_mode)
        self.variation = -1
        self.commands: list[str | None] = []
        self.left_out = self.words_left_out = 0
        self._choices = ChoiceTable(tokenizer(), config.max_choices, CHOICE_WORDS)
        self._simulation: Simulation | None = None
        self._moment: Moment | None = None
        self._asked: int | None = None
        self._task_text = ""
        self._task = np.zeros(TASK_WORDS, np.int16)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Shown:
        """Start an episode as `OneAgentEnv.reset` does, in a variation of the seed or of the option "variation".

        That may be of any split. A SimulatorError where Java was lost; the next reset starts it anew.
        """
        self._asked = None
        if options and "variation" in options:
            count, what = sum(map(len, variations(self.config.task).values())), f"the variation of {self.config.task}"
            self._asked = check_count(what, options["variation"], 0, count - 1)
        return super().reset(seed)

    def best_actions(self) -> np.ndarray:
        """Labels [1, C] bool: the next command of the gold path; all choices where the game has left it.

        The first question in a variation may take ten seconds, later ones read what was found from the disk.

        Raises:
            CallOrderError: before `reset`, or after `close`.
            SimulatorError: Java was lost.
            ConfigurationError: the user's cache, where gold paths are kept, cannot be written to.
        """
        now = self._now
        labels = np.arange(self._num_actions)[None] < len(now.actions)
        if not self.agents:
            return labels
        assert self._simulation is not None
        config, played = self.config, tuple(self.commands)
        gold = find_gold(self._simulation.java, config.task, self.variation, config.simplifications).commands
        if gold[: len(played)] == played and len(gold) > len(played) and gold[len(played)] in now.actions:
            labels[:] = False
            labels[0, now.actions.index(gold[len(played)])] = True
        return labels

    def _draw(self, mode: str) -> str | np.ndarray:
        moment = self._now
        text = _text(self._task_text, moment, len(self.played), self.config.max_cycles)
        return text if mode == "ansi_full" else _picture(text)

    def close(self) -> None:
        """Let the game go; Java ends with the last game of this process."""
        super().close()
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is needed to play the episode again: a Java process is not pickled."""
        return {**super().__getstate__(), "_asked": self.variation if self._begun else None}

    @property
    def _now(self) -> Moment:
        self._require_open()
        if self._moment is None:
            raise CallOrderError("call reset() first")
        return self._moment

    def _started(self) -> Simulation:
        """Return a simulation in a running process, to begin a game in."""
        if self._simulation is None or self._simulation.java.has_ended:
            self._simulation = None  # it would hold the process that is gone
            self._simulation = Simulation(shared_java(self.config.heap))
        return self._simulation

    def _begin(self, seed: int, episode: int) -> None:
        variation = self._asked
        if variation is None:
            among = variations(self.config.task)[self.config.split]
            variation = among[int(stream_key(seed, episode, TASK)) % len(among)]
        simulation = self._started()
        self._moment = self._fit(simulation.begin(self.config.task, variation, self.config.simplifications))
        self._task_text = simulation.task_text()
        self._task = self._row(self._task_text, TASK_WORDS)
        self._begin_text("task", self._task)
        self.variation, self.commands = variation, []

    def _play(self, action: int) -> tuple[float, bool, bool]:
        before = self._now
        self._illegal = action >= len(before.actions)
        command = None if self._illegal else before.actions[action]
        if command is not None:
            assert self._simulation is not None  # as a game goes on; one whose process was lost raises
            self._moment = self._fit(self._simulation.step(command))
        self.commands.append(command)
        moment = self._now
        self._won = moment.score >= WON
        terminated = moment.over or moment.score < 0
        truncated = not terminated and len(self.played) >= self.config.max_cycles
        reward = float(moment.score - before.score) if self.config.failure_penalty else _shown(moment) - _shown(before)
        return reward, terminated, truncated

    def _fit(self, moment: Moment) -> Moment:
        """Return a moment with as many actions as there are rows."""
        beyond = len(moment.actions) - self.config.max_choices
        if beyond <= 0:
            return moment
        self.left_out += beyond
        return replace(moment, actions=moment.actions[: self.config.max_choices])

    def _row(self, text: str, length: int) -> np.ndarray:
        """Return a text as ids; those that are cut are counted."""
        row, cut = tokenizer().fit(text, length)
        self.words_left_out += cut
        return row

    def _observe(self) -> Observation:
        moment = self._now
        choices, mask = self._choices.rows(moment.actions)
        return {
            "action_mask": mask,
            CHOICES: choices,
            "inventory": self._row(moment.inventory, INVENTORY_WORDS),
            "look": self._row(moment.look, LOOK_WORDS),
            "observation": self._row(moment.observation, OBSERVATION_WORDS),
            "task": self._task.copy(),
        }

    def _info(self) -> dict[str, Any]:
        moment = self._now
        return {
            "text": {
                "task": self._task_text,
                "observation": moment.observation,
                "look": moment.look,
                "inventory": moment.inventory,
                "choices": list(moment.actions),
            },
            "score": _shown(moment),
        }


def _shown(moment: Moment) -> float:
    """Return the score, 0 to 100; 0 of a failed game."""
    return float(max(moment.score, 0))


def _text(task: str, moment: Moment, step: int, max_cycles: int) -> str:
    """Return progress, task, the answer to the last command, the room and the inventory as text.

    An answer that only says what is around, as the first one does, is not shown twice.
    """
    answer = f"> {moment.observation}" if moment.observation.strip() != moment.look.strip() else ""
    parts = (
        f"step {step} of {max_cycles} · score {_shown(moment):g} of 100 · {len(moment.actions)} actions",
        task,
        answer,
        moment.look,
        moment.inventory,
    )
    return "\n\n".join(part.strip().expandtabs(4) for part in parts if part)


def _picture(text: str) -> np.ndarray:
    """Return a text as a picture [HEIGHT, WIDTH, 3] uint8; what does not fit is cut off."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (WIDTH, HEIGHT), "#ffffff")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=_SIZE)
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, _COLUMNS) or [""]]
    for k, line in enumerate(lines[: HEIGHT // _LINE - 1]):
        draw.text((12, 8 + k * _LINE), line, "#23252e", font)
    return np.array(image)
