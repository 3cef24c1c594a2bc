"""Our games as an environment of verifiers 0.4: `vf-eval magrounding-verifiers`, and what trains on its environments.

Every open agent is a role, `agent_0`, `agent_1`, …, with its own trace, and is asked as the player `llm:NAME` is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any, TypeVar

from magrounding.errors import ConfigurationError, needed
from magrounding.extensions.language_models.dialogue import Dialogue
from magrounding.extensions.language_models.open_game import MODEL, TRAIN, OpenGame, OpenGames
from magrounding.vector import check_count

with needed("an environment of verifiers", "verifiers"):
    import verifiers.v1 as vf
    from openai import AsyncOpenAI
    from pydantic import create_model, model_validator

ROLES = 10
"""Number of roles; the agents behind them may be played by teams only."""
T = TypeVar("T")


class GroundedConfig(vf.TasksetConfig):
    """Options of the games, those of `OpenGames`, and their numbers."""

    env: str = "rtfm"
    """Environment id."""
    options: dict[str, Any] = {}  # noqa: RUF012
    """Options of the environment."""
    players: str = MODEL
    """A player for each agent, or one for all: model (the one that is evaluated or trained), or else oracle, random,
    pretrained:NAME, run:DIR."""
    split: str = TRAIN
    """Evaluation set of the games."""
    first: int = 0
    """Number of the first game; another one plays other games."""
    games: int = 1000
    """Games."""
    prompt: str = "naive"
    """Template of the instructions: naive, chain_of_thought, few_games or a file (.txt)."""
    reply: str = "marks"
    """Form of a move in a reply: marks or json."""
    history: int = 4
    """Steps before this one that are read again. In training choose at least the length of a game: then a game is one
    conversation."""

    @model_validator(mode="after")
    def _check(self) -> GroundedConfig:
        if self.id:  # without one it is a default, which is not played
            check_count("games", self.games, 1)
            check_count("first", self.first, 0)
            if any(agent >= ROLES for agent in self.open_games().open_agents):
                raise ConfigurationError(f"there are roles for {ROLES} agents, and one behind them is open")
        return self

    def open_games(self) -> OpenGames:
        """Return the games; ConfigurationError for options that make none."""
        names = "env", "options", "players", "split", "prompt", "reply", "history"
        return OpenGames(**{name: getattr(self, name) for name in names})


class Outcome(vf.State):
    """Results of a game for one agent.

    Attributes:
        won: the game was won.
        world_reward: sum of the agent's rewards.
        refused: replies without a legal move.
        steps: that were played.
    """

    won: bool = False
    world_reward: float = 0.0
    refused: int = 0
    steps: int = 0


class GameData(vf.TaskData):
    """A game: environment, options, split, and its number there."""

    env: str
    options: dict[str, Any]
    split: str
    number: int


class GameTask(vf.Task[GameData, Outcome, vf.TaskConfig]):
    """One game. Winning is rewarded with 1; `--env.taskset.task.rewards.world_reward.weight` adds the world's own."""

    @vf.reward(weight=1.0)
    async def won(self, trace: vf.Trace) -> float:
        """1 for a game that was won, else 0."""
        return float(trace.state.won)

    @vf.reward(weight=0.0)
    async def world_reward(self, trace: vf.Trace) -> float:
        """The sum of the agent's rewards."""
        return trace.state.world_reward

    @vf.metric
    async def refused(self, trace: vf.Trace) -> float:
        """Replies without a legal move."""
        return float(trace.state.refused)

    @vf.metric
    async def steps(self, trace: vf.Trace) -> float:
        """Steps of the game."""
        return float(trace.state.steps)


class GroundedTaskset(vf.Taskset[GameTask, GroundedConfig]):
    """The games of a split, by their numbers."""

    @cached_property
    def open_games(self) -> OpenGames:
        """The games of the options."""
        return self.config.open_games()

    def load(self) -> Iterator[GameTask]:
        config, games = self.config, self.open_games
        for number in range(config.first, config.first + config.games):
            data = GameData(
                name=f"{config.env} {config.split} {number}",
                env=config.env,
                options=dict(games.options),
                split=config.split,
                number=number,
                system_prompt=games.instructions,
            )
            yield GameTask(data, config.task)


class Exchange(vf.HarnessSession):
    """The calls of one rollout."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._client = AsyncOpenAI(api_key=self.secret, base_url=self.endpoint)

    async def _run(self, messages: vf.Messages | None) -> vf.ProgramResult:
        sent: Any = [{"role": each.role, "content": each.content} for each in messages or self.data.prompt]
        await self._client.chat.completions.create(model=self.ctx.model, messages=sent)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")  # the reply is in the trace

    async def close(self) -> None:
        await self._client.close()
        await super().close()


class GroundedHarness(vf.Harness[vf.HarnessConfig]):
    """Sends the messages of a turn as they are, in this process: a `Dialogue` knows what its model reads again."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *arguments: Any, **named: Any) -> Exchange:
        return Exchange(self, *arguments, **named)

    async def launch(self, *arguments: Any, **named: Any) -> vf.ProgramResult:
        """Ask for the reply to a task's own prompt."""
        exchange = await self.session(*arguments, **named)
        try:
            return await exchange._run(None)
        finally:
            await exchange.close()


_ROLES: Any = {f"agent_{k}": (vf.AgentConfig, vf.AgentConfig(runtime=vf.SubprocessConfig())) for k in range(ROLES)}


class RolesConfig(create_model("Roles", __base__=vf.EnvConfig, **_ROLES)):
    """A role for each agent; those of agents that teams play are not used."""


class GroundedEnv(vf.Env[RolesConfig]):
    """A game: open agents choose at once, teams of ours play the others."""

    async def start(self) -> None:
        self._thread = ThreadPoolExecutor(1)  # teams are shared by games, which go on meanwhile
        game = await self._compute(self.taskset.open_games.begin, self.taskset.config.first)
        game.close()  # a player that cannot play is refused before any game

    async def stop(self) -> None:
        self._thread.shutdown(wait=False)

    taskset: Any  # a GroundedTaskset

    async def run(self, task: vf.Task[Any, Any, Any], agents: vf.Agents) -> None:
        games, data = self.taskset.open_games, task.data
        game: OpenGame = await self._compute(games.begin, data.number, data.system_prompt)
        async with AsyncExitStack() as stack:
            stack.callback(game.close)
            exchanges = {}
            for agent in game.dialogues:
                role = getattr(agents, f"agent_{agent}")
                exchanges[agent] = await stack.enter_async_context(role.interaction(task))
            while not game.over:
                asked = game.asked
                if not asked:
                    await self._compute(game.advance)
                elif not all(await asyncio.gather(*(_ask(exchanges[k], each) for k, each in asked.items()))):
                    break  # at a limit of the role's own
            for agent, exchange in exchanges.items():
                state = exchange.trace.state
                state.won, state.world_reward, state.steps = game.won, float(game.returns[agent]), game.steps

    async def _compute(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


async def _ask(exchange: Any, dialogue: Dialogue) -> bool:
    """Ask for one reply; return False where the exchange is over."""
    segment = await exchange.turn(dialogue.messages)
    if segment.terminated:
        return False
    exchange.trace.state.refused += dialogue.answer(segment.messages[-1].content or "")
    return True
