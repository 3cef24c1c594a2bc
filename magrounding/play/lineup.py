"""Line-up: who plays which agent, "run:runs/quick,oracle": trained agents, experts, scripts and chance in one game.

From Python, functions and actors of one's own play as well:

    def cautious(observation, legal_actions, info):
        return legal_actions["stay"]

    Lineup.parse(["oracle", cautious], num_agents=2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, did_you_mean
from magrounding.play.actor import begin_memory, make_expert
from magrounding.play.function import FunctionTeam
from magrounding.play.loading import load_team
from magrounding.play.overlap import OverlapTeam
from magrounding.play.script import Script, ScriptedTeam
from magrounding.play.scripted import random_team
from magrounding.play.team import Team, mixed_team
from magrounding.pretrained import PREFIX
from magrounding.vector import VectorEnv

HUMAN, ORACLE, RANDOM, OVERLAP = "human", "oracle", "random", "overlap"
RUN, SCRIPT, PYTHON = "run", "script", "python"
PRETRAINED = PREFIX.removesuffix(":")
KINDS = HUMAN, ORACLE, RANDOM, OVERLAP, RUN, PRETRAINED, SCRIPT
"""Players that can be typed."""
GRAMMAR = (
    f"{RUN}:DIR, {RUN}:DIR@STAGE, {PREFIX}NAME, {ORACLE}, {ORACLE}:NAME, {RANDOM}, {OVERLAP}, "
    f"{SCRIPT}:FILE or, in `play`, {HUMAN}"
)
"""What may stand for an agent."""


@dataclass(frozen=True)
class Seat:
    """Who plays one agent.

    Attributes:
        kind: of KINDS, or PYTHON.
        source: the run's folder, the name of the pretrained team, of the oracle where it is not the environment's own,
            the script's file, or what the function is called.
        stage: whose weights of a run; the last stage's where it is empty.
        player: of PYTHON: a function (see `FunctionTeam`), or an Actor; or a team of a run that is loaded already.
    """

    __repr__ = brief

    kind: str
    source: str = ""
    stage: str = ""
    player: Any = None

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Equal for two seats that one player takes: a function or an actor is itself, whatever it is equal to."""
        return self.kind, self.source, self.stage, id(self.player)

    @classmethod
    def parse(cls, player: Any) -> Seat:
        """A seat as it is typed, or of a function or an Actor; ConfigurationError for anything but these."""
        if not isinstance(player, str):
            if not callable(player) and not callable(getattr(player, "act", None)):
                raise ConfigurationError(f"a player is {GRAMMAR}, a function or an actor, got {player!r}")
            return cls(PYTHON, getattr(player, "__name__", type(player).__name__), player=player)
        kind, colon, source = player.strip().partition(":")
        wanted = bool(source) if kind == ORACLE else kind in (RUN, PRETRAINED, SCRIPT)
        if kind not in KINDS or bool(source) != wanted or (colon and not source):
            raise ConfigurationError(f"a player is {GRAMMAR}, got {player!r}{did_you_mean(kind, KINDS)}")
        folder, _, stage = source.rpartition("@") if kind == RUN and "@" in source else (source, "", "")
        return cls(kind, folder, stage)

    def __str__(self) -> str:
        source = f":{self.source}" if self.source else ""
        return f"{self.kind}{source}{'@' if self.stage else ''}{self.stage}"

    def sit(self, vec: VectorEnv, seed: int, agents: Sequence[int] | None = None) -> Any:
        """An Actor for a vector env's games; `seed` decides what it draws. That of a person does nothing.

        Args:
            vec: the games.
            seed: of draws.
            agents: whom it moves, by default all. A function is asked for no others.
        """
        if hasattr(self.player, "act"):
            return self.player
        if self.kind == PYTHON:
            return FunctionTeam(self.player, vec.spec, range(vec.num_agents) if agents is None else agents)
        if self.kind == HUMAN:
            return Vacant(vec.num_agents)
        if self.kind == ORACLE:
            return make_expert(vec, self.source)
        if self.kind == RANDOM:
            return random_team(vec, seed)
        if self.kind == OVERLAP:
            return OverlapTeam(vec.spec, seed)
        if self.kind == SCRIPT:
            return ScriptedTeam(Script.load(self.source), vec.spec, seed)
        return load_team(PREFIX + self.source if self.kind == PRETRAINED else self.source, stage=self.stage or None)


@dataclass(frozen=True)
class Lineup:
    """Who plays, agent by agent.

    Attributes:
        seats: one for each agent.
        name: as it was typed; functions and actors as "python:NAME".
    """

    __repr__ = brief

    seats: tuple[Seat, ...]
    name: str
    _loaded: dict[Any, Team] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def parse(cls, players: str | Sequence[Any], num_agents: int) -> Lineup:
        """A line-up of one player for each agent, or one for all of them.

        Args:
            players: as they are typed, separated by commas; or a list of such texts, functions (see `FunctionTeam`) and
                actors.
            num_agents: n.

        Raises:
            ConfigurationError: another number of players, or one that is none.
        """
        typed = [part for part in players.split(",") if part.strip()] if isinstance(players, str) else list(players)
        if len(typed) not in (1, num_agents):
            raise ConfigurationError(
                f"a line-up has one player for all agents, or one for each of the {num_agents}, got {players!r}"
            )
        seats = tuple(map(Seat.parse, typed))
        return cls(seats * num_agents if len(seats) == 1 else seats, ",".join(map(str, seats)))

    @property
    def people(self) -> tuple[int, ...]:
        """Agents that people play."""
        return tuple(agent for agent, seat in enumerate(self.seats) if seat.kind == HUMAN)

    def sit(self, vec: VectorEnv, seed: int) -> Any:
        """An Actor that plays a vector env's games in this line-up; teams are loaded when it first sits.

        Args:
            vec: the games.
            seed: of what its players draw.

        Raises:
            ConfigurationError: a player that cannot play these games.
            CheckpointError: no trained team where one was named.
        """
        order = [seat.key for seat in self.seats]
        actors: dict[Any, Any] = {}
        for seat in self.seats:
            if seat.key not in actors:
                agents = [k for k, key in enumerate(order) if key == seat.key]
                actors[seat.key] = self._loaded.get(seat.key) or seat.sit(vec, seed, agents)
        self._loaded.update({key: actor for key, actor in actors.items() if isinstance(actor, Team)})
        actors = {key: actor.for_games(vec) if isinstance(actor, Team) else actor for key, actor in actors.items()}
        if len(actors) == 1:
            return next(iter(actors.values()))
        if all(isinstance(actor, Team) for actor in actors.values()):
            return mixed_team([actors[key] for key in order])
        return MixedActor(list(actors.values()), [list(actors).index(key) for key in order])


class Vacant:
    """Sits where a person does: all agents take action 0, for the person to change.

    Args:
        num_agents: n.
    """

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents

    def act(self, obs: Any, memory: Any = None, info: Any = None, greedy: bool = True) -> tuple[np.ndarray, None]:
        """Actions [B, n] int64."""
        return np.zeros((len(obs["action_mask"]), self._num_agents), np.int64), None


class MixedActor:
    """Several actors in one batch of games: each thinks for all agents, and moves those that are its own.

    Args:
        actors: who think.
        plays: [n], which of them moves each agent.
    """

    accepts_rows = draws = explains = True

    def __init__(self, actors: list[Any], plays: list[int]) -> None:
        self._actors, self._plays = actors, np.array(plays)

    def initial_memory(self, num_envs: int, seed: int = 0) -> list[Any]:
        """What each of them remembers."""
        return [begin_memory(actor, num_envs, seed) for actor in self._actors]

    def act(
        self,
        obs: Mapping[str, Any],
        memory: list[Any],
        info: Mapping[str, Any],
        greedy: bool = True,
        rows: np.ndarray | None = None,
        explain: bool = False,
    ) -> tuple[np.ndarray, list[Any]]:
        """Actions [B, n] int64."""
        chosen: list[np.ndarray] = []
        for k, actor in enumerate(self._actors):
            wanted: dict[str, Any] = {"rows": rows} if getattr(actor, "accepts_rows", False) else {}
            if getattr(actor, "explains", False):
                wanted["explain"] = explain
            actions, memory[k] = actor.act(obs, memory[k], info, greedy, **wanted)
            chosen.append(actions)
        return np.choose(self._plays, np.stack(chosen)), memory

    def set_last_actions(self, memory: list[Any], actions: np.ndarray) -> None:
        """See `Team.set_last_actions`; actors without it do not read it."""
        for actor, own in zip(self._actors, memory, strict=True):
            if hasattr(actor, "set_last_actions"):
                actor.set_last_actions(own, actions)

    def aux(self, memory: list[Any]) -> list[dict[str, np.ndarray]]:
        """See `Team.aux`; nothing of an agent whom no network moves."""
        aux = [
            actor.aux(memory[k]) if getattr(actor, "explains", False) else [{}] * len(self._plays)
            for k, actor in enumerate(self._actors)
        ]
        return [aux[k][agent] for agent, k in enumerate(self._plays)]
