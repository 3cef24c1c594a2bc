"""Offers: environments, options within limits, and players by name, for clients to choose from; never a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.extensions.people.web.limits import Limits
from magrounding.extensions.people.web.messages import Refusal, require
from magrounding.pretrained import PREFIX, pretrained_names
from magrounding.registry import EnvEntry, env_entry
from magrounding.run_folder import RunFolder
from magrounding.spec import EnvSpec
from magrounding.teams.actor import has_expert
from magrounding.teams.lineup import HUMAN, ORACLE, PRETRAINED, RANDOM, RUN, Lineup, PlayerSpec
from magrounding.teams.saved_games import Header
from magrounding.teams.session import Session

_NUMBERS = ("size", "max_cycles", "sight", "occupants", "chase_range")
"""Options that are numbers. Others may take memory: the host alone sets them, and texts, which may name a file."""
_LARGEST_SEED = 2**31


@dataclass(frozen=True)
class Plan:
    """A game that can be made, the `Session` of its environment, options and seed.

    Attributes:
        shown: options that clients may see.
        players: the name of each agent's player.
        lineup: the players; stand-ins for people.
        people: agents that people play.
        standin: the name of the stand-in.
        names: of players, as clients read them.
        hidden: agents whose networks' reports clients do not see.
    """

    __repr__ = brief

    env: str
    options: Mapping[str, Any]
    shown: Mapping[str, Any]
    players: tuple[str, ...]
    lineup: Lineup
    people: tuple[int, ...]
    standin: str
    seed: int
    names: tuple[str, ...]
    hidden: tuple[int, ...]

    def make(self) -> Session:
        """Make the game; Refusal "bad_game" where it cannot be made."""
        try:
            session = Session(self.env, self.options, self.lineup, self.seed)
        except ConfigurationError as error:
            raise Refusal("bad_game", str(error)) from None
        except MagroundingError as error:
            # Its sentence may name a folder of the host's, unless a package is missing.
            known = str(error) if isinstance(error, ImportError) else "one of its players cannot be had"
            raise Refusal("bad_game", known) from error
        session.people = self.people
        return session


@dataclass(frozen=True)
class Offers:
    """Choices of clients.

    Attributes:
        envs: ids of environments.
        limits: of numbers.
        more_players: name → player, beside people, random, experts and the teams of the package.
        env_options: set by the host in every environment that has them.
        standin: name of the player for people who are away; "": the expert, where there is one, else random.
    """

    __repr__ = brief

    envs: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    more_players: Mapping[str, PlayerSpec] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)
    standin: str = ""

    @cached_property
    def _trained(self) -> dict[str, tuple[PlayerSpec, str, int]]:
        """Name → spec, environment and number of agents, of all trained players."""
        teams = {PREFIX + name: PlayerSpec(PRETRAINED, name) for name in pretrained_names()}
        found = {}
        for name, player in {**teams, **self.more_players}.items():
            if player.kind in (RUN, PRETRAINED):
                source = PREFIX + player.source if player.kind == PRETRAINED else player.source
                config = RunFolder.find(source).config()
                found[name] = player, str(config.get("env")), int(config.get("agents", 1))
        return found

    def players(self, env: str) -> dict[str, PlayerSpec]:
        players = {HUMAN: PlayerSpec(HUMAN), RANDOM: PlayerSpec(RANDOM)}
        if has_expert(env):
            players[ORACLE] = PlayerSpec(ORACLE)
        players |= {name: player for name, (player, world, _) in self._trained.items() if world == env}
        return players | {name: player for name, player in self.more_players.items() if name not in self._trained}

    def listed(self) -> list[dict[str, Any]]:
        agents = {name: count for name, (_, _, count) in self._trained.items()}
        return [
            {
                "env": entry.id,
                "options": self.options_of(entry),
                "players": [{"name": name, "agents": agents.get(name)} for name in self.players(entry.id)],
            }
            for entry in map(env_entry, self.envs)
        ]

    def plan(self, env: str, options: Mapping[str, Any], players: Sequence[Any], seed: int) -> Plan:
        """Return the game that a client asks for; Refusal "bad_game" where it is not offered."""
        require(env in self.envs, "bad_game", "there is no such world here")
        in_bounds = 0 <= seed < _LARGEST_SEED
        require(in_bounds, "bad_game", f"a seed is a whole number from 0 to {_LARGEST_SEED - 1}")
        entry = env_entry(env)
        for name, value in options.items():
            self._check(entry, name, value)
        chosen = {each["name"]: each["default"] for each in self.options_of(entry)} | dict(options)
        chosen = {name: value for name, value in chosen.items() if value is not None}
        plan, spec = self._planned(entry, chosen, {**chosen, **self._fixed(entry)}, players, seed)
        short = spec.max_cycles <= self.limits.steps
        require(short, "bad_game", f"a game here lasts {self.limits.steps} steps at most: choose max_cycles")
        return plan

    def replay(self, header: Header, seed: int) -> Plan:
        """Return the plan of a saved game, whose moves are all given; Refusal "bad_game" if it was not played here."""
        require(header.env in self.envs, "bad_game", "it is of a world that is not offered here")
        entry = env_entry(header.env)
        fixed = self._fixed(entry)
        for name, value in header.options.items():
            if not any(name in known and value == known[name] for known in (entry.options, fixed)):
                self._check(entry, name, value)
        trained = self.players(header.env).keys() & self._trained.keys()
        players = [name if name in trained else HUMAN for name in header.players]
        return self._planned(entry, {}, dict(header.options), players, seed, standin=RANDOM)[0]

    def _planned(
        self,
        entry: EnvEntry,
        shown: Mapping[str, Any],
        options: Mapping[str, Any],
        players: Sequence[Any],
        seed: int,
        standin: str = "",
    ) -> tuple[Plan, EnvSpec]:
        try:
            spec = entry.describe(**options)
            spec.require_memory(1)
        except (MagroundingError, TypeError, ValueError, ArithmeticError) as error:
            known = str(error) if isinstance(error, ConfigurationError) else "its options do not fit"
            raise Refusal("bad_game", known) from None
        few = spec.num_agents <= self.limits.agents
        require(few, "bad_game", f"a game here has {self.limits.agents} agents at most")
        offered = self.players(entry.id)
        fit = len(players) == spec.num_agents and all(type(name) is str and name in offered for name in players)
        require(fit, "bad_game", f"it takes {spec.num_agents} players of those offered, one for each agent")
        if not standin:
            standin = self.standin if self.standin in offered else ORACLE if ORACLE in offered else RANDOM
        specs = tuple(offered[standin if name == HUMAN else name] for name in players)
        people = tuple(agent for agent, name in enumerate(players) if name == HUMAN)
        lineup, names = Lineup(specs, ",".join(players)), tuple(players)
        return Plan(entry.id, options, shown, names, lineup, people, standin, seed, names, people), spec

    def _fixed(self, entry: EnvEntry) -> dict[str, Any]:
        return {name: value for name, value in self.env_options.items() if name in entry.options}

    def options_of(self, entry: EnvEntry) -> list[dict[str, Any]]:
        return [self._option(entry, name) for name in self._names(entry)]

    def _names(self, entry: EnvEntry) -> list[str]:
        """Return the options that are offered, the stage first."""
        schema, fixed = entry.schema, self._fixed(entry)
        words = [name for name, option in schema.items() if option.choices and option.default is not None]
        switches = [name for name, option in schema.items() if isinstance(option.default, bool)]
        names = dict.fromkeys([entry.stage_option, "agents", "split", *_NUMBERS, *words, *switches])
        return [name for name in names if name in schema and name not in fixed]

    def _option(self, entry: EnvEntry, name: str) -> dict[str, Any]:
        """Return an option for the page: a choice of values, a number between two, or a switch."""
        option, default = entry.schema[name], entry.options[name]
        if name == entry.stage_option:
            return {"name": name, "values": list(entry.stages), "default": default or entry.stages[0]}
        if name == "split":
            splits = list(dict.fromkeys(each["split"] for each in entry.evaluation.sets.values() if "split" in each))
            return {"name": name, "values": splits or [default], "default": [*splits, default][:2][-1]}
        if option.choices:
            return {"name": name, "values": list(option.choices.names), "default": default}
        if isinstance(default, bool):
            return {"name": name, "values": [False, True], "default": default}
        most = {"agents": self.limits.agents, "max_cycles": self.limits.steps}.get(name, self.limits.size)
        if name == "max_cycles" and default is not None:
            default = min(most, default)
        return {"name": name, "least": 1, "most": most, "default": default}

    def _check(self, entry: EnvEntry, name: str, value: Any) -> None:
        """Raise a Refusal for an option that is not offered, or a value that it cannot have."""
        require(name in self._names(entry), "bad_game", "this world has no such option for you to choose")
        option = self._option(entry, name)
        if "values" in option:
            fits = any(type(value) is type(each) and value == each for each in option["values"])
        else:
            none = value is None and option["default"] is None
            fits = none or (type(value) is int and option["least"] <= value <= option["most"])
        require(fits, "bad_game", f"{name} cannot have this value")
