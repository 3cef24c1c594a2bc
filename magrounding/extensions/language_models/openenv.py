"""Our games as a server of OpenEnv 0.10, over HTTP and WebSockets: `uvicorn.run(make_app("rtfm"), port=8000)`.

The client plays one agent, teams of ours play the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from magrounding.errors import CallOrderError, ConfigurationError, check_choice, needed
from magrounding.extensions.language_models.open_game import MODEL, OpenGame, OpenGames
from magrounding.vector import check_count

with needed("a server of OpenEnv", "openenv"):
    from fastapi import FastAPI
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app

WIN, WORLD = REWARDS = "win", "world"
"""Reward of a step: 1 for the one that wins the game, or the world's own."""


class Reply(Action):
    """Reply of a model: `reply`, its whole text."""

    reply: str


class Asked(Observation):
    """Request for a reply, as the player `llm:NAME` gets it.

    Attributes:
        messages: the whole request; the last again at the end of a game.
        won: whether the game was won; None as long as it goes on.
    """

    messages: list[dict[str, str]]
    won: bool | None = None


class GameState(State):
    """The game; `step_count` are its steps, and a reply that was refused is none.

    Attributes:
        env, options, split, number: which game it is.
        refused: replies without a legal move.
        total_reward: sum of the agent's rewards in the world.
    """

    env: str
    options: dict[str, Any]
    split: str
    number: int | None = None
    refused: int = 0
    total_reward: float = 0.0


class GroundedEnvironment(Environment[Reply, Asked, GameState]):
    """One session: a game after the other, the number of each being the `seed` of its reset, or drawn.

    Args:
        games: with one open agent.
        reward: of REWARDS.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True  # sessions share the teams

    def __init__(self, games: OpenGames, reward: str) -> None:
        super().__init__()
        self._games, self._reward, self._game = games, reward, None
        self._agent = games.open_agents[0]
        self._rng = np.random.default_rng()
        self._state = GameState(env=games.env, options=dict(games.options), split=games.split)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> Asked:
        number = int(self._rng.integers(2**31)) if seed is None else seed
        game = self._games.begin(number)
        self.close()
        self._game = game
        about = self._state.model_dump(include={"env", "options", "split"})
        self._state = GameState(**about, number=number, episode_id=episode_id)
        return self._ask(game, None)

    def step(self, action: Reply, timeout_s: float | None = None, **more: Any) -> Asked:
        """Take a reply; one that is refused is asked for once more, with the reason, and the game waits.

        CallOrderError before `reset` and after the end of a game.
        """
        game = self._game
        if game is None or game.over:
            raise CallOrderError("no game goes on: call reset")
        dialogue = game.dialogues[self._agent]
        self._state.refused += dialogue.answer(action.reply)
        if dialogue.action is None:
            return self._ask(game, 0.0)
        game.advance()
        self._state.step_count, self._state.total_reward = game.steps, float(game.returns[self._agent])
        return self._ask(game, float(game.rewards[self._agent]) if self._reward == WORLD else float(game.won))

    @property
    def state(self) -> GameState:
        return self._state

    def close(self) -> None:
        if self._game is not None:
            self._game.close()
            self._game = None

    def _ask(self, game: OpenGame, reward: float | None) -> Asked:
        messages: Any = list(game.dialogues[self._agent].messages)
        return Asked(messages=messages, won=game.won if game.over else None, done=game.over, reward=reward)


def make_app(
    env: str,
    options: Mapping[str, Any] | None = None,
    players: str = MODEL,
    *,
    reward: str = WIN,
    sessions: int = 64,
    **more: Any,
) -> FastAPI:
    """Make the server's application, which any ASGI server runs.

    Args:
        env, options, players: see `OpenGames`; one agent is open.
        reward: win (1 for the step that wins the game) or world (the world's own reward).
        sessions: clients at once, at most.
        more: split, prompt, reply, history, see `OpenGames`.

    Raises:
        ConfigurationError: games that cannot be, or another number of open agents.
    """
    games = OpenGames(env, options or {}, players, **more)
    if len(games.open_agents) != 1:
        many = len(games.open_agents)
        raise ConfigurationError(f"the client plays one agent, as in {MODEL},oracle; {many} are open")
    check_choice("reward", reward, REWARDS)
    games.begin(0).close()  # a player that cannot play is refused before any game
    make = partial(GroundedEnvironment, games, reward)
    most = check_count("sessions", sessions, 1)
    return create_fastapi_app(make, Reply, Asked, most, env_name="magrounding", state_cls=GameState)
