"""Session: one game that people and agents play together, whatever shows it to the people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from magrounding.envs.make import make, make_vec
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.play.evaluate import GREEDY, SAMPLED
from magrounding.play.lineup import Lineup, begin_memory
from magrounding.play.saved_games import Header, SavedGame, Tape
from magrounding.single.wording import plain_text
from magrounding.spec import CHOICES, TextChoices


@dataclass(frozen=True)
class Move:
    """What an agent can do now.

    Attributes:
        action: its number.
        name: its name, or the words of the choice.
    """

    action: int
    name: str


@dataclass(frozen=True)
class View:
    """A game at one moment, as people see it.

    Attributes:
        step: how many steps have been played.
        picture: the game as text.
        last: what each agent did in the step before, and what came of it.
        over, won: whether the game has ended, and how.
        score: of the episode so far.
    """

    step: int
    picture: str
    last: tuple[str, ...]
    over: bool
    won: bool
    score: float


class Session:
    """A game with people in some seats and actors in the others; it moves when all have chosen.

    Args:
        env, options: environment id and its options.
        lineup: who plays; its people choose by `choose`.
        seed: of the game.
        greedy: trained agents take the most likely action instead of drawing one.

    Attributes:
        views: all moments of the game, the last being the present.
        header: of the files that keep its games.
        chosen: agent → what its person has chosen for the step to come.

    Raises:
        ConfigurationError: options that make no game, or a player that cannot play it.
    """

    def __init__(
        self, env: str, options: Mapping[str, Any], lineup: Lineup, seed: int = 0, greedy: bool = True
    ) -> None:
        self.vec = make_vec(env, 1, **options)
        # The batch begins anew in the step that ends a game; a single env of the same seed still shows the end.
        self._shown: Any = make(env, render_mode="ansi", **options)
        self.lineup, self.seed = lineup, seed
        self.people = lineup.people
        self._greedy = greedy
        self.header = Header.of(self.vec, [str(seat) for seat in lineup.seats], GREEDY if greedy else SAMPLED)
        self.views: list[View] = []
        self.chosen: dict[int, int] = {}
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Start the game of a seed afresh."""
        self.seed, self.chosen = seed, {}
        self._actor = self.lineup.sit(self.vec, seed)
        self._memory = begin_memory(self._actor, 1, seed)
        self._tape = Tape(1, self.vec.spec)
        self._obs, self._info = self.vec.reset(seed=seed)
        self._shown.reset(seed=seed)
        self._over = False
        self.views = []
        self.views.append(self._look(()))

    @property
    def now(self) -> View:
        return self.views[-1]

    @property
    def living(self) -> list[int]:
        """Agents that act in the step to come; none once the game is over."""
        return [] if self._over else np.flatnonzero(self._info.alive[0]).tolist()

    @property
    def waiting(self) -> list[int]:
        """Agents whose people have not chosen yet."""
        return [agent for agent in self.living if agent in self.people and agent not in self.chosen]

    def moves(self, agent: int) -> list[Move]:
        """What an agent can do now, by number."""
        mask = self._obs["action_mask"][0, agent]
        return [Move(int(action), self._name(agent, int(action))) for action in np.flatnonzero(mask)]

    def choose(self, agent: int, action: int) -> None:
        """What a person's agent shall do; it can be changed until the game moves.

        Raises:
            InvalidAction: an agent that is no person's or does not act, or a move that is not legal.
        """
        if agent not in self.people or agent not in self.living:
            raise InvalidAction(f"agent {agent} is not for a person to move now; waiting: {self.waiting}")
        if action not in (move.action for move in self.moves(agent)):
            raise InvalidAction(f"agent {agent} cannot do {action!r} now")
        self.chosen[agent] = action

    def advance(self) -> bool:
        """Play a step if all people have chosen; whether it did."""
        if self._over or self.waiting:
            return False
        self._tape.see(self._obs, self._info)
        partial = {"rows": np.arange(1)} if getattr(self._actor, "accepts_rows", False) else {}
        actions, self._memory = self._actor.act(self._obs, self._memory, self._info, self._greedy, **partial)
        actions = np.where(self._info.alive, actions, 0)
        for agent, action in self.chosen.items():
            actions[0, agent] = action
        done = [f"agent {agent}: {self._name(agent, int(actions[0, agent]))}" for agent in self.living]
        living, self.chosen = self.living, {}
        self._shown.step({name: int(actions[0, agent]) for agent, name in self._names(living)})
        self._obs, rewards, _, truncated, self._info = self.vec.step(actions)
        self._tape.played(actions, truncated, self._info)
        self._over = bool(self._info.done[0])
        for k, agent in enumerate(living):
            blocked = ", which it could not" if self._info.illegal[0, agent] else ""
            paid = f", reward {rewards[0, agent]:+.2f}" if rewards[0, agent] else ""
            done[k] += blocked + paid
        self.views.append(self._look(tuple(done)))
        return True

    def saved(self) -> SavedGame:
        """The game as a file keeps it; ConfigurationError before its end."""
        if not self._over:
            raise ConfigurationError("a game is saved when it is over")
        return self._tape.game(0, self.seed)

    def close(self) -> None:
        """Let the game go."""
        self.vec.close()
        self._shown.close()

    def _names(self, agents: list[int]) -> list[tuple[int, str]]:
        return [(agent, self._shown.possible_agents[agent]) for agent in agents]

    def _look(self, last: tuple[str, ...]) -> View:
        """The present."""
        won, score = bool(self._info.won[0]) and self._over, float(self._info.score[0])
        return View(len(self.views), str(self._shown.render()), last, self._over, won, score)

    def _name(self, agent: int, action: int) -> str:
        spec = self.vec.spec
        if not isinstance(spec.actions, TextChoices):
            return spec.actions.names[action]
        offered = self._obs[CHOICES][0]
        row = offered[action] if offered.ndim == 2 else offered[agent, action]
        return plain_text(spec.words, row.tolist()) or "nothing"
