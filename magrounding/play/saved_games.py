"""Saved games: JSON lines from which games are played again, step for step, and found equal or refused.

The first line says which games they are, each further line holds one (see `Header` and `SavedGame` for the entries).
Every line ends in `check`, the beginning of a SHA-256 of the rest of it, so a changed byte is noticed; `seen` holds
digests of what the agents saw, so a game that now goes another way is noticed as well.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from magrounding.brief import brief
from magrounding.envs.make import make_vec
from magrounding.errors import CheckpointError, ConfigurationError, DataNotFound
from magrounding.registry import env_entry
from magrounding.spec import EnvSpec, FixedActions
from magrounding.storage import digest, json_text, naming, write_atomic
from magrounding.vector import Info, Observation, VectorEnv
from magrounding.version import __version__

FORMAT, VERSION = "magrounding saved games", 1
EVERY = 5
"""Steps between two digests of what is seen."""
CHECK = "check"
_DIGITS = 16
_LONGEST_LINE = 2**24


@dataclass(frozen=True)
class Header:
    """What the games of a file are.

    Attributes:
        env, options: how they were made.
        agents: n.
        vocabulary: hash of the words of their ids.
        actions: names of the actions; none for worlds whose actions are texts.
        players: who played each agent, in the words of a line-up.
        play: "greedy" or "sampled", how trained agents chose.
        format, version, package: of the file, and of the package that wrote it.
    """

    __repr__ = brief

    env: str
    options: dict[str, Any]
    agents: int
    vocabulary: str
    actions: tuple[str, ...]
    players: tuple[str, ...]
    play: str
    format: str = FORMAT
    version: int = VERSION
    package: str = __version__

    @classmethod
    def of(cls, vec: VectorEnv, players: Sequence[str], play: str) -> Header:
        """The header of games of a vector env."""
        actions = vec.spec.actions
        names = actions.names if isinstance(actions, FixedActions) else ()
        options = {**env_entry(vec.id).options, **vec.options}  # defaults may be others one day
        return cls(vec.id, options, vec.num_agents, vec.spec.vocabulary_hash, names, tuple(players), play)

    def check(self) -> None:
        """ValueError for entries of the wrong kind."""
        if not isinstance(self.options, dict) or type(self.agents) is not int:
            raise ValueError("options are an object, agents a number")
        if not all(isinstance(text, str) for text in (self.env, self.vocabulary, self.play)):
            raise ValueError("env, vocabulary and play are strings")
        for name, texts in (("actions", self.actions), ("players", self.players)):
            if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{name} are a list of strings")
        if len(self.players) != self.agents:
            raise ValueError(f"{len(self.players)} players are named, of {self.agents} agents")


@dataclass(frozen=True)
class SavedGame:
    """One game: the first episode of a seed.

    Attributes:
        seed: of the episode.
        actions: [T][n], of every step; those of agents who are out are 0.
        seen: digests of what the agents saw before steps 0, EVERY, 2 EVERY, …
        won, score, length, returns: how it ended; returns is each agent's sum of rewards.
        timed_out: ended by the time limit.
    """

    __repr__ = brief

    seed: int
    actions: tuple[tuple[int, ...], ...]
    seen: tuple[str, ...]
    won: bool
    score: float
    length: int
    returns: tuple[float, ...]
    timed_out: bool

    def check(self) -> None:
        """ValueError for entries of the wrong kind, so that whatever was read can be played."""
        moves = {type(action) for step in self.actions for action in step}
        if type(self.seed) is not int or moves - {int} or len({len(step) for step in self.actions}) > 1:
            raise ValueError("a seed is a whole number, and actions are as many in every step")
        if not self.actions:
            raise ValueError("a game has at least one step")


class GameWriter:
    """Appends games to a file, each whole or not at all; a file that exists goes on. One without games is not made.

    Args:
        path: the file.
        header: of its games.

    Raises:
        CheckpointError: a file of other games.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path, self._header, self._begun = path, header, False
        self.games: list[SavedGame] = []
        if path.exists():
            found, self.games = _read(path, whole=False)
            if found != header:
                raise CheckpointError(f"{path} holds other games: name another folder with --out")

    def write(self, games: Sequence[SavedGame]) -> None:
        """Append some games."""
        if not self._begun:  # without a line that a kill cut short
            write_atomic(self._path, to_text(self._header, self.games))
            self._begun = True
        self.games += games
        with naming(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write("".join(_line(asdict(game)) for game in games))


def read_games(path: Path) -> tuple[Header, list[SavedGame]]:
    """The games of a file.

    Raises:
        DataNotFound: there is no such file.
        CheckpointError: it is none of saved games, of another version, or damaged, or holds no game.
    """
    header, games = _read(path, whole=True)
    if not games:
        raise CheckpointError(f"{path} holds no game: none was played to its end; play one, or name another file")
    return header, games


def parse_games(data: bytes, name: str) -> tuple[Header, list[SavedGame]]:
    """The games in the content of a file, wherever it came from; errors call it `name`, see `read_games`."""
    return _parse_file(io.BytesIO(data), Path(name), whole=True)


def to_text(header: Header, games: Sequence[SavedGame]) -> str:
    """Games as a file of them holds them."""
    return "".join(map(_line, [asdict(header), *map(asdict, games)]))


def replayed(
    path: Path, header: Header, games: Sequence[SavedGame], numbers: Sequence[int] | None = None
) -> Iterator[int]:
    """Play games again, and compare: the number of each that was found equal.

    Args:
        path: the file that they are from.
        header: of it.
        games: all of its games.
        numbers: of those to play; all by default.

    Raises:
        CheckpointError: a game that goes another way than the file says, or options that make no such games now.
    """
    vec = open_games(path, header)
    try:
        for number in range(len(games)) if numbers is None else numbers:
            if play_again(vec, games[number]) != games[number]:
                raise CheckpointError(
                    f"{path}: game {number} goes another way now than when it was saved; it is not shown"
                )
            yield number
    finally:
        vec.close()


def play_again(vec: VectorEnv, game: SavedGame) -> SavedGame:
    """What a saved game's moves lead to now, in a vector env of one game."""
    tape = Tape(1, vec.spec)
    obs, info = vec.reset(seed=game.seed)
    for actions in game.actions:
        tape.see(obs, info)
        obs, _, _, truncated, info = vec.step(np.array([actions]))
        tape.played(np.array([actions]), truncated, info)
        if info.done[0]:
            break
    return tape.game(0, game.seed)


class Rerun:
    """An Actor that plays saved games again, one in each row, in a batch that was reset with the first game's seed.

    Args:
        games: of consecutive seeds.

    Raises:
        ConfigurationError: no game, or seeds with a gap.
    """

    def __init__(self, games: Sequence[SavedGame]) -> None:
        seeds = [game.seed for game in games]
        if not seeds or seeds != list(range(seeds[0], seeds[0] + len(seeds))):
            raise ConfigurationError("these saved games are not of consecutive seeds: record those of one match")
        self.seed, self._games, self._step = seeds[0], list(games), 0

    def initial_memory(self, num_envs: int) -> None:
        """From the first step."""
        self._step = 0

    def act(self, obs: Any, memory: Any = None, info: Any = None, greedy: bool = True) -> tuple[np.ndarray, None]:
        """Actions [B, n] int64; the last ones again where a game is over."""
        moves = [game.actions[min(self._step, len(game.actions) - 1)] for game in self._games]
        self._step += 1
        return np.array(moves, np.int64), None


class SavedLineup:
    """The players of saved games, who do again what they did: a line-up for a `Session` without choices.

    Args:
        path, header, games: of a file.
        first: number of the game that is meant, should several have its seed.

    Attributes:
        seats: who played each agent.
        people: none.
    """

    people: tuple[int, ...] = ()

    def __init__(self, path: Path, header: Header, games: Sequence[SavedGame], first: int = 0) -> None:
        self.seats = header.players
        self._path, self._header, self._games = path, header, games
        self._numbers = {game.seed: number for number, game in enumerate(games)} | {games[first].seed: first}

    def sit(self, vec: VectorEnv, seed: int) -> Rerun:
        """The moves of the game of a seed.

        Raises:
            ConfigurationError: there is none.
            CheckpointError: one that goes another way now.
        """
        number = self._numbers.get(seed)
        if number is None:
            raise ConfigurationError(f"{self._path} holds no game of seed {seed}")
        list(replayed(self._path, self._header, self._games, [number]))
        return Rerun([self._games[number]])


def open_games(path: Path, header: Header) -> VectorEnv:
    """A vector env of one game for those of a file; CheckpointError where they are other ones by now."""
    try:
        vec = make_vec(header.env, 1, **header.options)
    except (ConfigurationError, TypeError) as error:
        raise CheckpointError(f"the games of {path} cannot be made here: {error}") from None
    if (header.agents, header.vocabulary) != (vec.num_agents, vec.spec.vocabulary_hash):
        vec.close()
        raise CheckpointError(f"the games of {path} had other words or another number of agents than they have now")
    return vec


class Tape:
    """Writes down the first episodes of a batch.

    Args:
        num_envs: B.
        spec: of the games.

    Attributes:
        lost: [B] bool, whose first episode a fault of its simulator ended.
    """

    def __init__(self, num_envs: int, spec: EnvSpec) -> None:
        self._spec = spec
        self.lost = np.zeros(num_envs, np.bool_)
        self._open = np.ones(num_envs, np.bool_)
        self._actions: list[list[tuple[int, ...]]] = [[] for _ in range(num_envs)]
        self._seen: list[list[str]] = [[] for _ in range(num_envs)]
        self._ends: list[dict[str, Any]] = [{} for _ in range(num_envs)]

    def see(self, obs: Observation, info: Info) -> None:
        """Before a step: what all see."""
        rows = [row for row in np.flatnonzero(self._open) if len(self._actions[row]) % EVERY == 0]
        for row in rows:
            self._seen[row].append(_digest(obs, info.alive, int(row), self._spec))

    def played(self, actions: np.ndarray, truncated: np.ndarray, info: Info) -> None:
        """After a step: actions [B, n] that were played, and what came of them."""
        self.lost |= self._open & info.lost
        for row in np.flatnonzero(self._open):
            self._actions[row].append(tuple(int(action) for action in actions[row]))
            if info.done[row]:
                self._open[row] = False
                self._ends[row] = {
                    "won": bool(info.won[row]),
                    "score": float(info.score[row]),
                    "length": int(info.length[row]),
                    "returns": tuple(float(each) for each in info.returns[row]),
                    "timed_out": bool(truncated[row].any()),
                }

    def game(self, row: int, seed: int) -> SavedGame:
        """The game of a row; one that has not ended is neither won nor lost, and has length 0."""
        end = self._ends[row] or {"won": False, "score": 0.0, "length": 0, "returns": (), "timed_out": False}
        return SavedGame(seed, tuple(self._actions[row]), tuple(self._seen[row]), **end)


def _digest(obs: Observation, alive: np.ndarray, row: int, spec: EnvSpec) -> str:
    """Of all that the living agents of a game see."""
    content = hashlib.sha256(alive[row].tobytes())
    for field in spec.fields:
        part = obs[field.name][row]
        content.update(np.ascontiguousarray(part if field.shared else part[alive[row]]).tobytes())
    return content.hexdigest()[:_DIGITS]


def _line(content: Mapping[str, Any]) -> str:
    return json_text({**content, CHECK: digest(content)[:_DIGITS]}, compact=True) + "\n"


def _read(path: Path, *, whole: bool) -> tuple[Header, list[SavedGame]]:
    """Header and games; a last line without its end is left out unless the file has to be whole."""
    try:
        with path.open("rb") as file:
            return _parse_file(file, path, whole=whole)
    except FileNotFoundError:
        raise DataNotFound(f"there are no saved games at {path}") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None


def _parse_file(file: BinaryIO, path: Path, *, whole: bool) -> tuple[Header, list[SavedGame]]:
    """What `_read` returns, of an open file."""
    lines = []
    while line := file.readline(_LONGEST_LINE):
        lines.append(line)
    if lines and not lines[-1].endswith(b"\n") and not whole:
        lines.pop()
    contents = [_parse(line, path, number) for number, line in enumerate(lines, 1)]
    if not contents or contents[0].get("format") != FORMAT:
        raise CheckpointError(f"{path} is no file of saved games")
    if contents[0].get("version") != VERSION:
        raise CheckpointError(f"{path} is of version {contents[0].get('version')!r}, this package reads {VERSION}")
    try:
        header = _build(Header, contents[0])
        return header, [_build(SavedGame, content) for content in contents[1:]]
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from None


def _parse(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """The content of a line; CheckpointError unless it is what was written."""
    try:
        content = json.loads(line)
        check = content.pop(CHECK)
        intact = check == digest(content)[:_DIGITS] and line.endswith(b"\n")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        intact, content = False, {}
    if not intact:
        raise CheckpointError(f"{path}, line {number} is damaged, or the file is none of saved games")
    return content


def _build(kind: type, content: Mapping[str, Any]) -> Any:
    """A header or a game of JSON; its lists are tuples."""
    names = {field.name for field in fields(kind)}
    if content.keys() != names:
        raise KeyError(f"entries {sorted(content.keys() ^ names)} are missing or unknown")
    built = kind(**{name: _tuples(value) for name, value in content.items()})
    built.check()
    return built


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
