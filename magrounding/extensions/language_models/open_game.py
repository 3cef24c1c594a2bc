"""Open games: agents that another program plays by replies, for frameworks in which language models are trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.envs.make import make_vec
from magrounding.errors import ConfigurationError, check_choice
from magrounding.extensions.language_models.dialogue import Dialogue, instructions, outcome
from magrounding.extensions.language_models.prompts import REPLIES, Prompt
from magrounding.registry import describe, env_entry
from magrounding.teams.episodes import Episodes
from magrounding.teams.evaluate import REPORT_SEED
from magrounding.teams.lineup import HUMAN, Lineup
from magrounding.text_view import Happened, find_text_view
from magrounding.vector import check_count

TRAIN = "train"
"""The split of training."""
OPEN_SEED = 2**45
"""Seed of the first game of training; games of reports, matches and examples never come near it."""
MODEL = "model"
"""The player of an open agent: another program."""


@dataclass(frozen=True)
class OpenGames:
    """Games of an environment with open agents; the teams that play the others are loaded once.

    Attributes:
        env, options: environment id and its options, without those that the split chooses.
        players: a player for each agent, or one for all: "model" for one that is open, or else as in line-ups.
        split: evaluation set of the environment; "train", the default, has no game of the others. Seeds of any other
            begin where those of reports do.
        prompt, reply, history: as those of `LanguageModel`.

    Raises:
        ConfigurationError: options or a split that the environment does not have, no open agent, or a player that
            is none.
    """

    __repr__ = brief

    env: str
    options: Mapping[str, Any]
    players: str = MODEL
    split: str = TRAIN
    prompt: str = "naive"
    reply: str = REPLIES[0]
    history: int = 4

    def __post_init__(self) -> None:
        entry = env_entry(self.env)
        sets = entry.evaluation.sets_of(self.options.get(entry.stage_option, entry.options.get(entry.stage_option, "")))
        chosen = sets[check_choice(f"split of {self.env}", self.split, tuple(sets))]
        if both := sorted({"split", *chosen} & {*self.options}):
            raise ConfigurationError(f"{', '.join(both)}: the split chooses it, leave it out of the options")
        object.__setattr__(self, "options", {**self.options, **chosen})
        check_choice("form of a reply", self.reply, REPLIES)
        check_count("history", self.history, 0)
        if not self.open_agents:
            raise ConfigurationError(f"no agent is open in {self.players!r}: name {MODEL!r} for at least one")

    @cached_property
    def lineup(self) -> Lineup:
        """The players; people stand for what plays open agents."""
        agents = describe(env_entry(self.env).configure(**self.options)).num_agents
        named = [player.strip() for player in self.players.split(",")]
        return Lineup.parse([HUMAN if player == MODEL else player for player in named], agents)

    @property
    def open_agents(self) -> tuple[int, ...]:
        """Agents that another program plays."""
        return self.lineup.people

    @cached_property
    def template(self) -> Prompt:
        """The prompt's template."""
        return Prompt.load(self.prompt)

    @cached_property
    def instructions(self) -> str:
        """The first message of every game."""
        return instructions(self.template, self.reply, self.env, self.options)

    def begin(self, number: int, instructions: str | None = None) -> OpenGame:
        """Begin a game by its number in the split, in [0, 2**31); with `instructions` instead of the prompt's.

        Errors are those of `Lineup.build_actor`.
        """
        first = OPEN_SEED if self.split == TRAIN else REPORT_SEED
        seed = first + check_count("the number of a game", number, 0)
        return OpenGame(self, seed, self.instructions if instructions is None else instructions)


class OpenGame:
    """One game, in which open agents are asked as the player `llm:NAME` is.

    While it is not `over`: reply to the messages of each dialogue in `asked`, until none is left; then `advance`.

    Attributes:
        vec: a batch of one.
        dialogues: open agent → its conversation.
        rewards: [n] what each agent was paid since the choice before.
        returns: [n] sum of all its rewards.
        steps: that were played.
        won: the game was won.
    """

    def __init__(self, games: OpenGames, seed: int, instructions: str) -> None:
        self.vec = make_vec(games.env, 1, **games.options)
        view = find_text_view(self.vec.id, self.vec.spec)
        self.dialogues = {
            agent: Dialogue(view, games.template, games.reply, instructions, games.history)
            for agent in games.open_agents
        }
        self._actor = games.lineup.build_actor(self.vec, seed)
        self._episodes = Episodes(self._actor, self.vec, 1, seed, draw_seed=seed)
        self.rewards = self.returns = np.zeros(self.vec.num_agents)
        self.steps, self.won = 0, False
        self._ask({})

    @property
    def over(self) -> bool:
        """True at the end of the game."""
        return not self._episodes.rows.size

    @property
    def asked(self) -> dict[int, Dialogue]:
        """Agent → dialogue that waits for a reply."""
        return {agent: each for agent, each in self._asking.items() if each.action is None}

    def advance(self) -> None:
        """Play the step for which all have chosen, and all steps in which no open agent has a choice."""
        paid = np.zeros(self.vec.num_agents)
        while not self.over:
            episodes = self._episodes
            actions = np.where(episodes.info.alive, episodes.choose(), 0)
            for agent, dialogue in self._asking.items():
                actions[0, agent] = dialogue.action
            episodes.play(actions)
            if hasattr(self._actor, "set_last_actions"):  # open agents may have done something else than stand-ins
                self._actor.set_last_actions(episodes.memory, actions)
            info, rewards = episodes.info, episodes.rewards[0]
            paid += rewards
            self.steps, self.won, self.returns = int(info.length[0]), bool(info.won[0]), info.returns[0].copy()
            self._ask({k: outcome(actions[0, k], info.illegal[0, k], rewards[k]) for k in self.dialogues})
            if self._asking:
                break
        self.rewards = paid

    def close(self) -> None:
        """Close the env."""
        self.vec.close()

    def _ask(self, happened: Mapping[int, Happened]) -> None:
        """Ask the open agents that are alive about the present step."""
        obs, alive = self._episodes.obs, self._episodes.info.alive[0]
        self._asking = {agent: each for agent, each in self.dialogues.items() if alive[agent] and not self.over}
        for agent, dialogue in self._asking.items():
            dialogue.ask(obs, 0, agent, happened.get(agent, Happened()))
