"""Line-up: a player for each agent, "run:runs/quick,oracle": trained agents, experts, scripts and chance in one game.

From Python, functions and actors of one's own play as well:

    def cautious(observation, legal_actions, info):
        return legal_actions["stay"]

    Lineup.parse(["oracle", cautious], num_agents=2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, InvalidAction, did_you_mean
from magrounding.pretrained import PREFIX
from magrounding.registry import PLAYERS, load
from magrounding.single.script import Script, ScriptedTeam
from magrounding.spec import CHOICES, EnvSpec
from magrounding.teams.actor import begin_memory, make_expert
from magrounding.teams.loading import load_team
from magrounding.teams.scripted import OverlapTeam, random_team
from magrounding.teams.team import Team, mixed_team
from magrounding.text_view import action_name
from magrounding.vector import VectorEnv, observation_of
from magrounding.vocabulary import plain_text

HUMAN, ORACLE, RANDOM, OVERLAP = "human", "oracle", "random", "overlap"
RUN, SCRIPT, LLM, PYTHON = "run", "script", "llm", "python"
PRETRAINED = PREFIX.removesuffix(":")
KINDS = HUMAN, ORACLE, RANDOM, OVERLAP, RUN, PRETRAINED, SCRIPT, LLM
"""Players that can be typed."""
LLM_KEY = LLM, "", "", 0
CALLS_FILE = "calls.jsonl"
"""File of what language models were asked, in a folder."""
GRAMMAR = (
    f"{RUN}:DIR, {RUN}:DIR@STAGE, {PREFIX}NAME, {ORACLE}, {ORACLE}:NAME, {RANDOM}, {OVERLAP}, "
    f"{SCRIPT}:FILE, {LLM}:NAME, {LLM}:MODEL@URL or, in `play`, {HUMAN}"
)
"""The players of an agent that can be named."""


class AskedPlayers(Protocol):
    """Players that are asked together, such as language models (`registry.PLAYERS`).

    Attributes:
        parallel: how many questions are under way at once, at most.
        stopped: no more is asked; questions fail.
        given_up: line-up → (seed, episode) → the failure for which its game was given up.
    """

    parallel: int
    stopped: bool
    given_up: dict[str, dict[tuple[int, int], str]]

    def player(self, source: str) -> Any:
        """The player of a name; it has these players as `models`."""
        ...

    def team(self, players: Mapping[int, Any], vec: VectorEnv, seed: int, lineup: str, *, ends_games: bool) -> Any:
        """The actor of some agents; `teams.actor.NoReply` is raised where one gives no reply and that ends its game."""
        ...

    def keep_calls(self, players: Sequence[Any], file: Path, resume: bool) -> None:
        """Keep what some players are asked from now on in a file, see `keep_calls`."""
        ...

    def call_totals(self, lineup: str) -> dict[str, Any]:
        """Add up what a line-up was asked; JSON-able."""
        ...


@dataclass(frozen=True)
class PlayerSpec:
    """The player of one agent, before any of its networks is loaded.

    Attributes:
        kind: of KINDS, or PYTHON.
        source: the run's folder, the name of the pretrained team, of the oracle where it is not the environment's own,
            the script's file, the language model as it was typed, or the name of the function.
        stage: whose weights of a run; the last stage's where it is empty.
        actor: of PYTHON: a function (see `FunctionTeam`), or an Actor; or a team of a run that is loaded already; of
            LLM: what `AskedPlayers.player` returned.
    """

    __repr__ = brief

    kind: str
    source: str = ""
    stage: str = ""
    actor: Any = None

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Equal for two agents of one player: a function or an actor is itself, whatever it is equal to.

        Language models are one player: all of them are asked at once.
        """
        return LLM_KEY if self.kind == LLM else (self.kind, self.source, self.stage, id(self.actor))

    @classmethod
    def parse(cls, player: Any, models: AskedPlayers | None = None) -> PlayerSpec:
        """Return the player that a text names, or of a function or an Actor; ConfigurationError for anything else.

        `models` are those that the text may name.
        """
        if not isinstance(player, str):
            if not callable(player) and not callable(getattr(player, "act", None)):
                raise ConfigurationError(f"a player is {GRAMMAR}, a function or an actor, got {player!r}")
            return cls(PYTHON, getattr(player, "__name__", type(player).__name__), actor=player)
        kind, colon, source = player.strip().partition(":")
        needs_source = bool(source) if kind == ORACLE else kind in (RUN, PRETRAINED, SCRIPT, LLM)
        if kind not in KINDS or bool(source) != needs_source or (colon and not source):
            raise ConfigurationError(f"a player is {GRAMMAR}, got {player!r}{did_you_mean(kind, KINDS)}")
        if kind == LLM:
            known = load(PLAYERS.find(LLM).code)
            return cls(kind, source, actor=(models or known()).player(source))
        folder, _, stage = source.rpartition("@") if kind == RUN and "@" in source else (source, "", "")
        return cls(kind, folder, stage)

    def __str__(self) -> str:
        source = f":{self.source}" if self.source else ""
        return f"{self.kind}{source}{'@' if self.stage else ''}{self.stage}"

    def build_actor(self, vec: VectorEnv, seed: int, agents: Sequence[int] | None = None) -> Any:
        """Build the Actor for a vector env, with the seed of its draws. That of a person chooses action 0.

        A function is asked for `agents` only, by default all. Errors are those of `Lineup.build_actor`, which itself
        builds that of language models.
        """
        if hasattr(self.actor, "act"):
            return self.actor
        if self.kind == PYTHON:
            return FunctionTeam(self.actor, vec.spec, range(vec.num_agents) if agents is None else agents)
        if self.kind == HUMAN:
            return FunctionTeam(lambda *_: 0, vec.spec, ())
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
    """A player for each agent.

    Attributes:
        players: in the order of agents.
        name: as it was typed; functions and actors as "python:NAME".
        ends_games: a language model that cannot be reached ends the game, see `LanguageTeam`.
    """

    __repr__ = brief

    players: tuple[PlayerSpec, ...]
    name: str
    ends_games: bool = False
    _teams: dict[Any, Team] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def parse(cls, players: str | Sequence[Any], num_agents: int, models: AskedPlayers | None = None) -> Lineup:
        """Return a line-up of one player for each of n agents, or one for all of them.

        Players are typed, separated by commas; or a list of such texts, functions (see `FunctionTeam`) and actors.
        `models` are those that may be named. Another number of players, or one that is none, is a ConfigurationError.
        """
        typed = [part for part in players.split(",") if part.strip()] if isinstance(players, str) else list(players)
        if len(typed) not in (1, num_agents):
            raise ConfigurationError(
                f"a line-up has one player for all agents, or one for each of the {num_agents}, got {players!r}"
            )
        if models is None and LLM in PLAYERS:
            models = load(PLAYERS[LLM].code)()
        specs = tuple(PlayerSpec.parse(each, models) for each in typed)
        return cls(specs * num_agents if len(specs) == 1 else specs, ",".join(map(str, specs)))

    @property
    def people(self) -> tuple[int, ...]:
        """Agents that people play."""
        return tuple(agent for agent, player in enumerate(self.players) if player.kind == HUMAN)

    @property
    def language_models(self) -> tuple[Any, ...]:
        """Language models among the players, each once."""
        return tuple(dict.fromkeys(player.actor for player in self.players if player.kind == LLM))

    @property
    def asked(self) -> AskedPlayers | None:
        """What its language models share; None without any."""
        return next((player.models for player in self.language_models), None)

    def call_totals(self) -> dict[str, Any]:
        """Return what its language models were asked; nothing without any."""
        return self.asked.call_totals(self.name) if self.asked else {}

    def build_actor(self, vec: VectorEnv, seed: int) -> Any:
        """Build the Actor of all agents for a vector env, with the seed of its draws; teams are loaded once.

        Raises:
            ConfigurationError: a player that cannot play these episodes.
            CheckpointError: no trained team where one was named.
            DataNotFound: a script that cannot be read.
        """
        order = [player.key for player in self.players]
        actors: dict[Any, Any] = {}
        if self.asked:
            models = {agent: player.actor for agent, player in enumerate(self.players) if player.kind == LLM}
            actors[LLM_KEY] = self.asked.team(models, vec, seed, self.name, ends_games=self.ends_games)
        for player in self.players:
            if player.key not in actors:
                agents = [k for k, key in enumerate(order) if key == player.key]
                actors[player.key] = self._teams.get(player.key) or player.build_actor(vec, seed, agents)
        self._teams.update({key: actor for key, actor in actors.items() if isinstance(actor, Team)})
        actors = {key: actor.for_games(vec) if isinstance(actor, Team) else actor for key, actor in actors.items()}
        if len(actors) == 1:
            return next(iter(actors.values()))
        if all(isinstance(actor, Team) for actor in actors.values()):
            return mixed_team([actors[key] for key in order])
        return MixedActor(list(actors.values()), [list(actors).index(key) for key in order])


class MixedActor:
    """Several actors in one batch of episodes: each thinks for all agents; `plays` [n] says which one moves each."""

    accepts_rows = draws = explains = True

    def __init__(self, actors: list[Any], plays: list[int]) -> None:
        self._actors, self._plays = actors, np.array(plays)

    def initial_memory(self, num_envs: int, seed: int = 0) -> list[Any]:
        """Return the memory of each of them."""
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
        chosen: list[np.ndarray] = []
        for k, actor in enumerate(self._actors):
            more: dict[str, Any] = {"rows": rows} if getattr(actor, "accepts_rows", False) else {}
            if getattr(actor, "explains", False):
                more["explain"] = explain
            actions, memory[k] = actor.act(obs, memory[k], info, greedy, **more)
            chosen.append(actions)
        return np.choose(self._plays, np.stack(chosen)), memory

    def set_last_actions(self, memory: list[Any], actions: np.ndarray) -> None:
        """Hand on `Team.set_last_actions` to the actors that have it."""
        for actor, own in zip(self._actors, memory, strict=True):
            if hasattr(actor, "set_last_actions"):
                actor.set_last_actions(own, actions)

    def aux(self, memory: list[Any]) -> list[dict[str, np.ndarray]]:
        """Return `Team.aux` of each agent; nothing of one that no network moves."""
        aux = [
            actor.aux(own) if getattr(actor, "explains", False) else [{}] * len(self._plays)
            for actor, own in zip(self._actors, memory, strict=True)
        ]
        return [aux[k][agent] for agent, k in enumerate(self._plays)]


def keep_calls(players: Iterable[PlayerSpec], file: Path, *, resume: bool = True) -> None:
    """Keep the calls of all language models among some players in a file; without any, nothing is read or written.

    With `resume` what the file has is not asked again; a CheckpointError where one had other options then.
    """
    asked = tuple(dict.fromkeys(player.actor for player in players if player.kind == LLM))
    if asked:
        asked[0].models.keep_calls(asked, file, resume)


MoveFunction = Callable[[dict[str, np.ndarray], dict[str, int], dict[str, Any]], Any]
"""(observation, legal_actions, info) → action, see `FunctionTeam`."""


class FunctionTeam:
    """Agents whose moves a Python function chooses: a heuristic, a search, a client of a language model.

    The function is called as `function(observation, legal_actions, info)`, once in each step for each agent that it
    plays and that is alive, in the order of games and agents.

    * `observation`: the agent's own arrays by field, copies; shared texts among them.
    * `legal_actions`: name → number; where actions are texts to choose from, these are the names.
    * `info`: `agent` and `game`, their numbers; `step`, counted from 0; `score` so far; `text`, the text fields but the
      choices in words: a string each, or a list of strings for a field with rows, such as a manual.

    It returns a number or a name in `legal_actions`. The number of an action that is not legal now is played all the
    same, and does nothing. Agents other than `agents` get action 0.
    """

    accepts_rows = True

    def __init__(self, function: MoveFunction, spec: EnvSpec, agents: Sequence[int]) -> None:
        self._function, self._spec, self._agents = function, spec, tuple(agents)

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        memory: Any = None,
        info: Any = None,
        greedy: bool = True,
        rows: np.ndarray | None = None,
    ) -> tuple[np.ndarray, None]:
        """Return actions [B, n] int64 for a vector env's observation; InvalidAction where the function returns none."""
        mask = obs["action_mask"]
        alive = np.ones(mask.shape[:2], np.bool_) if info is None else info["alive"]
        actions = np.zeros(mask.shape[:2], np.int64)
        for game in range(len(mask)) if rows is None else rows.tolist():
            for agent in self._agents:
                if alive[game, agent]:
                    actions[game, agent] = self._ask(obs, info, game, agent)
        return actions, None

    def _ask(self, obs: Mapping[str, np.ndarray], info: Any, game: int, agent: int) -> int:
        own = observation_of(self._spec, obs, game, agent)
        legal: dict[str, int] = {}
        for action in np.flatnonzero(obs["action_mask"][game, agent]).tolist():
            legal.setdefault(action_name(self._spec, own, action), action)
        # The length and score of a game that has just ended are those of its end; the next one has begun.
        if info is None or info["done"][game]:
            step, score = 0, 0.0
        else:
            step, score = int(info["length"][game]), float(info["score"][game])
        facts = {"agent": agent, "game": game, "step": step, "score": score, "text": self._texts(own)}
        chosen = self._function({name: array.copy() for name, array in own.items()}, legal, facts)
        action = legal.get(chosen) if isinstance(chosen, str) else chosen
        count = self._spec.num_actions
        if isinstance(action, bool | np.bool_) or not isinstance(action, int | np.integer) or not 0 <= action < count:
            name = getattr(self._function, "__name__", type(self._function).__name__)
            raise InvalidAction(
                f"{name} chose {chosen!r} for agent {agent}: a legal action's name, or 0 to {count - 1}"
            )
        return int(action)

    def _texts(self, own: Mapping[str, np.ndarray]) -> dict[str, str | list[str]]:
        words = self._spec.words
        return {
            each.name: plain_text(words, own[each.name].tolist())
            if own[each.name].ndim == 1
            else [plain_text(words, row.tolist()) for row in own[each.name] if row.any()]
            for each in self._spec.texts
            if each.name != CHOICES
        }
