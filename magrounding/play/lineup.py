"""Line-up: who plays which agent, "run:runs/quick,oracle": trained agents, experts, scripts and chance in one game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError, choose
from magrounding.play.actor import make_expert
from magrounding.play.script import scripted
from magrounding.play.scripted import RandomTeam
from magrounding.play.team import Team, load_team, mixed_team
from magrounding.pretrained import PREFIX
from magrounding.vector import VectorEnv

HUMAN, ORACLE, RANDOM, RUN, SCRIPT = "human", "oracle", "random", "run", "script"
PRETRAINED = PREFIX.removesuffix(":")
GRAMMAR = f"{RUN}:DIR, {RUN}:DIR@STAGE, {PREFIX}NAME, {ORACLE}, {RANDOM}, {SCRIPT}:FILE or, in `play`, {HUMAN}"
"""What may stand for an agent."""


@dataclass(frozen=True)
class Seat:
    """Who plays one agent.

    Attributes:
        kind: HUMAN, ORACLE, RANDOM, RUN, PRETRAINED or SCRIPT.
        source: the run's folder, the name of the pretrained team, or the script's file.
        stage: whose weights of a run; the last stage's where it is empty.
    """

    kind: str
    source: str = ""
    stage: str = ""

    @classmethod
    def parse(cls, text: str) -> Seat:
        """A seat as it is typed; ConfigurationError for anything but the GRAMMAR."""
        kind, colon, source = text.strip().partition(":")
        choose("player", kind, (HUMAN, ORACLE, RANDOM, RUN, PRETRAINED, SCRIPT))
        if bool(source) != (kind in (RUN, PRETRAINED, SCRIPT)) or (colon and not source):
            raise ConfigurationError(f"a player is {GRAMMAR}, got {text!r}")
        folder, _, stage = source.rpartition("@") if kind == RUN and "@" in source else (source, "", "")
        return cls(kind, folder, stage)

    def __str__(self) -> str:
        source = f":{self.source}" if self.source else ""
        return f"{self.kind}{source}{'@' if self.stage else ''}{self.stage}"

    def sit(self, vec: VectorEnv, seed: int) -> Any:
        """An Actor for a vector env's games; `seed` decides what it draws. That of a person does nothing."""
        if self.kind == HUMAN:
            return Vacant(vec.num_agents)
        if self.kind == ORACLE:
            return make_expert(vec)
        if self.kind == RANDOM:
            return RandomTeam(vec.num_agents, vec.spec.num_actions, seed)
        if self.kind == SCRIPT:
            return scripted(self.source, vec, seed)
        team = load_team(PREFIX + self.source if self.kind == PRETRAINED else self.source, stage=self.stage or None)
        return team.for_games(vec)


@dataclass(frozen=True)
class Lineup:
    """Who plays, agent by agent.

    Attributes:
        seats: one for each agent.
        name: as it was typed.
    """

    seats: tuple[Seat, ...]
    name: str

    @classmethod
    def parse(cls, text: str, num_agents: int) -> Lineup:
        """A line-up as it is typed: players separated by commas, one for each agent or one for all of them.

        Raises:
            ConfigurationError: another number of players, or one that is none.
        """
        typed = [part for part in text.split(",") if part.strip()]
        if len(typed) not in (1, num_agents):
            raise ConfigurationError(
                f"a line-up has one player for all agents, or one for each of the {num_agents}, got {text!r}"
            )
        seats = tuple(map(Seat.parse, typed))
        return cls(seats * num_agents if len(seats) == 1 else seats, ",".join(map(str, seats)))

    @property
    def people(self) -> tuple[int, ...]:
        """Agents that people play."""
        return tuple(agent for agent, seat in enumerate(self.seats) if seat.kind == HUMAN)

    def sit(self, vec: VectorEnv, seed: int) -> Any:
        """An Actor that plays a vector env's games in this line-up.

        Args:
            vec: the games.
            seed: of what its players draw.

        Raises:
            ConfigurationError: a player that cannot play these games.
            CheckpointError: no trained team where one was named.
        """
        actors = {seat: seat.sit(vec, seed) for seat in dict.fromkeys(self.seats)}
        if len(actors) == 1:
            return next(iter(actors.values()))
        if all(isinstance(actor, Team) for actor in actors.values()):
            return mixed_team([actors[seat] for seat in self.seats])
        return MixedActor(list(actors.values()), [list(actors).index(seat) for seat in self.seats])


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

    accepts_rows = True

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
    ) -> tuple[np.ndarray, list[Any]]:
        """Actions [B, n] int64."""
        chosen: list[np.ndarray] = []
        for k, actor in enumerate(self._actors):
            some = {"rows": rows} if getattr(actor, "accepts_rows", False) else {}
            actions, memory[k] = actor.act(obs, memory[k], info, greedy, **some)
            chosen.append(actions)
        return np.choose(self._plays, np.stack(chosen)), memory


def begin_memory(actor: Any, num_envs: int, seed: int = 0) -> Any:
    """What an actor remembers of games that are about to start; a trained team draws by `seed`."""
    make = getattr(actor, "initial_memory", None)
    if make is None:
        return None
    return make(num_envs, seed) if isinstance(actor, Team | MixedActor) else make(num_envs)
