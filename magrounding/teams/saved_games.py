"""Saved games: JSON lines from which episodes are played again, step for step, and found equal or refused.

The first line is the `Header`, each further line a `SavedEpisode`. Every line ends in `check`, the beginning of a
SHA-256 of the rest of it, so a changed byte is noticed; `seen` holds digests of the observations, so an episode that
now goes another way is noticed as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from magrounding.envs.make import make_vec
from magrounding.errors import CheckpointError, ConfigurationError, DataNotFound
from magrounding.registry import env_entry
from magrounding.schema import Count, Options, load
from magrounding.spec import EnvSpec, FixedActions
from magrounding.storage import LINES, digest, json_text, naming, parse_json, require_bytes, write_atomic
from magrounding.vector import Info, Observation, VectorEnv
from magrounding.version import __version__

FORMAT, VERSION = "magrounding saved games", 1
EVERY = 5
"""Steps between two digests of what is seen."""
CHECK = "check"
_DIGITS = 16
_LONGEST_ERROR = 300


@dataclass(frozen=True)
class Header(Options):
    """Origin of the episodes of a file.

    Attributes:
        env, options: of the environment.
        agents: n.
        vocabulary: hash of the words of its ids.
        actions: names of the actions; none where these are texts.
        players: the player of each agent, in the words of a line-up.
        play: "greedy" or "sampled", how trained agents chose.
        format, version: of the file.
        package: version of the package that wrote it.
        source: file of the sentences of its texts, and its SHA-256; "" where these are the environment's own.
    """

    env: str
    options: dict[str, Any]
    agents: Count
    vocabulary: str
    actions: tuple[str, ...]
    players: tuple[str, ...]
    play: str
    format: str = FORMAT
    version: int = VERSION
    package: str = __version__
    source: str = ""

    @classmethod
    def of(cls, vec: VectorEnv, players: Sequence[str], play: str) -> Header:
        entry, spec = env_entry(vec.id), vec.spec
        names = spec.actions.names if isinstance(spec.actions, FixedActions) else ()
        options = {**entry.options, **vec.options}  # defaults may be others one day
        source = "" if spec.source == entry.describe().source else spec.source
        return cls(vec.id, options, vec.num_agents, spec.vocabulary_hash, names, tuple(players), play, source=source)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.players) != self.agents:
            raise ConfigurationError(f"{len(self.players)} players are named, of {self.agents} agents")


@dataclass(frozen=True)
class SavedEpisode(Options):
    """The first episode of a seed.

    Attributes:
        actions: [T][n], of every step; those of agents who are out are 0.
        seen: digests of the observations before steps 0, EVERY, 2 EVERY, …
        won, score, length: of its end, length in steps.
        returns: [n] sums of rewards.
        timed_out: ended by the time limit.
        ended_by: reason why it was ended before its end, which is then not won; "" where it was played to it.
    """

    seed: int
    actions: tuple[tuple[int, ...], ...]
    seen: tuple[str, ...]
    won: bool
    score: float
    length: int
    returns: tuple[float, ...]
    timed_out: bool
    ended_by: str = ""


class EpisodeWriter:
    """Writer that appends episodes to a file, each whole or not at all; a file that would hold none is not made.

    A file with another header is a CheckpointError.

    Attributes:
        episodes: those of the file.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path, self._header, self._begun = path, header, False
        self.episodes: list[SavedEpisode] = []
        if path.exists():
            found, self.episodes = parse_episodes(_read(path), path, whole=False)
            if found != header:
                raise CheckpointError(f"{path} holds other games: name another folder with --out")

    def write(self, episodes: Sequence[SavedEpisode]) -> None:
        if not self._begun:  # without a line that a kill cut short
            write_atomic(self._path, to_text(self._header, self.episodes))
            self._begun = True
        self.episodes += episodes
        with naming(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write("".join(map(_line, episodes)))


def read_episodes(path: Path) -> tuple[Header, list[SavedEpisode]]:
    """Read a file.

    Raises:
        DataNotFound: there is no such file.
        CheckpointError: it is none of saved games, of another version, or damaged, or holds no episode.
    """
    header, episodes = parse_episodes(_read(path), path)
    if not episodes:
        raise CheckpointError(f"{path} holds no game: none was played to its end; play one, or name another file")
    return header, episodes


def parse_episodes(data: bytes, source: Path | str, *, whole: bool = True) -> tuple[Header, list[SavedEpisode]]:
    """Parse the content of a file, which may hold no episode; CheckpointError as in `read_episodes`.

    A last line without its end is refused if the file has to be `whole`, else left out.
    """
    lines = data.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n") and not whole:
        lines.pop()
    contents = [_parse(line, source, number) for number, line in enumerate(lines, 1)]
    if not contents or (contents[0].get("format"), contents[0].get("version")) != (FORMAT, VERSION):
        raise CheckpointError(f"{source} is no file of saved games of version {VERSION}, which this package reads")
    try:
        return load(Header, contents[0]), list(map(_episode, contents[1:]))
    except ConfigurationError as error:
        raise CheckpointError(f"{source} is damaged: {shorten(str(error), _LONGEST_ERROR)}") from None


def to_text(header: Header, episodes: Sequence[SavedEpisode]) -> str:
    """Return the content of a file."""
    return "".join(map(_line, (header, *episodes)))


def replayed(
    path: Path, header: Header, episodes: Sequence[SavedEpisode], numbers: Sequence[int] | None = None
) -> Iterator[int]:
    """Play episodes of a file again, by default all, compare, and yield the number of each that was found equal.

    One that goes another way now, or options of another environment by now, are a CheckpointError.
    """
    with closing(open_env(path, header)) as vec:
        for number in range(len(episodes)) if numbers is None else numbers:
            if _play_again(vec, episodes[number]) != episodes[number]:
                raise CheckpointError(
                    f"{path}: game {number} goes another way now than when it was saved; it is not shown"
                )
            yield number


def _play_again(vec: VectorEnv, episode: SavedEpisode) -> SavedEpisode:
    """Make the moves of an episode once more, in a vector env of one."""
    recorder = Recorder(1, vec.spec)
    obs, info = vec.reset(seed=episode.seed)
    for actions in episode.actions:
        recorder.observe(obs, info)
        obs, _, _, truncated, info = vec.step(np.array([actions]))
        recorder.record(np.array([actions]), truncated, info)
        if info.done[0]:
            break
    else:
        if episode.ended_by:
            recorder.stop(0, info, episode.ended_by)
    return recorder.episode(0, episode.seed)


def actions_of(env: Any, actions: Sequence[int]) -> dict[str, int]:
    """Return the saved actions [n] of a step as a single env takes them: of the agents that it still has."""
    return {agent: actions[int(agent.rpartition("_")[2])] for agent in env.agents}


class ReplayActor:
    """Actor that plays saved episodes again, one in each row, in a batch that was reset with the first one's seed.

    No episode, or seeds that are not consecutive, are a ConfigurationError.
    """

    def __init__(self, episodes: Sequence[SavedEpisode]) -> None:
        seeds = [episode.seed for episode in episodes]
        if not seeds or seeds != list(range(seeds[0], seeds[0] + len(seeds))):
            raise ConfigurationError("these saved games are not of consecutive seeds: record those of one match")
        for episode in episodes:
            if episode.ended_by:
                raise ConfigurationError(
                    f"the game of seed {episode.seed} was not played to its end ({episode.ended_by}): name others"
                )
        self.seed, self._episodes, self._step = seeds[0], list(episodes), 0

    def initial_memory(self, num_envs: int) -> None:
        """Go back to the first step."""
        self._step = 0

    def act(self, obs: Any, memory: Any = None, info: Any = None, greedy: bool = True) -> tuple[np.ndarray, None]:
        """Return actions [B, n] int64; the last ones again where an episode is over."""
        moves = [episode.actions[min(self._step, len(episode.actions) - 1)] for episode in self._episodes]
        self._step += 1
        return np.array(moves, np.int64), None


class SavedLineup:
    """The players of a file's episodes, with the same moves: a line-up for a `Session` without choices.

    `first` is the number of the episode that is meant, should several have its seed.

    Attributes:
        players: of each agent.
        people: none.
    """

    people: tuple[int, ...] = ()

    def __init__(self, path: Path, header: Header, episodes: Sequence[SavedEpisode], first: int) -> None:
        self.players = header.players
        self._path, self._header, self._episodes = path, header, episodes
        self._numbers = {episode.seed: number for number, episode in enumerate(episodes)}
        self._numbers[episodes[first].seed] = first

    def build_actor(self, vec: VectorEnv, seed: int) -> ReplayActor:
        """Return the actor that makes the moves of the episode of a seed.

        Raises:
            ConfigurationError: there is none.
            CheckpointError: one that goes another way now.
        """
        number = self._numbers.get(seed)
        if number is None:
            raise ConfigurationError(f"{self._path} holds no game of seed {seed}")
        list(replayed(self._path, self._header, self._episodes, [number]))
        return ReplayActor([self._episodes[number]])


def open_env(path: Path, header: Header) -> VectorEnv:
    """Make a vector env of one row for the episodes of a file; CheckpointError where it is another one by now."""
    try:
        vec = make_vec(header.env, 1, **header.options)
    except ConfigurationError as error:
        raise CheckpointError(f"the games of {path} cannot be made here: {error}") from None
    now = vec.num_agents, vec.spec.vocabulary_hash, header.source and vec.spec.source
    if (header.agents, header.vocabulary, header.source) != now:
        vec.close()
        raise CheckpointError(f"the games of {path} had other agents, words or files of sentences than they have now")
    return vec


class Recorder:
    """Recorder of the first episodes of a batch of B.

    Attributes:
        lost: [B] bool, where a fault of its simulator ended the first episode.
    """

    def __init__(self, num_envs: int, spec: EnvSpec) -> None:
        self._spec = spec
        self.lost = np.zeros(num_envs, np.bool_)
        self._open = np.ones(num_envs, np.bool_)
        self._actions: list[list[tuple[int, ...]]] = [[] for _ in range(num_envs)]
        self._seen: list[list[str]] = [[] for _ in range(num_envs)]
        not_ended = {"won": False, "score": 0.0, "length": 0, "returns": (), "timed_out": False}
        self._ends: list[dict[str, Any]] = [not_ended] * num_envs

    def observe(self, obs: Observation, info: Info) -> None:
        """Record the observations before a step."""
        for row in np.flatnonzero(self._open).tolist():
            if len(self._actions[row]) % EVERY == 0:
                self._seen[row].append(_digest(obs, info.alive, row, self._spec))

    def record(self, actions: np.ndarray, truncated: np.ndarray, info: Info) -> None:
        """Record a step: its actions [B, n], and what `VectorEnv.step` returned."""
        self.lost |= self._open & info.lost
        for row in np.flatnonzero(self._open):
            self._actions[row].append(tuple(map(int, actions[row])))
            if info.done[row]:
                self._open[row] = False
                self._ends[row] = {
                    "won": bool(info.won[row]),
                    "score": float(info.score[row]),
                    "length": int(info.length[row]),
                    "returns": tuple(map(float, info.returns[row])),
                    "timed_out": bool(truncated[row].any()),
                }

    def stop(self, row: int, info: Info, reason: str) -> None:
        """End the first episode of a row before its end, for a reason; `info` is of the step that led here."""
        self._open[row] = False
        score, returns = float(info.score[row]), tuple(map(float, info.returns[row]))
        so_far = {"score": score, "length": len(self._actions[row]), "returns": returns}
        self._ends[row] = {**self._ends[row], **so_far, "ended_by": reason}

    def episode(self, row: int, seed: int) -> SavedEpisode:
        """Return the episode of a row; one that has not ended is neither won nor lost, and has length 0."""
        return SavedEpisode(seed, tuple(self._actions[row]), tuple(self._seen[row]), **self._ends[row])


def _digest(obs: Observation, alive: np.ndarray, row: int, spec: EnvSpec) -> str:
    content = hashlib.sha256(alive[row].tobytes())
    for field in spec.fields:
        part = obs[field.name][row]
        content.update(np.ascontiguousarray(part if field.shared else part[alive[row]]).tobytes())
    return content.hexdigest()[:_DIGITS]


def _line(saved: Header | SavedEpisode) -> str:
    """Write a line, without a `source` or `ended_by` that says nothing, as files are from before there were these."""
    content = {name: value for name, value in asdict(saved).items() if value != ""}
    return json_text({**content, CHECK: digest(content)[:_DIGITS]}, compact=True) + "\n"


def _read(path: Path) -> bytes:
    return require_bytes(path, LINES, missing=DataNotFound(f"there are no saved games at {path}"))


def _parse(line: bytes, source: Path | str, number: int) -> dict[str, Any]:
    """Parse a line; CheckpointError unless it is what was written."""
    try:
        content = parse_json(line)
        check = content.pop(CHECK)
        intact = check == digest(content)[:_DIGITS] and line.endswith(b"\n")
    except (ValueError, KeyError, AttributeError, TypeError):
        intact, content = False, {}
    if not intact:
        raise CheckpointError(f"{source}, line {number} is damaged, or the file is none of saved games")
    return content


def _episode(content: Mapping[str, Any]) -> SavedEpisode:
    """Build an episode that can be played again; ConfigurationError where there is none in a line."""
    episode = load(SavedEpisode, content)
    if not (episode.actions or episode.ended_by) or len(set(map(len, episode.actions))) > 1:
        raise ConfigurationError("a game has at least one step, and as many actions in each")
    return episode
